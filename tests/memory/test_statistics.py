"""What is counted of history, against plain counts, and added block by block."""
import numpy as np
import pytest

from graphsane_tf.memory import statistics
from tests import logs


def _plain(context, half_age):
  """Dense counts of all rows of a context, one row after the other."""
  taken = np.zeros((context.num_users, context.num_items))
  profile = np.zeros_like(taken)
  users, items = context.rows(slice(0, context.num_rows))
  for row, (user, item) in enumerate(zip(users, items)):
    since = (context.num_rows - 1 - row) / context.num_rows
    profile[user, item] = half_age / (half_age + since) if half_age else 1.
    taken[user, item] = 1.
  newest = items[len(items) - int(np.ceil(len(items) / 8)):]
  return taken, profile, taken.T @ taken, np.bincount(newest, minlength=context.num_items)


def _assert_same(counted, expected, half_age):
  taken, profile, together, recent = expected
  np.testing.assert_array_equal(counted.taken.toarray(), taken)
  np.testing.assert_allclose(counted.profile(half_age).toarray(), profile, rtol=1e-5)
  np.testing.assert_array_equal(counted.together.toarray(), together)
  np.testing.assert_array_equal(counted.recent, recent)
  np.testing.assert_array_equal(counted.counts, np.diag(together))


@pytest.mark.parametrize('half_age', [0., .1])
def test_counts_of_all_rows(half_age):
  context = logs.context_of(logs.random_log(rows=600), 2)
  _assert_same(statistics.of_all(context), _plain(context, half_age), half_age)


def test_an_item_of_half_age_counts_half():
  log = logs.interactions_of(np.arange(101), np.zeros(101, int))
  context = logs.context_of(log, 0)
  age = .1
  rows = context.num_rows
  values = statistics.of_all(context).profile(age).toarray()[:, 0]
  assert values[-1] == 1 and values[0] == pytest.approx(age / (age + (rows - 1) / rows))
  assert (np.diff(values) > 0).all()


@pytest.mark.parametrize('half_age', [0., .1])
def test_blocks_that_are_added_give_what_a_refit_gives(half_age):
  log = logs.random_log(rows=600)
  counted = statistics.empty()
  for index in range(4):
    context = logs.context_of(log, index)
    counted = statistics.added(counted, context)
    _assert_same(counted, _plain(context, half_age), half_age)
  again = statistics.of_all(logs.context_of(log, 3))
  # To the last bit, so that a run that is resumed ends with the same numbers.
  for one, two in ((counted.row, again.row), (counted.together, again.together),
                   (counted.profile(half_age), again.profile(half_age))):
    assert (one.data == two.data).all() and (one.indices == two.indices).all()


@pytest.mark.parametrize('most', [3, 12])
def test_busy_users_are_counted_with_the_items_just_before(most, monkeypatch):
  monkeypatch.setattr(statistics, 'MAX_BEFORE', most)
  monkeypatch.setattr(statistics, '_CHUNK_PAIRS', 5 * most)
  log = logs.random_log(rows=600)
  counted = statistics.empty()
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
  again = statistics.of_all(logs.context_of(log, 3))
  np.testing.assert_array_equal(again.together.toarray(), counted.together.toarray())
