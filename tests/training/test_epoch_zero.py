"""An incremental block's model before training is a candidate like an epoch, if that is asked for."""
import json
import shutil

import numpy as np
import pytest

from graphsane_tf.training.block import SELECTION_METRIC
from tests import logs
from tests.runs import small_runs
from tests.training import test_stopping as stopping

pytestmark = pytest.mark.usefixtures('short_exports')


@pytest.fixture(name='base', scope='module')
def base_fixture(tmp_path_factory):
  trainer = stopping._make(tmp_path_factory.mktemp('base'), base_min_epochs=1, base_epochs=1)
  stopping._train(trainer, [.1])
  return trainer.model


def _validation(trainer, values):
  """A stand-in for validation, and the user tables that it was called with."""
  left, tables = list(values), []

  def validate(users, items, lists):
    del users, items, lists
    tables.append(trainer.model.backbone.user_table.numpy())
    return {SELECTION_METRIC: left.pop(0)}

  return validate, tables


# Validation values from epoch 0 on, as many as may be asked for, and (epochs run, best epoch, wait).
_TABLE = [
    ([.5, .4, .3, .9], {}, (2, 0, 2)),
    # As good is not better.
    ([.5, .5, .5, .9], {}, (2, 0, 2)),
    ([.3, .4, .3, .2, .9], {}, (3, 1, 2)),
    ([.5, .4, .6, .2, .1, .9], {}, (4, 2, 2)),
    # Something is always trained.
    ([.5, .4, .9], {'patience': 0, 'min_epochs': 0}, (1, 0, 1)),
    ([.5, .4, .3, .2, .9], {'min_epochs': 3}, (3, 0, 3)),
    ([0., 0., 0., .9], {}, (2, 0, 2)),
]


@pytest.mark.parametrize('values,settings,expected', _TABLE)
def test_epochs_run_and_epoch_kept(tmp_path, base, values, settings, expected):
  trainer = stopping._make(tmp_path, 1, base, epoch_zero=True, **{
      'patience': 2, 'min_epochs': 1, 'epochs': 9, **settings})
  grown = trainer.model.backbone.user_table.numpy()
  validate, tables = _validation(trainer, values)
  records = []
  state = trainer.train(validate, records.append)
  epochs, best, _ = expected
  assert (state['epoch'], state['best_epoch'], state['wait']) == expected
  assert [record['epoch'] for record in records] == list(range(epochs + 1))
  assert records[0]['losses'] == {} and records[0]['validation'] == {SELECTION_METRIC: values[0]}
  assert state['best_value'] == values[best] and state['best'] == f'epoch-{best}'
  np.testing.assert_array_equal(tables[0], grown)
  np.testing.assert_array_equal(trainer.model.backbone.user_table, tables[best])


@pytest.mark.parametrize('block,setting', [(1, False), (0, True)])
def test_by_default_and_in_the_base_block_there_is_none(tmp_path, base, block, setting):
  assert not logs.default_config().train.epoch_zero
  trainer = stopping._make(tmp_path, block, base if block else None, epochs=1, base_epochs=1,
                           **({'epoch_zero': True} if setting else {}))
  state, _ = stopping._train(trainer, [.1])
  assert state['best_epoch'] == 1


@pytest.mark.parametrize('values,best', [([.5, .4, .3], 0), ([.5, .6, .3, .3], 1)])
def test_a_kill_after_it(tmp_path, base, values, best):
  settings = {'epoch_zero': True, 'patience': 2, 'min_epochs': 1, 'epochs': 9}
  trainer = stopping._make(tmp_path, 1, base, **settings)

  def killed(record):
    raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    trainer.train(_validation(trainer, values[:1])[0], killed)
  trainer = stopping._make(tmp_path, 1, base, **settings)
  grown = trainer.model.backbone.user_table.numpy()
  trainer.model.backbone.user_table.assign(grown + 7.)
  validate, tables = _validation(trainer, values[1:])
  state = trainer.train(validate, lambda record: None)
  assert state['best_epoch'] == best and [r['epoch'] for r in state['records']] == list(range(len(values)))
  np.testing.assert_array_equal(tables[0], grown + 1.)
  np.testing.assert_array_equal(trainer.model.backbone.user_table, grown + best)


def test_a_run_in_which_only_the_graph_moves(tmp_path):
  """With a learning rate that changes no weight, no epoch is better; a killed run ends the same."""
  config = small_runs.settings(train__epoch_zero=True, train__learning_rate=1e-30)
  lines = []

  def after_epoch_zero(line):
    lines.append(line)
    if line.startswith('block 1 epoch  0/'):
      shutil.copytree(tmp_path / 'run', tmp_path / 'cut')

  small_runs.incremental.run(config, small_runs.LOG, tmp_path / 'run', log=after_epoch_zero)
  text = '\n'.join(lines)
  assert 'block 1 epoch  0/1  not trained  recall@20' in text
  assert 'block 1: no epoch of training was better than none, so today only graph and memory have moved.' in text
  assert 'best 0 in block 1: no epoch of training was better than none' in text
  again = small_runs.run(tmp_path / 'cut', config)
  assert 'block 1 epoch  0' not in again and 'only graph and memory have moved' in again
  for folder in ('run', 'cut'):
    results = json.loads((tmp_path / folder / 'results.json').read_text())
    records = [json.loads(line) for line in (tmp_path / folder / 'metrics.jsonl').read_text().splitlines()]
    assert [(r['block'], r['epoch']) for r in records] == [(0, 1), (1, 0), (1, 1)]
    assert [entry['best_epoch'] for entry in results['blocks']] == [1, 0]
    assert json.loads(small_runs.state_file(tmp_path / folder).read_text())['best'] == 'epoch-0'
  loaded = small_runs.incremental.IncrementalRun(config, small_runs.LOG, tmp_path / 'run').load_model(1)
  base = small_runs.incremental.IncrementalRun(config, small_runs.LOG, tmp_path / 'run').load_model(0)
  old = base.backbone.num_users
  np.testing.assert_array_equal(loaded.backbone.user_table[:old], base.backbone.user_table)
  # The same weights without an epoch.
  none = small_runs.settings(train__epochs=0)
  small_runs.run(tmp_path / 'none', none)
  kept = json.loads((tmp_path / 'none' / 'results.json').read_text())['blocks']
  assert [block['test'] for block in kept] == [block['test'] for block in results['blocks']]
  assert {block['epochs'] for block in kept[1:]} == {0}
