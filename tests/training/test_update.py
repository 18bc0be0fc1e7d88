"""A step of the optimiser that traces share is that of Keras's legacy Adam, bit for bit."""
import numpy as np
import tensorflow as tf

from graphsane_tf.training import optimizers


def test_updates_are_those_of_legacy_adam():
  rng = np.random.default_rng(0)
  start = [rng.normal(size=size).astype(np.float32) for size in ((5, 3), (4,))]
  tables, optimizers_made = [], []
  for kind in (lambda optimizer, variables: optimizers.Update(optimizer, variables), lambda optimizer, _: optimizer):
    variables = [tf.Variable(value) for value in start]
    optimizer = optimizers.adam(.01, variables)
    step = kind(optimizer, variables)

    def apply(*gradients, step=step, variables=variables):
      step.apply_gradients(zip(gradients, variables))

    apply = tf.function(apply, autograph=False)
    gradients = np.random.default_rng(1)
    for _ in range(20):
      apply(*(tf.constant(gradients.normal(size=value.shape), tf.float32) for value in start))
    tables.append(variables)
    optimizers_made.append(optimizer)
  for found, expected in zip(*tables):
    np.testing.assert_array_equal(found, expected)
  for found, expected in zip(*(optimizer.variables() for optimizer in optimizers_made)):
    np.testing.assert_array_equal(found, expected)
  assert int(optimizers_made[0].iterations) == 20
