"""The forecast's arithmetic, and the command on tiny logs."""
import numpy as np
import pytest

from graphsane_tf import config as config_lib
from graphsane_tf.runs import forecast


def _config(**fields):
  config = config_lib.default_config()
  config.update_from_flattened_dict({'backbone': 'lightgcn', 'model.embedding_dim': 8, **fields})
  return config_lib.resolved(config)


def test_costs_are_found_again():
  rows = [(1e5, 2e6), (3e6, 1e5), (5e5, 5e5), (1e6, 9e6)]
  costs = np.array([2e-3, 4e-9, 1e-9])
  seconds = [costs @ [1., *row] for row in rows]
  np.testing.assert_allclose(forecast.fitted(rows, seconds), costs, rtol=1e-6)
  assert min(forecast.fitted(rows[:3], [1., 2., .1])) >= 0.


def test_lines_by_hand():
  config = _config(**{'model.propagation': 'sampled', 'train.batch_size': 10, 'train.num_negatives': 3,
                      'train.num_sampler_negatives': 1, 'model.fanout': (4, 2), 'train.epochs': 5})
  shape = forecast.Shape(1000, 500, 20_000, 95)
  # 50 nodes are asked for, 250 reached; each reads 4 or 2 rows of 8 numbers.
  kind, numbers, weights = forecast.amounts(config, shape)
  assert (kind, numbers, weights) == ('sampled', (50 * 4 + 250 * 2) * 8, 12_000)
  costs = forecast.Costs(.1, 1e-3, 1e-4, 1e-6)
  lines = {(line['strategy'], line['workers']): line for line in forecast.forecast(config, shape, costs, 1e4)}
  alone, two, served = (lines[key] for key in (('none', 1), ('multiworker', 2), ('parameter servers', 2)))
  assert alone['step'] == pytest.approx(.1 + 5.6 + 1.2) and alone['network'] == 0
  ranked = 95 * 500 * 8 * 1e-6
  assert alone['block'] == pytest.approx(5 * (10 * alone['step'] + ranked))
  assert two['network'] == 4 * (12_000 + 50 * 8)
  assert two['step'] == pytest.approx(.1 + 2.8 + 1.2 + two['network'] / 1e4)
  assert served['network'] == 4 * 5600 and served['step'] == pytest.approx(.1 + 2.8 + .6 + 2.24)
  assert alone['memory'] - served['memory'] == pytest.approx(20 * 6000 + 12 * 2800)
  whole = forecast.forecast(_config(**{'model.propagation': 'whole'}), shape, costs, 1e4)
  assert {line['strategy'] for line in whole} == {'none', 'multiworker'}
  assert whole[1]['step'] > whole[0]['step']


def _line(strategy, workers, block, memory=1.):
  return {'strategy': strategy, 'workers': workers, 'block': block, 'memory': memory}


def test_advice():
  lines = [_line('none', 1, 100.), _line('multiworker', 2, 60.), _line('multiworker', 4, 55.),
           _line('parameter servers', 2, 50., .5)]
  assert forecast.advice(lines, 2.)[0] is lines[1]
  lines[0]['block'] = 70.
  assert forecast.advice(lines, 2.)[0] is lines[0]
  assert forecast.advice(lines, .7)[0] is lines[3] and 'only tables' in forecast.advice(lines, .7)[1]
  chosen, reason = forecast.advice(lines, .1)
  assert chosen is lines[3] and 'nothing fits' in reason


def test_measured_costs(monkeypatch):
  monkeypatch.setattr(forecast, '_MEASURED', ((60, 50, 400), (200, 100, 900), (80, 60, 1500)))
  monkeypatch.setattr(forecast, '_RANKED', (20, 300, 8))
  config = _config(**{'model.propagation': 'sampled', 'train.batch_size': 32})
  costs = forecast.measure(config)
  assert costs.product > 0 and min(costs.step, costs.number, costs.weight) >= 0
  assert costs.step + costs.number + costs.weight > 0
  log = forecast.random_log(60, 50, 400)
  assert len(np.unique(log.user)) == 60 and len(np.unique(log.item)) == 50
