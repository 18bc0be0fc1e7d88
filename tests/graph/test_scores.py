"""Pair scores and their sparse gradients against the plain computation."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.graph.scores import gathered_l2_loss, pair_scores


@pytest.mark.parametrize('width', [4, 80])
def test_scores_and_gradients_equal_the_plain_computation(width):
  rng = np.random.default_rng(0)
  users = tf.constant(rng.normal(size=(6, 5)).astype(np.float32))
  table = tf.constant(rng.normal(size=(9, 5)).astype(np.float32))
  items = tf.constant(rng.integers(9, size=(6, width)).astype(np.int32))
  items = tf.concat([items, items[:, :1]], axis=1)  # The same item twice in a row.
  weight = tf.constant(rng.normal(size=(6, width + 1)).astype(np.float32))

  def both(function):
    with tf.GradientTape() as tape:
      tape.watch([users, table])
      scores = function()
      loss = tf.reduce_sum(weight * scores)
    return scores, tape.gradient(loss, [users, table])

  fast, fast_gradient = both(tf.function(lambda: pair_scores(users, table, items)))
  plain, plain_gradient = both(lambda: tf.einsum('bd,bnd->bn', users, tf.gather(table, items)))
  np.testing.assert_allclose(fast, plain, atol=1e-5)
  for mine, theirs in zip(fast_gradient, plain_gradient):
    np.testing.assert_allclose(mine, tf.convert_to_tensor(theirs), atol=1e-5)


def test_l2_loss_counts_a_row_as_often_as_it_occurs():
  rng = np.random.default_rng(0)
  table = tf.constant(rng.normal(size=(5, 3)).astype(np.float32))
  places = tf.constant([[0, 2, 2], [4, 0, 2]])
  with tf.GradientTape() as tape:
    tape.watch(table)
    loss = 3. * gathered_l2_loss(table, places)
  count = np.array([2., 0., 3., 0., 1.])[:, None]
  np.testing.assert_allclose(loss, 1.5 * np.sum(count * table.numpy() ** 2), rtol=1e-5)
  np.testing.assert_allclose(tape.gradient(loss, table), 3. * count * table.numpy(), rtol=1e-5)


def test_no_pairs_have_no_gradient():
  users, table = tf.zeros([0, 5]), tf.ones([9, 5])

  @tf.function
  def gradients():
    with tf.GradientTape() as tape:
      tape.watch([users, table])
      scores = pair_scores(users, table, tf.zeros([0, 3], tf.int32))
    return tape.gradient(scores, [users, table])

  user_gradient, item_gradient = gradients()
  assert user_gradient.shape == (0, 5)
  np.testing.assert_array_equal(item_gradient, np.zeros((9, 5)))
