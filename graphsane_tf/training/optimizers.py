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


class NewRows:
  """Adam whose new rows are corrected by their own number of steps instead of the table's.

  Adam divides moments by 1 - beta^t because they begin at zero. In a table of old rows t is large, and the
  moments of a row that begins at zero now would be divided by about 1: v grows a hundred times slower than m,
  and the row moves up to six times as far as Adam would have it, for dozens of steps. Here it moves like in an
  Adam that begins with it. Its moments are kept on the scale of the old rows', so that the next block takes
  them over like any.
  """

  def __init__(self, optimizer, old_variables: Dict[str, tf.Variable], new_variables: Dict[str, tf.Variable]):
    """Begins a block, after `grow_state`.

    Args:
      optimizer: an `adam` of the new variables.
      old_variables: by name.
      new_variables: by name; those with more rows are the tables that have grown.
    """
    self._optimizer = optimizer
    self._start = int(optimizer.iterations.numpy())
    self._tables = [(new_variables[name], variable.shape[0]) for name, variable in old_variables.items()
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
    before = [[part[count:] for part in (table, *(optimizer.get_slot(table, slot) for slot in SLOTS))]
              for table, count in tables]
    step = tf.cast(optimizer.iterations + 1, tf.float32)
    optimizer.apply_gradients(pairs)
    first_filled, second_filled = (1. - beta ** step for beta in _BETAS)
    rate = optimizer.learning_rate * tf.sqrt(second_filled) / first_filled
    for (table, count), (rows, first, second) in zip(tables, before):
      gradient = gradients[table.ref()][count:]
      first = self._blend(_BETAS[0], first, gradient, step)
      second = self._blend(_BETAS[1], second, gradient ** 2, step)
      table[count:].assign(rows - rate * first / (tf.sqrt(second) + optimizer.epsilon))
      for slot, value in zip(SLOTS, (first, second)):
        optimizer.get_slot(table, slot)[count:].assign(value)
