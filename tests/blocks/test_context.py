"""What a block's context holds, against sets of rows."""
import dataclasses

import numpy as np
import pytest

from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.stream import BlockStream
from tests import logs


@pytest.fixture(name='log', scope='module')
def _log():
  return logs.random_log(rows=200, users=20, items=30)


def _pairs(table):
  return set(zip(table.rows().tolist(), table.indices.tolist()))


def _rows(log, start, stop):
  return set(zip(log.user[start:stop].tolist(), log.item[start:stop].tolist()))


@pytest.mark.parametrize('index', [0, 1, 3])
def test_tables_are_those_of_their_rows(log, index):
  stream = BlockStream(log)
  cuts = stream.cuts
  start, stop = cuts[index], cuts[index + 1]
  context = logs.context_of(log, index)
  assert context.index == index and context.num_history_rows == start
  assert (context.num_users, context.num_items) == (
      log.user[:stop].max() + 1, log.item[:stop].max() + 1)
  expected = {
      'block': _rows(log, start, stop), 'positives': _rows(log, start, stop),
      'previous': _rows(log, cuts[index - 1], start) if index else set(),
      'before': _rows(log, 0, start), 'history': _rows(log, 0, stop)}
  for name, pairs in expected.items():
    table = getattr(context, name)
    assert _pairs(table) == pairs, name
    assert (table.num_rows, table.num_columns) == (context.num_users, context.num_items)
  assert (context.num_rows, context.block_rows) == (stop, stop - start)
  np.testing.assert_array_equal(context.users, log.user[start:stop])
  np.testing.assert_array_equal(context.items, log.item[start:stop])
  np.testing.assert_array_equal(
      context.popularity, [np.sum(log.item[:stop] == item) for item in range(context.num_items)])
  np.testing.assert_array_equal(context.item_category, log.item_category[:context.num_items])
  assert (context.num_rows, context.block_rows) == (stop, stop - start)
  assert context.representation_dim == 0 and logs.context_of(log, index, 7).representation_dim == 7


def test_nodes_known_before(log):
  stream = BlockStream(log)
  first, second = logs.context_of(log, 0), logs.context_of(log, 1)
  assert (first.num_old_users, first.num_old_items) == (0, 0)
  before = stream.block(0)
  assert (second.num_old_users, second.num_old_items) == (before.num_users, before.num_items)


def test_later_rows_do_not_exist(log):
  context = logs.context_of(log, 1)
  stop = BlockStream(log).cuts[2]
  users, items = context.rows(slice(0, len(log)))
  assert len(users) == len(items) == stop
  np.testing.assert_array_equal(context.rows(slice(5, 9))[1], log.item[5:9])


def test_replayed_rows_are_positives_of_no_other_table(log):
  stream = BlockStream(log)
  start, stop = stream.cuts[1:3]
  context = contexts.cut(log, stream.block(1), stream.block(0), np.array([3, 0]))
  old, new = _rows(log, 0, 1) | _rows(log, 3, 4), _rows(log, start, stop)
  assert list(zip(context.users, context.items))[-2:] == [
      (log.user[row], log.item[row]) for row in (3, 0)]
  assert _pairs(context.positives) == old | new and _pairs(context.block) == new
  assert len(context.users) == stop - start + 2


def test_a_log_without_categories(log):
  bare = dataclasses.replace(log, item_category=None, category_names=None)
  assert contexts.cut(bare, BlockStream(bare).block(0), None).item_category is None


def test_nothing_can_be_set_later(log):
  context = logs.context_of(log, 1)
  for name in ('representation_dim', 'users', 'replayed'):
    with pytest.raises(dataclasses.FrozenInstanceError):
      setattr(context, name, 3)
