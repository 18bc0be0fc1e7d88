"""What a memory is: item-item weights in closed form, and how items are counted."""
import abc
from typing import Optional

import scipy.sparse

from graphsane_tf.memory.statistics import Statistics


class Memory(abc.ABC):
  """Closed-form knowledge of all history that is added to the graph model's scores.

  To add one: subclass, implement `weights`, and register it (`graphsane_tf.registry`). A user's score of an item
  is the sum over their profile of the weights towards the item. How much it counts beside the graph model and
  popularity is learned (`graphsane_tf.memory.mixing`).
  """

  # Whether anything is remembered at all.
  counts = True

  def __init__(self, config):
    """Takes the whole configuration."""
    self.config = config

  @abc.abstractmethod
  def weights(self, statistics: Statistics) -> Optional[scipy.sparse.csr_matrix]:
    """[num_items, num_items] float32 weights from an item taken (row) to an item scored (column); None is none.

    At most a few hundred of a column are not 0.
    """


class NoMemory(Memory):
  """The graph model alone; nothing is counted."""

  counts = False

  def weights(self, statistics):
    return None


class PopularityMemory(Memory):
  """How often items were taken, in all history and lately."""

  def weights(self, statistics):
    return None
