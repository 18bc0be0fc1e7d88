"""When training stops and which epoch it keeps: a table of validation values and what they lead to."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.config import resolved
from graphsane_tf.training.block import SELECTION_METRIC, BlockTrainer
from graphsane_tf.training.store import BlockStore
from tests import logs

_NAN = float('nan')


def _make(folder, block=0, previous=None, **settings):
  """A trainer whose steps only move the users' table, because tracing real ones takes a second."""
  config = resolved(logs.tiny_config(
      backbone='lightgcn', model__embedding_dim=2, model__num_layers=1,
      **{f'train__{name}': value for name, value in settings.items()}))
  log = logs.random_log(rows=60, users=8, items=12)
  trainer = BlockTrainer(config, logs.context_of(log, block), previous, BlockStore(folder, block),
                         log=lambda line: None)
  table = trainer.model.backbone.user_table
  trainer.step.loss_names = ['loss']

  def run_steps(order, seed, first, count):
    del order, seed, first, count
    table.assign_add(tf.ones_like(table))
    return tf.ones([1])

  trainer.run_steps = run_steps
  return trainer


def _train(trainer, values):
  """Trains with the given validation values; returns the state and every epoch's user table."""
  left, tables = list(values), []

  def validate(users, items, lists):
    del users, items, lists
    tables.append(trainer.model.backbone.user_table.numpy())
    return {SELECTION_METRIC: left.pop(0)}

  records = []
  state = trainer.train(validate, records.append)
  assert [record['epoch'] for record in records] == list(range(1, len(tables) + 1))
  assert state['epoch'] == len(tables) and state['stopped']
  return state, tables


# (validation values, as many as may be asked for), settings, (epochs run, best epoch, wait).
_TABLE = [
    # It stops with the second epoch in a row that is not better, not later.
    ([.1, .3, .2, .2, .9], {}, (4, 2, 2)),
    ([.3, .2, .1, .9], {}, (3, 1, 2)),
    # A better epoch in between starts the count anew.
    ([.1, .3, .2, .4, .3, .2, .9], {}, (6, 4, 2)),
    # As good is not better, and the first of two equals is kept.
    ([.3, .3, .3, .9], {}, (3, 1, 2)),
    ([.3, .2, .3, .9], {}, (3, 1, 2)),
    # Zeros are values: the first epoch is better than none.
    ([0., 0., 0., .9], {}, (3, 1, 2)),
    # Patience 1 and 0.
    ([.1, .2, .2, .9], {'patience': 1}, (3, 2, 1)),
    ([.1, .9], {'patience': 0}, (1, 1, 0)),
    ([.1, .2, .3, .9], {'patience': 0, 'min_epochs': 3}, (3, 3, 0)),
    # At most max_epochs, however much better it still gets.
    ([.1, .2, .3, .4, .9], {'max_epochs': 4}, (4, 4, 0)),
    ([.2, .1, .9], {'max_epochs': 2}, (2, 1, 1)),
    ([.1, .9], {'max_epochs': 1}, (1, 1, 0)),
    # At least min_epochs; epochs that were not better before count.
    ([.3, .2, .1, .2, .1, .9], {'min_epochs': 5}, (5, 1, 4)),
    ([.3, .2, .1, .4, .3, .5, .9], {'min_epochs': 4, 'max_epochs': 6}, (6, 6, 0)),
    ([.3, .2, .1, .4, .3, .2, .9], {'min_epochs': 4}, (6, 4, 2)),
    # max_epochs wins over min_epochs.
    ([.3, .2, .1, .9], {'min_epochs': 5, 'max_epochs': 3}, (3, 1, 2)),
    # What is no number is never better, and never the best.
    ([.1, _NAN, .2, _NAN, _NAN, .9], {}, (5, 3, 2)),
    ([_NAN, .1, .1, .1, .9], {}, (4, 2, 2)),
]


@pytest.mark.parametrize('values,settings,expected', _TABLE)
def test_epochs_run_and_epoch_kept(tmp_path, values, settings, expected):
  settings = {'min_epochs': 1, 'max_epochs': 9, 'patience': 2, **settings}
  trainer = _make(tmp_path, base_min_epochs=settings['min_epochs'], patience=settings['patience'],
                  base_epochs=settings['max_epochs'])
  state, tables = _train(trainer, values)
  epochs, best, _ = expected
  assert (state['epoch'], state['best_epoch'], state['wait']) == expected
  assert state['best_value'] == values[best - 1]
  assert state['validation'] == {SELECTION_METRIC: values[best - 1]}
  # The weights are the best epoch's, which differ from those of every other epoch.
  same = [np.array_equal(trainer.model.backbone.user_table, table) for table in tables]
  assert same == [number == best for number in range(1, epochs + 1)]


@pytest.mark.parametrize('values,expected', [
    ([.3, .2, .1, .9], (3, 1, 2)), ([.1, .2, .3, .4, .9], (4, 4, 0))])
def test_a_later_block_has_its_own_limits(tmp_path, values, expected):
  """Fewest and most epochs of an incremental block are not those of the base block."""
  base = _make(tmp_path, base_min_epochs=1, base_epochs=1)
  _train(base, [.1])
  trainer = _make(tmp_path, 1, base.model, patience=1, base_min_epochs=7, base_epochs=8, min_epochs=3,
                  epochs=4)
  state, _ = _train(trainer, values)
  assert (state['epoch'], state['best_epoch'], state['wait']) == expected
