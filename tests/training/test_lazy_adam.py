"""Adam that updates only rows with a gradient, against NumPy, and the step that gives it such gradients."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import config as config_lib
from graphsane_tf.errors import UserError
from graphsane_tf.random import host_generator
from graphsane_tf.testing import logs
from graphsane_tf.training import assembly, optimizers

_RATE = .01


@pytest.mark.parametrize('compiled', [False, True])
def test_against_numpy(compiled):
  rng = np.random.default_rng(0)
  start = rng.normal(size=(6, 3))
  table, weight = tf.Variable(start.astype(np.float32)), tf.Variable(tf.ones([2]))
  optimizer = optimizers.adam(_RATE, [table, weight])
  update = optimizers.Update(optimizer, [table, weight])
  want, first, second = start.copy(), np.zeros((6, 3)), np.zeros((6, 3))

  def apply(values, rows):
    update.apply_gradients([(tf.IndexedSlices(values, rows, tf.constant([6, 3])), table), (tf.ones([2]), weight)])

  if compiled:
    apply = tf.function(apply)
  for step in range(1, 30):
    # Rows come twice, or for a long time not at all; row 5 never does.
    rows = rng.integers(2 if step % 10 else 5, size=4)
    values = rng.normal(size=(4, 3)).astype(np.float32)
    apply(tf.constant(values), tf.constant(rows))
    gradient = np.zeros((6, 3))
    np.add.at(gradient, rows, values)
    for row in np.unique(rows):
      first[row] = .9 * first[row] + .1 * gradient[row]
      second[row] = .999 * second[row] + .001 * gradient[row] ** 2
      want[row] -= _RATE * first[row] / (1 - .9 ** step) / (np.sqrt(second[row] / (1 - .999 ** step)) + 1e-8)
  np.testing.assert_allclose(table.numpy(), want, rtol=2e-5, atol=1e-6)
  np.testing.assert_allclose(optimizer.get_slot(table, 'm').numpy(), first, rtol=2e-5, atol=1e-7)
  np.testing.assert_allclose(optimizer.get_slot(table, 'v').numpy(), second, rtol=2e-5, atol=1e-9)
  np.testing.assert_array_equal(table.numpy()[5], start[5].astype(np.float32))


def _trainer(tmp_path, optimizer, backbone):
  config = config_lib.default_config()
  config.backbone, config.train.optimizer, config.model.propagation = backbone, optimizer, 'sampled'
  config.model.embedding_dim, config.train.batch_size, config.model.fanout = 4, 6, (2, 2)
  config = config_lib.resolved(config)
  return assembly.trainer_for(config, logs.random_log(), 0, tmp_path / optimizer, None)


@pytest.mark.parametrize('backbone', ['lightgcn', 'mgccf'])
def test_a_first_step_is_that_of_adam(tmp_path, backbone):
  """While all moments are zero, both leave rows without a gradient alone."""
  trainers = [_trainer(tmp_path, optimizer, backbone) for optimizer in ('adam', 'lazy_adam')]
  count = len(trainers[0].context.users)
  order = tf.constant(host_generator(0).permutation(count).astype(np.int32))
  starts = [trainer.model.backbone.item_table.numpy() for trainer in trainers]
  np.testing.assert_array_equal(*starts)
  sums = [trainer.run_steps(order, tf.constant([1, 2]), tf.constant(0), tf.constant(1)).numpy() for trainer in trainers]
  np.testing.assert_allclose(*sums, rtol=1e-5)
  for name, variable in trainers[0].model.backbone.named_variables().items():
    np.testing.assert_allclose(trainers[1].model.backbone.named_variables()[name], variable, rtol=1e-3, atol=1e-6)
  assert np.abs(trainers[1].model.backbone.item_table - starts[0]).max() > 1e-4
  # Later ones differ: what a step does not touch stands still.
  for trainer in trainers:
    trainer.run_steps(order, tf.constant([1, 2]), tf.constant(1), tf.constant(3))
  assert np.abs(trainers[0].model.backbone.item_table.numpy() - trainers[1].model.backbone.item_table.numpy()).max() > 0


def test_what_it_does_not_go_with():
  for name, value in (('model.propagation', 'auto'), ('train.new_row_moments', 'corrected')):
    config = config_lib.default_config()
    config.train.optimizer, config.model.propagation = 'lazy_adam', 'sampled'
    config.update_from_flattened_dict({name: value})
    with pytest.raises(UserError, match='lazy_adam'):
      config_lib.resolved(config)
