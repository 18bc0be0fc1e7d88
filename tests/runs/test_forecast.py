"""The forecast's arithmetic, and the command on tiny logs."""
import numpy as np
import pytest

from graphsane_tf import config as config_lib
from graphsane_tf.runs import forecast
from graphsane_tf.training import propagation
from graphsane_tf.training.propagation import Work


def _config(**fields):
  config = config_lib.default_config()
  config.update_from_flattened_dict({'backbone': 'lightgcn', 'model.embedding_dim': 8, **fields})
  return config_lib.resolved(config)


def test_costs_are_found_again():
  works = [Work(1., 1e5, 0., 4e4, 0., 2e6), Work(1., 3e6, 0., 1e5, 0., 1e5), Work(1., 5e5, 0., 5e6, 0., 5e5),
           Work(1., 1e6, 0., 1e6, 0., 9e6)]
  costs = Work(2e-3, 4e-9, 0., 3e-9, 0., 1e-9)
  seconds = [work.cost(costs) for work in works]
  # What is never done costs nothing.
  np.testing.assert_allclose(forecast.fitted(works, seconds).amounts, costs.amounts, rtol=1e-6)
  assert min(forecast.fitted(works[:3], [1., 2., .1]).amounts) >= 0.


def test_lines_by_hand(monkeypatch):
  config = _config(**{'model.propagation': 'sampled', 'train.batch_size': 10, 'train.num_negatives': 3,
                      'train.num_sampler_negatives': 1, 'train.epochs': 5})
  shape = forecast.Shape(1000, 500, 20_000, 95)
  kind, done = forecast.amounts(config, shape)
  assert kind == 'sampled' and done == propagation.work(config, 1000, 500, 20_000, 0)['sampled']
  assert forecast.amounts(_config(), forecast.Shape(2000, 2000, 400_000, 95))[0] == 'sampled'
  thin = forecast.Shape(20_000, 16_000, 60_000, 95)
  assert forecast.amounts(_config(), thin) == ('whole', propagation.work(_config(), 20_000, 16_000, 60_000, 0)['whole'])
  monkeypatch.setattr(forecast, 'amounts', lambda *_: ('sampled', Work(1., 5600., 0., 300., 0., 12_000.)))
  costs = forecast.Costs(Work(.2, 2e-3, 0., 1e-2, 0., 2e-4), 2e-6, 2.)
  lines = {(line['strategy'], line['workers']): line for line in forecast.forecast(config, shape, costs, 1e4)}
  alone, two, served = (lines[key] for key in (('none', 1), ('multiworker', 2), ('parameter servers', 2)))
  # Seconds of the processor, on two cores: .1 for the step, 5.6 + 1.5 for rows, 1.2 for weights.
  assert alone['step'] == pytest.approx(.1 + 7.1 + 1.2) and alone['network'] == 0
  ranked = 95 * 500 * 8 * 1e-6
  assert alone['block'] == pytest.approx(5 * (10 * alone['step'] + ranked))
  assert two['network'] == 4 * (12_000 + 50 * 8)
  assert two['step'] == pytest.approx(.1 + 3.55 + 1.2 + two['network'] / 1e4)
  assert served['network'] == 4 * 5600 and served['step'] == pytest.approx(.1 + 3.55 + .6 + 2.24)
  assert alone['memory'] - served['memory'] == pytest.approx(20 * 6000 + 12 * 2800)
  monkeypatch.setattr(forecast, 'amounts', lambda *_: ('whole', Work(1., 5600., 900., 0., 0., 12_000.)))
  whole = forecast.forecast(config, shape, costs, 1e4)
  assert {line['strategy'] for line in whole} == {'none', 'multiworker'}
  assert whole[1]['step'] > whole[0]['step']


def test_nodes_have_nearest_neighbours():
  config = _config(backbone='mgccf', **{'model.propagation': 'sampled'})
  assert forecast.amounts(config, forecast.Shape(1000, 500, 9000, 95))[1] == propagation.work(
      config, 1000, 500, 9000, 1500 * config.model.num_knn)['sampled']


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
  assert costs.product > 0 and costs.cores > 0 and min(costs.units.amounts) >= 0
  assert sum(costs.units.amounts) > 0 and costs.units.multiplied == costs.units.missed == 0
  log = forecast.random_log(60, 50, 400)
  assert len(np.unique(log.user)) == 60 and len(np.unique(log.item)) == 50
