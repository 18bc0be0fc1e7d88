"""Adam whose state grows with the tables."""
import math
from typing import Dict

import numpy as np
import tensorflow as tf

SLOTS = ('m', 'v')
_BETAS = (.9, .999)


def adam(learning_rate: float, variables) -> tf.keras.optimizers.Optimizer:
  """Adam with its slots in place, so that a checkpoint of it is complete before the first step.

  The legacy class is used on purpose: its dense update is one fused kernel.
  """
  optimizer = tf.keras.optimizers.legacy.Adam(learning_rate, *_BETAS, epsilon=1e-8)
  _ = optimizer.iterations  # Made when it is first asked for.
  optimizer._create_all_weights(list(variables))  # pylint: disable=protected-access
  return optimizer


def grow_state(old, old_variables: Dict[str, tf.Variable], new,
               new_variables: Dict[str, tf.Variable]) -> None:
  """Carries Adam's moments over to larger tables: old rows keep theirs, new rows start at zero."""
  new.iterations.assign(old.iterations)
  for name, variable in old_variables.items():
    for slot in SLOTS:
      target = new.get_slot(new_variables[name], slot)
      value = np.zeros(target.shape, np.float32)
      value[tuple(slice(size) for size in variable.shape)] = old.get_slot(variable, slot).numpy()
      target.assign(value)


class Update:
  """One step of an `adam`, as that class makes it, in a form that one trace has for all blocks."""

  host = ()

  def __init__(self, optimizer, variables):
    """Takes an `adam` that has slots for these variables."""
    self.iterations = optimizer.iterations
    self._rate, self._betas = optimizer.learning_rate, (optimizer.beta_1, optimizer.beta_2)
    self._epsilon = optimizer.epsilon
    self._variables = [(variable, *(optimizer.get_slot(variable, slot) for slot in SLOTS)) for variable in variables]

  def slots(self, variable: tf.Variable):
    """Both moments of a variable."""
    return next(slots for known, *slots in self._variables if known is variable)

  def rate(self, step: tf.Tensor) -> tf.Tensor:
    """Scalar by which a step, float32 from 1, multiplies the quotient of the moments."""
    first_filled, second_filled = (1. - beta ** step for beta in self._betas)
    return self._rate * tf.sqrt(second_filled) / first_filled

  @property
  def epsilon(self) -> float:
    return self._epsilon

  def apply_gradients(self, pairs) -> None:
    """One step, from (gradient, variable) pairs; of a gradient of single rows, other rows and moments stay."""
    step = tf.cast(self.iterations + 1, tf.float32)
    betas = [tf.convert_to_tensor(beta) for beta in self._betas]
    for gradient, variable in pairs:
      first, second = self.slots(variable)
      if isinstance(gradient, tf.IndexedSlices):
        self._apply_rows(gradient, variable, step)
        continue
      tf.raw_ops.ResourceApplyAdam(
          var=variable.handle, m=first.handle, v=second.handle, beta1_power=tf.pow(betas[0], step),
          beta2_power=tf.pow(betas[1], step), lr=tf.convert_to_tensor(self._rate), beta1=betas[0], beta2=betas[1],
          epsilon=tf.constant(self._epsilon, tf.float32), grad=gradient)
    self.iterations.assign_add(1)

  def _apply_rows(self, gradient: tf.IndexedSlices, variable: tf.Variable, step: tf.Tensor) -> None:
    """Lazy Adam: Adam itself moves all rows on by their moments, which costs as much as the whole table."""
    rows, place = tf.unique(gradient.indices)
    gradient = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
    slots = self.slots(variable)
    moments = [beta * tf.gather(slot, rows) + (1. - beta) * value
               for beta, slot, value in zip(self._betas, slots, (gradient, gradient ** 2))]
    for slot, moment in zip(slots, moments):
      slot.scatter_update(tf.IndexedSlices(moment, rows))
    variable.scatter_sub(tf.IndexedSlices(
        self.rate(step) * moments[0] / (tf.sqrt(moments[1]) + self.epsilon), rows))


class NewRows:
  """Adam whose new rows are corrected by their own number of steps instead of the table's.

  Adam divides moments by 1 - beta^t because they begin at zero. In a table of old rows t is large, and the
  moments of a row that begins at zero now would be divided by about 1: v grows a hundred times slower than m,
  and the row moves up to six times as far as Adam would have it, for dozens of steps. Here it moves like in an
  Adam that begins with it. Its moments are kept on the scale of the old rows', so that the next block takes
  them over like any.
  """

  host = ()

  def __init__(self, optimizer: Update, old_variables: Dict[str, tf.Variable], new_variables: Dict[str, tf.Variable]):
    """Begins a block, after `grow_state`.

    Args:
      optimizer: of the new variables.
      old_variables: by name.
      new_variables: by name; those with more rows are the tables that have grown.
    """
    self._optimizer = optimizer
    self._start = tf.constant(float(optimizer.iterations.numpy()), tf.float32)
    self._tables = [(new_variables[name], tf.constant(variable.shape[0])) for name, variable in old_variables.items()
                    if new_variables[name].shape[0] > variable.shape[0]]

  def _blend(self, beta: float, moment: tf.Tensor, value: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
    """A moment of new rows after step number `step` of the table, times what the table's correction divides by."""
    filled = lambda count: -tf.math.expm1(count * math.log(beta))
    own = step - self._start
    kept = beta * filled(own - 1.) / filled(own) * tf.math.divide_no_nan(filled(step), filled(step - 1.))
    return kept * moment + (1. - beta) / filled(own) * filled(step) * value

  def apply_gradients(self, pairs) -> None:
    """One step, from (gradient, variable) pairs; gradients are dense."""
    pairs = list(pairs)
    optimizer = self._optimizer
    gradients = {variable.ref(): gradient for gradient, variable in pairs}
    tables = [(table, count) for table, count in self._tables if table.ref() in gradients]
    before = [[part[count:] for part in (table, *optimizer.slots(table))] for table, count in tables]
    step = tf.cast(optimizer.iterations + 1, tf.float32)
    optimizer.apply_gradients(pairs)
    rate = optimizer.rate(step)
    for (table, count), (rows, first, second) in zip(tables, before):
      gradient = gradients[table.ref()][count:]
      first = self._blend(_BETAS[0], first, gradient, step)
      second = self._blend(_BETAS[1], second, gradient ** 2, step)
      table[count:].assign(rows - rate * first / (tf.sqrt(second) + optimizer.epsilon))
      for slot, value in zip(optimizer.slots(table), (first, second)):
        slot[count:].assign(value)
