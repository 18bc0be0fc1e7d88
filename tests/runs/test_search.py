"""The search's own arithmetic: beta, the values it tries, and its report."""
import types

import pytest

from graphsane_tf.blocks.stream import BlockStream
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.reporting import tables
from graphsane_tf.runs import tuning
from tests import logs


@pytest.mark.parametrize('losses,beta', [
    ({'bpr': 6., 'sane': 1.5, 'kl': .5}, 15.),
    ({'bpr': 6., 'kl': .7}, 8.6),  # Two digits.
    ({'bpr': 2., 'sane': 1., 'kl': 1e-9}, 3e6),  # Not below a KL of 1e-6.
    ({'bpr': 2., 'sane': 1.}, None)])
def test_beta(losses, beta):
  assert tuning.matching_beta(losses) == beta


def test_what_is_searched():
  """The ranges of the deployment appendix."""
  edges = {
      'clustering.num_clusters': ((5, 25), (4, 26)), 'clustering.beta': ((.001, .01, 100.), (.0009, 101.)),
      'sane.size': ((50, 100, 300), (49, 200)),
      'sane.strength': ((.1, 10.), (.09, 10.1)), 'train.num_sampler_negatives': ((1, 5), (0, 6)),
      'sane.start_rank': ((1, 21, 51, 101, 201, 401), (0, 11, 500)),
      'train.learning_rate': ((2e-4, 5e-3), (1e-4, 6e-3))}
  assert edges.keys() == tuning.SPACE.keys()
  for name, (inside, outside) in edges.items():
    assert all(tuning.contains(tuning.SPACE[name], value) for value in inside), name
    assert not any(tuning.contains(tuning.SPACE[name], value) for value in outside), name
  assert tuning.SPACE['clustering.num_clusters'].step == 5
  assert all(tuning.SPACE[name].log for name in ('sane.strength', 'clustering.beta', 'train.learning_rate'))


class _Study:
  """Three trials that have ended, one of them pruned."""

  def __init__(self, start):
    trial = lambda params, value: types.SimpleNamespace(
        params=params, value=value, user_attrs={'beta': .5})
    self.best = trial({**start, 'train.num_sampler_negatives': 4}, .3)
    self._ended = [trial({**start, 'sane.size': 300}, .1), trial(start, .2), self.best]

  def get_trials(self, states):
    return self._ended[:1] if len(states) == 1 else self._ended


def test_the_report_of_a_search(tmp_path):
  tuner = tuning.Tuner(logs.tiny_config(), logs.random_log(), DataSpec('test'), tmp_path / 'tune',
                       log=lambda line: None)
  study = _Study(tuner._start())
  found = tuner._report(study, study.best, {'average': {'recall@20': .25}})
  cells = dict(found['cells'])
  assert cells['uniform negatives (N1)'] == 10 - 4
  # One of the values that were tried; the appendix's search matches it, and says with what.
  assert cells['clustering.beta'] == .01 and 'beta' not in found['note']
  assert cells['train.num_sampler_negatives'] == 4
  assert (found['validation'], found['start'], found['test']) == (.3, .2, {'recall@20': .25})
  assert (found['trials'], found['pruned']) == (3, 1)
  assert cells['test Recall@20'] == .25
  assert [row[-1] for row in found['tried']['cells']] == [.3, .2, .1]
  assert cells['validation Recall@20'] == .3
  assert cells['validation Recall@20 of the starting values'] == .2


def test_the_grid_has_the_values_of_the_sensitivity_tables():
  for field, name in (('clustering.num_clusters', 'clusters_k'), ('sane.size', 'reservoir_q')):
    table, = tables.select([name])
    assert {row.overrides[field] for row in table.rows} == set(tuning.GRID[field])
  assert len(tuning.points(tuning.GRID)) == 15
  assert tuning.points({'a': (1, 2), 'b': (3,)}) == [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]


@pytest.mark.parametrize('base,blocks,note', [
    (.6, 4, True), (.7, 4, True), (.8, 2, True), (.8, 4, False), (.91, 1, False)])
def test_a_base_block_of_ten_blocks_is_advised(base, blocks, note):
  log = logs.random_log(rows=900, users=40, items=60)
  assert bool(tuning.size_note(BlockStream(log, base, blocks))) == note
