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


def test_band_of_a_ranking():
  rng = np.random.default_rng(1)
  users, items = (rng.normal(size=(n, 6)).astype(np.float32) for n in (40, 90))
  excluded = csr.from_pairs(np.array([7, 7, 9]), np.array([3, 50, 0]), 40, 90)
  found, scores = ranked.ranked_items(users, items, excluded, 20, 50)
  product = users @ items.T
  product[excluded.rows(), excluded.indices] = -np.inf
  np.testing.assert_array_equal(found, np.argsort(-product, axis=1)[:, 20:50])
  want = np.take_along_axis(product, found, axis=1)
  np.testing.assert_allclose(scores, want, rtol=1e-4, atol=1e-5)


def test_start_rank():
  options = config_lib.resolved(config_lib.default_config()).pinsage
  assert ranked.start_rank(options, 100_000) == 201
  assert ranked.start_rank(options, 1_000) == 41
  assert ranked.start_rank(options, 3) == 1
