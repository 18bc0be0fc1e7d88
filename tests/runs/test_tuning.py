"""The search: beta by the losses' scale, resumable, test rows touched once."""
import numpy as np
import optuna
import pytest

from graphsane_tf.config import resolved
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from graphsane_tf.runs import tuning
from graphsane_tf.runs import incremental
from tests import logs

_LOG = logs.random_log(rows=900, users=40, items=60)


def _config(**changes):
  return logs.tiny_config(backbone='lightgcn', blocks__num_incremental=3, train__epochs=1,
                          train__base_epochs=1, sane__size=50, clustering__num_clusters=5,
                          **changes)


def _tuner(folder, **changes):
  return tuning.Tuner(_config(**changes), _LOG, DataSpec('test'), folder, log=lambda line: None)


@pytest.mark.fault('bad configuration value')
@pytest.mark.parametrize('change, sentence', [
    ({'clustering__beta': 0.}, 'config.clustering.beta must be positive'),
    ({'train__num_negatives': 4}, 'config.train.num_negatives is 4; it must be at least 5'),
    ({'peer': 'ease'}, '--peer=ease has no meaning for a search'),
    ({'model__l2': -1.}, 'config.model.l2 is -1.0')])
def test_a_search_that_cannot_be_made_leaves_nothing(change, sentence, tmp_path):
  with pytest.raises(UserError, match=sentence):
    _tuner(tmp_path / 'search', **change)
  assert not list(tmp_path.iterdir())


def test_beta_makes_the_terms_equal(tmp_path):
  config = _config(sampler='sane')
  base = incremental.IncrementalRun(config, _LOG, tmp_path / 'base', log=lambda line: None)
  base.run([0])
  model = base.load_model(0)
  losses = tuning.first_losses(resolved(config), base.context(1), model, tmp_path / 'none')
  config.clustering.beta = tuning.matching_beta(losses)
  again = tuning.first_losses(resolved(config), base.context(1), model, tmp_path / 'none')
  np.testing.assert_allclose(again['kl'], losses['kl'], rtol=1e-4)
  np.testing.assert_allclose(config.clustering.beta * again['kl'], again['bpr'] + again['sane'],
                             rtol=.06)
  assert not (tmp_path / 'none').exists()
  config.clusters = 'kmeans'
  assert tuning.matching_beta(tuning.first_losses(
      resolved(config), base.context(1), model, tmp_path / 'none')) is None


def test_beta_goes_with_any_ranking_loss():
  assert tuning.matching_beta({'softmax': 6., 'sane': 1., 'kl': .01}) == 700
  assert tuning.matching_beta({'bpr': 6., 'sane': 1., 'l2': 3., 'kl': .01}) == 700


def test_first_losses_are_those_of_the_first_step(tmp_path):
  config = _config(sampler='sane', train__loss='softmax', train__batch_size=64)
  base = incremental.IncrementalRun(config, _LOG, tmp_path / 'base', log=lambda line: None)
  base.run([0])
  model, context = base.load_model(0), base.context(1)
  losses = tuning.first_losses(resolved(config), context, model, tmp_path / 'none')
  trainer = tuning.BlockTrainer(resolved(config), context, model, tuning.BlockStore(tmp_path / 'own', 1),
                                lambda line: None)
  trainer.sampler.refresh(*trainer.represent(), 0)
  order, seed, _ = trainer.plan(0)
  sums = trainer.run_steps(order, seed, 0, 1).numpy()
  first = dict(zip(trainer.step.loss_names, sums))
  # The same pairs, with other draws of negatives: the loss of the clusters draws none.
  np.testing.assert_allclose(losses['kl'] * config.clustering.beta, first['kl'], rtol=1e-4)
  assert 'softmax' in losses


