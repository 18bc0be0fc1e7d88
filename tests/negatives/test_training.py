"""Real short runs: each sampler's loss is logged; a resumed run ends like one that was not cut."""
import json

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import negatives
from graphsane_tf.data import prepare
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.evaluation import ranking
from graphsane_tf.runs import incremental
from graphsane_tf.training.store import BlockStore
from tests import logs

pytestmark = pytest.mark.usefixtures('short_exports')

QUICK = ('dns', 'sane')


@pytest.fixture(scope='module', name='base')
def _base(tmp_path_factory):
  """A run of the base block that the others take over."""
  log = prepare.load(DataSpec('drift', options={'size': 'small'}))
  folder = tmp_path_factory.mktemp('base') / 'run'
  incremental.run(_config('uniform'), log, folder, blocks=[0], log=lambda line: None)
  return log, folder


def _config(sampler, **changes):
  return logs.tiny_config(sampler=sampler, backbone='lightgcn', train__batch_size=512, blocks__num_incremental=3,
                          **changes)


@pytest.mark.parametrize('name', [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name in negatives.REGISTRY])
def test_run(name, base, tmp_path):
  log, folder = base
  config = _config(name, base_from=str(folder))
  results = incremental.run(config, log, tmp_path / 'run', blocks=[0, 1], log=lambda line: None)
  records = [json.loads(line) for line in (tmp_path / 'run' / 'metrics.jsonl').open()]
  loss_name = negatives.REGISTRY[name].loss_name
  for record in records:
    if record['block'] and name != 'uniform':
      assert np.isfinite(record['losses'][loss_name]) and record['losses'][loss_name] > 0
    assert np.isfinite(record['losses']['loss'])
  assert len(results['blocks']) == 2


class _Stop(Exception):
  pass


@pytest.mark.slow
@pytest.mark.parametrize('name', ['nscaching', 'pinsage', 'pns', 'esns', 'sane'])
def test_resume(name, base, tmp_path):
  """Cut after the first epoch of block 1, then run again: the same numbers."""
  log, folder = base
  config = _config(name, base_from=str(folder))
  whole = incremental.run(config, log, tmp_path / 'whole', blocks=[0, 1, 2], log=lambda line: None)

  def stop(line):
    if line.startswith('block 1 epoch  1'):
      raise _Stop

  with pytest.raises(_Stop):
    incremental.run(config, log, tmp_path / 'cut', log=stop)
  again = incremental.run(config, log, tmp_path / 'cut', log=lambda line: None)
  for one, other in zip(whole['blocks'], again['blocks']):
    assert one['test'] == other['test'] and one['validation'] == other['validation']


@pytest.mark.slow
@pytest.mark.parametrize('name,changes', [
    ('sane', {}),
    pytest.param('sane', {'sane_variant': 'adaptive', 'sane__size': 60}, marks=pytest.mark.slow),
    pytest.param('pns', {'pns__refresh_epochs': 1}, marks=pytest.mark.slow)])
def test_validation_that_shares_rankings_changes_nothing(name, changes, base, tmp_path, monkeypatch):
  log, folder = base
  config = _config(name, base_from=str(folder), sane__refresh_epochs=1, train__epochs=3,
                   train__min_epochs=3, **changes)
  original, shared = ranking.shortened, []

  def spy(*arguments):
    ids, found = original(*arguments)
    shared.append(found.mean())
    return ids, found

  monkeypatch.setattr(ranking, 'shortened', spy)
  one = incremental.run(config, log, tmp_path / 'shared', blocks=[0, 1], log=lambda line: None)
  # Two of three epochs are followed by a refresh.
  assert len(shared) == 2 and min(shared) > .3
  monkeypatch.setattr(negatives.REGISTRY[name], 'rank', lambda self, *vectors: None)
  other = incremental.run(config, log, tmp_path / 'alone', blocks=[0, 1], log=lambda line: None)
  assert len(shared) == 2
  for kept in ('epochs', 'best_epoch', 'test', 'sampler'):
    assert one['blocks'][1][kept] == other['blocks'][1][kept]
  # Lists of other users at once may differ where scores differ by rounding alone.
  for kept, value in one['blocks'][1]['validation'].items():
    assert value == pytest.approx(other['blocks'][1]['validation'][kept], rel=.01)
