"""TensorFlow Recommenders' own top-k and metric agree with ours."""
import graphsane_tf  # Selects legacy Keras.
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_recommenders as tfrs

from graphsane_tf.evaluation import metrics, ranking
from graphsane_tf.graph import csr

USERS, ITEMS, CUTOFFS = 60, 90, (1, 5, 20)


@pytest.fixture(name='case', scope='module')
def _case():
  """Representations, seen items and held-out items, which are never seen ones."""
  rng = np.random.default_rng(0)
  user_vectors, item_vectors = (rng.normal(size=(size, 8)).astype(np.float32) for size in (USERS, ITEMS))
  kind = rng.random((USERS, ITEMS))
  return user_vectors, item_vectors, kind < .1, kind > .96


def _table(matrix):
  return csr.from_pairs(*np.nonzero(matrix), *matrix.shape)


def _index(item_vectors):
  return tfrs.layers.factorized_top_k.BruteForce(k=max(CUTOFFS)).index(tf.constant(item_vectors), tf.range(ITEMS))


def test_lists_are_those_of_brute_force_with_exclusions(case):
  user_vectors, item_vectors, seen, _ = case
  width = seen.sum(axis=1).max()
  excluded = np.array([np.pad(np.flatnonzero(row), (0, width - row.sum()), constant_values=-1) for row in seen])
  # Held by a name: its function holds it by a weak reference only.
  index = _index(item_vectors)
  _, wanted = index.query_with_exclusions(tf.constant(user_vectors), tf.constant(excluded, tf.int32), k=20)
  ids, _ = ranking.top_k(ranking.DotProduct(user_vectors, item_vectors), np.arange(USERS), _table(seen), 20)
  np.testing.assert_array_equal(ids, wanted)


def test_hits_are_those_of_factorized_top_k(case):
  """Its accuracy is the share of held-out pairs in the first k; ours are hits over each user's held-out items."""
  user_vectors, item_vectors, _, held_out = case
  users, items = np.nonzero(held_out)
  metric = tfrs.metrics.FactorizedTopK(_index(item_vectors), CUTOFFS)
  # By ids: without them it compares scores of two products, which round differently.
  metric.update_state(tf.constant(user_vectors[users]), tf.constant(item_vectors[items]), tf.constant(items, tf.int32))
  ids, _ = ranking.top_k(ranking.DotProduct(user_vectors, item_vectors), np.arange(USERS),
                         csr.from_pairs([], [], USERS, ITEMS), max(CUTOFFS))
  values = metrics.per_user(ids, _table(held_out), metrics.Options(cutoffs=CUTOFFS))
  count = held_out.sum(axis=1)
  assert 0 < (count == 0).sum() < USERS
  for k, accuracy in zip(CUTOFFS, metric.result()):
    assert 0 < float(accuracy) < 1
    assert np.nansum(values[f'recall@{k}'] * count) / count.sum() == pytest.approx(float(accuracy), rel=1e-6)
    assert np.nansum(values[f'precision@{k}']) * k / count.sum() == pytest.approx(float(accuracy), rel=1e-6)


def test_with_one_item_a_user_recall_is_factorized_top_k(case):
  user_vectors, item_vectors, _, _ = case
  items = np.arange(USERS) % ITEMS
  metric = tfrs.metrics.FactorizedTopK(_index(item_vectors), ks=[20])
  metric.update_state(tf.constant(user_vectors), tf.constant(item_vectors[items]), tf.constant(items, tf.int32))
  ids, _ = ranking.top_k(ranking.DotProduct(user_vectors, item_vectors), np.arange(USERS),
                         csr.from_pairs([], [], USERS, ITEMS), 20)
  held_out = csr.from_pairs(np.arange(USERS), items, USERS, ITEMS)
  assert metrics.evaluate(ids, held_out)['recall@20'] == pytest.approx(float(metric.result()[0]), rel=1e-6)
