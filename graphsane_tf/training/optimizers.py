"""Adam whose state grows with the tables."""
from typing import Dict

import numpy as np
import tensorflow as tf

SLOTS = ('m', 'v')


def adam(learning_rate: float, variables) -> tf.keras.optimizers.Optimizer:
  """Adam with its slots in place, so that a checkpoint of it is complete before the first step.

  The legacy class is used on purpose: its dense update is one fused kernel.
  """
  optimizer = tf.keras.optimizers.legacy.Adam(learning_rate=learning_rate, epsilon=1e-8)
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
