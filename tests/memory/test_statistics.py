"""What is counted of history, against plain counts, and added block by block."""
import numpy as np
import pytest

from graphsane_tf.memory import statistics
from tests import logs


def _plain(context, half_life):
  """Dense counts of all rows of a context, one row after the other."""
  taken = np.zeros((context.num_users, context.num_items))
  profile = np.zeros_like(taken)
  users, items = context.rows(slice(0, context.num_rows))
  for user, item in zip(users, items):
    profile[user] *= .5 ** (1 / half_life) if half_life else 1.
    taken[user, item] = profile[user, item] = 1.
  newest = items[len(items) - int(np.ceil(len(items) / 8)):]
  return taken, profile, taken.T @ taken, np.bincount(newest, minlength=context.num_items)


def _assert_same(counted, expected):
  taken, profile, together, recent = expected
  np.testing.assert_array_equal(counted.taken.toarray(), taken)
  np.testing.assert_allclose(counted.profile.toarray(), profile, rtol=1e-5)
  np.testing.assert_array_equal(counted.together.toarray(), together)
  np.testing.assert_array_equal(counted.recent, recent)
  np.testing.assert_array_equal(counted.counts, np.diag(together))


@pytest.mark.parametrize('half_life', [0., 4.])
def test_counts_of_all_rows(half_life):
  context = logs.context_of(logs.random_log(rows=600), 2)
  _assert_same(statistics.of_all(context, half_life), _plain(context, half_life))


@pytest.mark.parametrize('half_life', [0., 4.])
def test_blocks_that_are_added_give_what_a_refit_gives(half_life):
  log = logs.random_log(rows=600)
  counted = statistics.empty(half_life)
  for index in range(4):
    context = logs.context_of(log, index)
    counted = statistics.added(counted, context)
    _assert_same(counted, _plain(context, half_life))
  again = statistics.of_all(logs.context_of(log, 3), half_life)
  # To the last bit, so that a run that is resumed ends with the same numbers.
  for name in ('taken', 'profile', 'together'):
    one, two = getattr(counted, name), getattr(again, name)
    assert (one.data == two.data).all() and (one.indices == two.indices).all(), name


@pytest.mark.parametrize('most', [3, 12])
def test_busy_users_are_counted_with_the_items_just_before(most, monkeypatch):
  monkeypatch.setattr(statistics, 'MAX_BEFORE', most)
  monkeypatch.setattr(statistics, '_CHUNK_PAIRS', 5 * most)
  log = logs.random_log(rows=600)
  counted = statistics.empty(4.)
  for index in range(4):
    context = logs.context_of(log, index)
    counted = statistics.added(counted, context)
    together = np.zeros((context.num_items, context.num_items))
    taken = {}
    for user, item in zip(*context.rows(slice(0, context.num_rows))):
      for other in taken.setdefault(user, [])[-most:]:
        together[item, other] += 1
        together[other, item] += 1
      together[item, item] += 1
      taken[user].append(item)
    np.testing.assert_array_equal(counted.together.toarray(), together)
    assert max(map(len, taken.values())) > most + 1
  again = statistics.of_all(logs.context_of(log, 3), 4.)
  np.testing.assert_array_equal(again.together.toarray(), counted.together.toarray())
