"""Tests of the chunked, tiled top-k."""
import graphsane_tf  # Selects legacy Keras.
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr

SIZES = [(1, 1), (3, 7), (64, 64), (65, 100), (100, 130), (512, 8_192)]


def _csr(matrix):
  return csr.from_pairs(*np.nonzero(matrix), *matrix.shape)


def _oracle(user_vectors, item_vectors, users, seen, k):
  """Dense scores, stable sort; for vectors whose products are exact."""
  scores = np.where(seen, -np.inf, user_vectors @ item_vectors.T)[users]
  scores = np.pad(scores, ((0, 0), (0, k)), constant_values=-np.inf)
  ids = np.argsort(-scores, axis=1, kind='stable')[:, :k]
  scores = np.take_along_axis(scores, ids, axis=1)
  return np.where(scores == -np.inf, -1, ids), scores


@pytest.mark.parametrize('chunk,tile', SIZES)
@pytest.mark.parametrize('k', [1, 20, 400])
def test_agrees_with_the_oracle_with_ties_and_full_users(chunk, tile, k):
  rng = np.random.default_rng(0)
  user_vectors = rng.integers(-1, 2, (150, 3)).astype(np.float32)
  item_vectors = rng.integers(-1, 2, (333, 3)).astype(np.float32)
  seen = rng.random((150, 333)) < 0.15
  seen[5], seen[6], seen[7, 1:] = True, False, True
  # A tile of one item takes a product for each user and item.
  users = rng.permutation(150)[:131] if tile > 1 else rng.permutation(8)
  ids, scores = ranking.top_k(
      ranking.DotProduct(user_vectors, item_vectors), users, _csr(seen), k, chunk, tile)
  wanted_ids, wanted_scores = _oracle(user_vectors, item_vectors, users, seen, k)
  np.testing.assert_array_equal(ids, wanted_ids)
  np.testing.assert_array_equal(scores, wanted_scores)
  assert ids.dtype == np.int32 and scores.dtype == np.float32


@pytest.mark.parametrize('dimension', [5, 128, 384])
@pytest.mark.parametrize('chunk,tile', SIZES)
def test_lists_are_right_within_the_rounding_of_a_product(chunk, tile, dimension):
  """With twins in the catalogue, whose scores any product may round differently."""
  rng = np.random.default_rng(1)
  count, num_items = (10, 97) if tile == 1 else (130, 997)
  item_vectors = rng.normal(size=(40, dimension)).astype(np.float32)[rng.integers(40, size=num_items)]
  user_vectors = rng.normal(size=(count, dimension)).astype(np.float32)
  ids, scores = ranking.top_k(ranking.DotProduct(user_vectors, item_vectors), np.arange(count),
                              csr.from_pairs([], [], count, num_items), 60, chunk, tile)
  exact = user_vectors.astype(np.float64) @ item_vectors.astype(np.float64).T
  bound = dimension * np.finfo(np.float32).eps * (np.abs(user_vectors) @ np.abs(item_vectors).T).max()
  assert all(len(set(row)) == 60 for row in ids)
  assert (np.diff(scores) <= 0).all()
  assert (np.diff(ids)[np.diff(scores) == 0] > 0).all()
  np.testing.assert_allclose(scores, np.take_along_axis(exact, ids, axis=1), rtol=0, atol=bound)
  np.testing.assert_allclose(scores, -np.sort(-exact, axis=1)[:, :60], rtol=0, atol=bound)


def test_all_negative_scores_are_not_beaten_by_padding():
  ids, scores = ranking.top_k(ranking.DotProduct(np.ones((2, 4)), -np.ones((3, 4))), np.arange(2),
                              csr.from_pairs([0], [0], 2, 3), 4)
  np.testing.assert_array_equal(ids, [[1, 2, -1, -1], [0, 1, 2, -1]])
  np.testing.assert_array_equal(scores[1], [-4, -4, -4, -np.inf])


def test_no_users():
  ids, scores = ranking.top_k(ranking.DotProduct(np.ones((2, 4)), np.ones((3, 4))), np.zeros(0, int),
                              csr.from_pairs([], [], 2, 3), 2)
  assert ids.shape == scores.shape == (0, 2)


@pytest.mark.parametrize('k', [5, 40])
def test_a_device_gives_the_same_lists_and_is_traced_once(k):
  """TensorFlow's device is the CPU here; whole numbers, whose products are exact, so that both round alike."""
  rng = np.random.default_rng(2)
  users, items = rng.integers(-9, 10, (200, 16)), rng.integers(-9, 10, (300, 16))
  seen = _csr(rng.random((200, 300)) < 0.1)
  scorer = ranking.DotProduct(users, items)
  first = ranking.top_k(scorer, np.arange(200), seen, k, 64, 128, on_device=False)
  for on_device in (False, True, True):
    lists = ranking.top_k(scorer, np.arange(200), seen, k, 64, 128, on_device=on_device)
    for one, two in zip(first, lists):
      np.testing.assert_array_equal(one, two)
  ranking.top_k(ranking.DotProduct(users[:50, :7], items[:, :7]), np.arange(50), seen, 5, on_device=True)
  assert ranking._masked_scores.experimental_get_tracing_count() == 1


def test_a_device_ranks_with_top_k_of_tensorflow(monkeypatch):
  scorer = ranking.DotProduct(np.eye(3, 4), np.ones((5, 4)))
  monkeypatch.delattr(ranking.topk, '_threshold')
  ids, _ = ranking.top_k(scorer, np.arange(3), csr.from_pairs([1], [0], 3, 5), 2, on_device=True)
  np.testing.assert_array_equal(ids, [[0, 1], [1, 2], [0, 1]])


def test_without_a_gpu_the_host_ranks():
  assert ranking.has_gpu() == bool(tf.config.list_physical_devices('GPU'))
