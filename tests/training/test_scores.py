"""The sparse gradient of pair scores against the plain one."""
import numpy as np
import tensorflow as tf

from graphsane_tf.training.scores import pair_scores


def test_scores_and_gradients_equal_the_plain_computation():
  rng = np.random.default_rng(0)
  users = tf.constant(rng.normal(size=(6, 5)).astype(np.float32))
  table = tf.constant(rng.normal(size=(9, 5)).astype(np.float32))
  items = tf.constant(rng.integers(9, size=(6, 4)).astype(np.int32))
  items = tf.concat([items, items[:, :1]], axis=1)  # The same item twice in a row.
  weight = tf.constant(rng.normal(size=(6, 5)).astype(np.float32))

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
