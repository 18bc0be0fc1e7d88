"""Adam's moments of rows that join later, against a textbook Adam in NumPy."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.training import optimizers

_RATE = .01


class _Adam:
  """Adam of one table in float64, as it is printed."""

  def __init__(self, table):
    self.table, self.m, self.v, self.step = table.astype(np.float64), 0., 0., 0

  def apply(self, gradient):
    self.step += 1
    self.m = .9 * self.m + .1 * gradient
    self.v = .999 * self.v + .001 * gradient ** 2
    self.table = self.table - _RATE * self.m_hat() / (np.sqrt(self.v_hat()) + 1e-8)

  def m_hat(self):
    return self.m / (1. - .9 ** self.step)

  def v_hat(self):
    return self.v / (1. - .999 ** self.step)


def _gradients(rows, steps, seed):
  return np.random.default_rng(seed).normal(size=(steps, rows, 2)) * np.linspace(.5, 2., rows)[:, None]


def _grown(old, variable, rows):
  """A larger table with the old one's optimiser state."""
  extra = np.random.default_rng(rows).normal(size=(rows - variable.shape[0], 2))
  table = tf.Variable(np.concatenate([variable.numpy(), extra]).astype(np.float32))
  optimizer = optimizers.adam(_RATE, [table])
  optimizers.grow_state(old, {'table': variable}, optimizer, {'table': table})
  return optimizer, table


def _new_rows(optimizer, small, table, *others):
  return optimizers.NewRows(optimizers.Update(optimizer, [table, *others]), {'table': small}, {'table': table})


@pytest.fixture(name='before')
def before_fixture():
  """A table of three rows after 40 steps, its optimiser, and the same in NumPy."""
  table = tf.Variable(np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32))
  optimizer, oracle = optimizers.adam(_RATE, [table]), _Adam(table.numpy())
  for gradient in _gradients(3, 40, 1):
    optimizer.apply_gradients([(tf.constant(gradient, tf.float32), table)])
    oracle.apply(gradient)
  return optimizer, table, oracle


@pytest.mark.parametrize('compiled', [False, True])
def test_new_rows_move_like_in_an_adam_of_their_own(before, compiled):
  old, small, oracle = before
  optimizer, table = _grown(old, small, 5)
  weight = tf.Variable(tf.ones([2]))
  optimizer._create_all_weights([table, weight])
  young = _Adam(table.numpy()[3:])
  step = _new_rows(optimizer, small, table, weight)
  apply = lambda gradient: step.apply_gradients([(gradient, table), (tf.ones([2]), weight)])
  if compiled:
    apply = tf.function(apply, autograph=False)
  for number, gradient in enumerate(_gradients(5, 30, 2)):
    apply(tf.constant(gradient, tf.float32))
    oracle.apply(gradient[:3])
    young.apply(gradient[3:])
    if number in (0, 9, 29):
      np.testing.assert_allclose(table, np.concatenate([oracle.table, young.table]), rtol=1e-4, atol=1e-5)
  # The next block goes on with their moments as with old rows'.
  for slot, expected, beta in (('m', young.m_hat(), .9), ('v', young.v_hat(), .999)):
    np.testing.assert_allclose(optimizer.get_slot(table, slot)[3:], expected * (1. - beta ** 70), rtol=1e-4)
  assert int(optimizer.iterations) == 70


def test_without_correction_they_run_ahead(before):
  """What the correction is for: from the same gradients, zero moments among old rows' move six times as far."""
  old, small, _ = before
  moved = []
  for corrected in (True, False):
    optimizer, table = _grown(old, small, 4)
    optimizer.iterations.assign(100_000)
    start = table.numpy()[3]
    step = _new_rows(optimizer, small, table) if corrected else optimizer
    for _ in range(15):
      step.apply_gradients([(tf.ones([4, 2]), table)])
    moved.append(np.abs(table.numpy()[3] - start).mean())
  assert moved[0] == pytest.approx(15 * _RATE, rel=1e-3) and 5. < moved[1] / moved[0] < 7.


def test_a_resumed_block_goes_on_with_the_same_step(before):
  old, small, _ = before
  gradients = _gradients(5, 6, 3)
  tables = []
  for cut in (None, 2):
    optimizer, table = _grown(old, small, 5)
    step = _new_rows(optimizer, small, table)
    for number, gradient in enumerate(gradients):
      if number == cut:
        saved = table.numpy(), [optimizer.get_slot(table, slot).numpy() for slot in 'mv'], int(optimizer.iterations)
        optimizer, table = _grown(old, small, 5)
        # Made before the checkpoint is read, as in a block.
        step = _new_rows(optimizer, small, table)
        table.assign(saved[0])
        for slot, value in zip('mv', saved[1]):
          optimizer.get_slot(table, slot).assign(value)
        optimizer.iterations.assign(saved[2])
      step.apply_gradients([(tf.constant(gradient, tf.float32), table)])
    tables.append(table.numpy())
  np.testing.assert_array_equal(*tables)


def test_tables_that_have_not_grown_are_left_to_adam(before):
  old, small, _ = before
  tables = []
  for kind in (_new_rows, None):
    optimizer, table = _grown(old, small, 3)
    step = kind(optimizer, small, table) if kind else optimizer
    for gradient in _gradients(3, 3, 4):
      step.apply_gradients([(tf.constant(gradient, tf.float32), table)])
    tables.append(table.numpy())
  np.testing.assert_array_equal(*tables)
