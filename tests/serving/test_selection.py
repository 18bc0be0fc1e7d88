"""The best of many scores against TensorFlow's own selection, and rows' values for their entries."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.serving import selection, tables


@pytest.mark.parametrize('num_items', [1, 7, 64, 101, 1000, 4099])
def test_best_are_those_of_tensorflow_with_ties_and_infinities(num_items):
  rng = np.random.default_rng(num_items)
  scores = rng.integers(-3, 4, (9, num_items)).astype(np.float32)
  scores[rng.random(scores.shape) < .3] = -np.inf
  scores[0], scores[1], scores[2, 1:] = -np.inf, 2., -np.inf
  best = tf.function(selection.best, input_signature=[tf.TensorSpec([None, num_items]), tf.TensorSpec([], tf.int32)],
                     autograph=False)
  for k in sorted({0, 1, min(3, num_items), min(20, num_items), num_items}):
    for got, wanted in zip(best(scores, k), tf.math.top_k(scores, k)):
      np.testing.assert_array_equal(got, wanted)


def test_groups_are_used_where_they_pay():
  """Otherwise the test above would compare TensorFlow with itself."""
  assert all(2 * 20 * selection.group_width(num_items) < num_items for num_items in (1000, 4099, 10_000, 1_000_000))
  assert [selection.group_width(num_items) for num_items in (1, 101, 10_000, 1_000_000)] == [8, 8, 16, 128]


def test_places_are_left_out():
  scores = tf.reshape(tf.range(12.), [3, 4])
  out = selection.without(scores, tf.constant([1, 1, 11], tf.int64)).numpy()
  assert np.argwhere(out == -np.inf).tolist() == [[0, 1], [2, 3]]
  np.testing.assert_array_equal(np.where(out == -np.inf, scores, out), scores)
  np.testing.assert_array_equal(selection.without(scores, tf.zeros([0], tf.int64)), scores)


def test_a_rows_value_for_each_of_its_entries():
  rng = np.random.default_rng(0)
  lengths = [3, 0, 1, 70_000, 0, 2]
  values = np.append(rng.standard_normal(4), [-0., np.inf]).astype(np.float32)
  splits = np.concatenate([[0], np.cumsum(lengths)])
  got = tables.repeated(values, splits).numpy()
  assert got.tobytes() == np.repeat(values, lengths).tobytes()
  assert tables.repeated(values[:0], splits[:1]).shape == [0]
