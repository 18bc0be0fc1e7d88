"""Refuses a model that cannot fit this machine before anything is allocated."""
import os
import pathlib
from typing import Any

import tensorflow as tf

from graphsane_tf import backbones
from graphsane_tf.blocks.stream import Block
from graphsane_tf.errors import UserError

# Bytes of a weight: itself and Adam's two moments, four each.
_BYTES = 12


def num_weights(config, num_users: int, num_items: int) -> int:
  """Number of weights of the configured backbone, without making them."""
  kind: Any = backbones.REGISTRY[config.backbone]

  class Symbolic(kind):
    """The backbone without random values, which are drawn on the host."""

    def matrix(self, name, rows, columns):
      return tf.Variable(tf.zeros([rows, columns]), name=name)

  # Nothing is allocated in a graph that never runs.
  with tf.Graph().as_default():
    backbone = Symbolic(num_users, num_items, config.model, (0, 0))
    return sum(variable.shape.num_elements() for variable in backbone.trainable_variables)


def total_bytes() -> int:
  """Memory of this machine, or of the container that the process lives in."""
  total = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
  try:
    return min(total, int(pathlib.Path('/sys/fs/cgroup/memory.max').read_text('utf-8')))
  except (OSError, ValueError):
    return total


def check(config, block: Block) -> None:
  """Raises a `UserError` if the weights of a block's model and Adam's state alone exceed the memory.

  Args:
    config: the whole configuration.
    block: the last one, which has the largest tables.
  """
  wanted = _BYTES * num_weights(config, block.num_users, block.num_items)
  if wanted > total_bytes():
    raise UserError(
        f'--embedding_dim={config.model.embedding_dim}: the model of {block.num_users:,} users and '
        f'{block.num_items:,} items takes at least {wanted / 2**30:,.0f} GiB with its optimiser, and '
        f'this machine has {total_bytes() / 2**30:,.0f}: choose a smaller size.')