def test_interrupted_search_goes_on_and_tests_once(tmp_path, monkeypatch):
  rows = []
  evaluate = incremental.IncrementalRun.evaluate

  def noted(run, context, held, *vectors):
    rows.append((run.workdir.relative_to(tmp_path).parts[1], context.index, held))
    return evaluate(run, context, held, *vectors)

  monkeypatch.setattr(incremental.IncrementalRun, 'evaluate', noted)
  report, reports = optuna.Trial.report, []

  def cut(trial, value, step):
    reports.append((trial.number, step))
    if len(reports) == 3:
      raise KeyboardInterrupt
    return report(trial, value, step)

  monkeypatch.setattr(optuna.Trial, 'report', cut)
  with pytest.raises(KeyboardInterrupt):
    _tuner(tmp_path / 'tune').run(2)
  kept = list((tmp_path / 'tune' / 'trials').iterdir())
  assert len(kept) == 1
  found = _tuner(tmp_path / 'tune').run(2)
  assert found['trials'] == 2 and 0 <= found['validation'] <= 1 and found['start'] is not None
  assert found['validation'] >= found['start']
  # Trial 1 was cut off after its first block, which the second attempt reads.
  study = optuna.load_study(study_name='tune', storage=f'sqlite:///{tmp_path}/tune/study.db')
  states = [trial.state.name for trial in study.trials]
  assert states[1] == 'FAIL' and study.trials[1].params == study.trials[2].params
  stream = incremental.IncrementalRun(_config(), _LOG, tmp_path / 'x', log=lambda line: None).stream
  for place, index, held in rows:
    if place == 'trials':
      assert held == stream.block(index).validation
  assert not list((tmp_path / 'tune' / 'trials').iterdir())
  before = len(rows)
  assert _tuner(tmp_path / 'tune').run(2) == found and len(rows) == before
  with pytest.raises(UserError, match='another configuration'):
    _tuner(tmp_path / 'tune', seed=1)


def test_values_that_the_search_cannot_try_are_left_to_it(tmp_path):
  tuner = _tuner(tmp_path / 'tune')
  assert tuner._start() == {  # pylint: disable=protected-access
      'clustering.num_clusters': 5, 'clustering.beta': .01, 'sane.size': 50, 'sane.strength': 1.,
      'train.num_sampler_negatives': 2, 'sane.start_rank': 201, 'train.learning_rate': 1e-3}
  assert not tuning.contains(tuning.SPACE['sane.size'], 20)


def test_the_appendix_tunes_the_backbone_first_and_then_a_grid(tmp_path, monkeypatch):
  monkeypatch.setattr(tuning, 'BACKBONE', {'train.base_learning_rate': (1e-9, 3e-2)})
  monkeypatch.setattr(tuning, 'GRID', {'clustering.num_clusters': (5,), 'sane.size': (50, 100)})
  tested = []
  evaluate = incremental.IncrementalRun.evaluate
  monkeypatch.setattr(incremental.IncrementalRun, 'evaluate', lambda run, context, held, *vectors: (
      tested.append(run.workdir.name), evaluate(run, context, held, *vectors))[1])
  lines = []
  def tuner():
    return tuning.Tuner(_config(), _LOG, DataSpec('test'), tmp_path / 'tune', log=lines.append, search='appendix')
  found = tuner().run(1)
  cells = dict(found['cells'])
  backbones = [line for line in lines if line.startswith('backbone ')]
  values = [float(line.split()[-1]) for line in backbones]
  assert len(values) == 2 and cells['train.base_learning_rate'] == (1e-9, 3e-2)[int(np.argmax(values))]
  assert found['trials'] == 2 and found['pruned'] == 0 and cells['clustering.num_clusters'] == 5
  assert cells['uniform negatives (N1)'] == 8
  tried = found['tried']
  assert tried['heads'] == ['clustering.num_clusters', 'sane.size', 'clustering.beta', 'validation Recall@20']
  assert [row[:2] for row in sorted(tried['cells'])] == [[5, 50], [5, 100]]
  assert tried['cells'][0][-1] == max(row[-1] for row in tried['cells']) == found['validation']
  trials = [line for line in lines if line.startswith('trial ') and 'beta' in line]
  assert sorted(line.split()[line.split().index('size') + 1] for line in trials) == ['100', '50']
  # Only the base run, which is evaluated as every run is, and the chosen values see test rows.
  assert {name.split('-')[0] for name in tested} == {'base', 'chosen'}
  assert sum(line.startswith('note: the base block has 4.5 times the rows of block 1') for line in lines) == 1
  before = len(tested)
  assert tuner().run(1) == found and len(tested) == before
  with pytest.raises(UserError, match='another kind of search'):
    _tuner(tmp_path / 'tune')
