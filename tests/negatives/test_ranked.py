"""The ranking helper against a stable sort."""
import numpy as np
import pytest

from graphsane_tf import config as config_lib
from graphsane_tf.graph import csr
from graphsane_tf.negatives import ranked


def _oracle(scores, excluded, depth):
  """Row by row: a stable sort of the items that are left."""
  items = np.full((len(scores), depth), -1)
  for row, values in enumerate(scores):
    left = [k for k in np.argsort(-values, kind='stable') if k not in excluded[row]]
    items[row, :min(depth, len(left))] = left[:depth]
  return items


@pytest.mark.parametrize('depth', [1, 5, 12])
def test_top_keys_with_ties_and_signs(depth):
  rng = np.random.default_rng(0)
  scores = rng.integers(-2, 3, (30, 12)).astype(np.float32)
  scores[::2] *= .37
  scores[scores == 0] *= -1  # Minus zero equals zero.
  excluded = [set(rng.permutation(12)[:k % 12].tolist()) for k in range(30)]
  pairs = [(row, item) for row, items in enumerate(excluded) for item in items]
  items, values = ranked.top_keys(scores, tuple(np.array(pairs).T), depth)
  np.testing.assert_array_equal(items, _oracle(scores, excluded, depth))
  taken = np.take_along_axis(scores, np.maximum(items, 0), axis=1)
  np.testing.assert_array_equal(values, np.where(items >= 0, taken, -np.inf))


@pytest.mark.parametrize('depth', [1, 150, 2500])
def test_top_keys_of_many_columns(depth):
  """Enough of them for the selection to leave most unsorted."""
  scores = np.random.default_rng(0).normal(size=(100, 6000)).astype(np.float32)
  nothing = np.zeros(0, np.int64), np.zeros(0, np.int64)
  columns, best = ranked.top_keys(scores, nothing, depth)
  np.testing.assert_array_equal(columns, np.argsort(-scores, axis=1, kind='stable')[:, :depth])
  np.testing.assert_array_equal(best, -np.sort(-scores, axis=1)[:, :depth])


def test_rankings_of_some_users():
  rng = np.random.default_rng(1)
  # Whole numbers, whose products are exact.
  vectors, items = (rng.integers(-99, 100, (n, 6)).astype(np.float32) for n in (40, 90))
  excluded = csr.from_pairs(np.array([7, 7, 9]), np.array([3, 50, 0]), 40, 90)
  users = np.array([2, 7, 9, 30])
  rankings = ranked.Rankings(users, excluded)
  lists = rankings.rank(vectors, items, 50)
  assert rankings.rank(vectors, items, 50) is lists
  product = vectors @ items.T
  product[excluded.rows(), excluded.indices] = -np.inf
  want = np.argsort(-product, axis=1, kind='stable')[users, :50]
  np.testing.assert_array_equal(lists.items, want)
  np.testing.assert_array_equal(lists.users, users)
  assert rankings.take(vectors, items, 50) is lists.items
  # Other vectors are ranked anew, and so are the same ones once their lists have been taken.
  np.testing.assert_array_equal(rankings.rank(vectors, -items, 50).items[0, 0], product[2].argmin())
  np.testing.assert_array_equal(rankings.take(vectors, items, 50), want)


def test_start_rank():
  options = config_lib.resolved(config_lib.default_config()).pinsage
  assert ranked.start_rank(options, 100_000) == 201
  assert ranked.start_rank(options, 1_000) == 41
  assert ranked.start_rank(options, 3) == 1
  anywhere = config_lib.default_config()
  anywhere.pinsage.max_start_share = 1.
  # A band that began behind the last item would be empty.
  assert ranked.start_rank(config_lib.resolved(anywhere).pinsage, 40) == 40
