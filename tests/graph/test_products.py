"""Sparse products of one step against plain gathers."""
import numpy as np
import tensorflow as tf

from graphsane_tf.graph import products


def test_weighted_sums_and_their_gradient():
  rng = np.random.default_rng(0)
  table = tf.constant(rng.normal(size=(7, 5)).astype(np.float32))
  # Repeated places, a row of zero weights, and rows of the table that nobody asks for.
  places = tf.constant([[0, 3, 3], [6, 0, 1], [2, 2, 2], [1, 6, 0]])
  weight = rng.random((4, 3)).astype(np.float32)
  weight[2] = 0.
  upstream = tf.constant(rng.normal(size=(4, 5)).astype(np.float32))

  def both(sums):
    with tf.GradientTape() as tape:
      tape.watch(table)
      result = sums(table)
    return result, tape.gradient(result, table, output_gradients=upstream)

  fast = both(tf.function(lambda rows: products.weighted_sums(rows, places, weight)))
  plain = both(lambda rows: tf.einsum('nf,nfd->nd', weight, tf.gather(rows, places)))
  for one, other in zip(fast, plain):
    np.testing.assert_allclose(one, tf.convert_to_tensor(other), rtol=1e-5, atol=1e-6)


def test_no_rows():
  table, empty = tf.ones([3, 2]), tf.zeros([0, 4])

  @tf.function
  def gradient():
    with tf.GradientTape() as tape:
      tape.watch(table)
      result = products.weighted_sums(table, tf.cast(empty, tf.int32), empty)
    return result, tape.gradient(result, table)

  result, found = gradient()
  assert result.shape == (0, 2)
  np.testing.assert_array_equal(found, np.zeros((3, 2)))


def test_rows_and_their_gradient():
  rng = np.random.default_rng(1)
  table = tf.constant(rng.normal(size=(6, 4)).astype(np.float32))
  places = tf.constant([5, 0, 5, 2])
  upstream = tf.constant(rng.normal(size=(4, 4)).astype(np.float32))
  found = []
  for gather in (products.rows_at, tf.gather):
    with tf.GradientTape() as tape:
      tape.watch(table)
      rows = gather(table, places)
    found.append((rows, tf.convert_to_tensor(
        tape.gradient(rows, table, output_gradients=upstream))))
  for one, other in zip(*found):
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_first_rows_and_their_gradient():
  rng = np.random.default_rng(2)
  table = tf.constant(rng.normal(size=(6, 3)).astype(np.float32))
  for number in (0, 4, 6):
    upstream = tf.constant(rng.normal(size=(number, 3)).astype(np.float32))
    with tf.GradientTape() as tape:
      tape.watch(table)
      rows = products.first_rows(table, tf.constant(number))
    np.testing.assert_array_equal(rows, table[:number])
    expected = np.zeros((6, 3), np.float32)
    expected[:number] = upstream
    np.testing.assert_array_equal(
        tape.gradient(rows, table, output_gradients=upstream), expected)


def test_a_table_and_its_first_rows():
  """Sums of both gradients have the bits that they have if first rows are a tensor of their own."""
  rng = np.random.default_rng(4)
  table = tf.constant(rng.normal(size=(50, 3)).astype(np.float32))
  weights = [tf.constant(rng.normal(size=(50, 3)).astype(np.float32)) for _ in range(2)]

  def gradient(number, both):
    with tf.GradientTape() as tape:
      tape.watch(table)
      rest, first = both(table, tf.constant(number))
      np.testing.assert_array_equal(first, table[:number])
      result = sum(tf.reduce_sum(rest * weight) for weight in weights) + tf.reduce_sum(first * weights[0][:number] * 7.)
    return tape.gradient(result, table)

  for number in (0, 20, 50):
    np.testing.assert_array_equal(
        gradient(number, products.parted),
        gradient(number, lambda rows, count: (rows, products.first_rows(rows, count))))


def test_gaps_and_their_gradient():
  rng = np.random.default_rng(3)
  table = tf.constant(rng.normal(size=(6, 3)).astype(np.float32))
  # A place twice, a node that is its own other, and one without another.
  places, others, present = np.array([4, 0, 4, 2]), np.array([1, 0, 5, 3]), np.array([1., 1., 1., 0.])
  upstream = rng.normal(size=(4, 3)).astype(np.float32)
  with tf.GradientTape() as tape:
    tape.watch(table)
    gaps = products.row_gaps(table, *(tf.constant(part) for part in (places, others)),
                             tf.constant(present, tf.float32))
  rows = table.numpy()
  np.testing.assert_allclose(
      gaps, present[:, None] * (rows[places] - rows[others]), rtol=1e-6, atol=1e-6)
  expected = np.zeros((6, 3))
  np.add.at(expected, places, present[:, None] * upstream)
  np.subtract.at(expected, others, present[:, None] * upstream)
  np.testing.assert_allclose(
      tape.gradient(gaps, table, output_gradients=upstream), expected, rtol=1e-5, atol=1e-6)
