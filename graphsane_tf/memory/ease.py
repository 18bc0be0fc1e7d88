"""Local EASE as a memory."""
from graphsane_tf.memory.base import Memory
from graphsane_tf.peers import local


class EaseMemory(Memory):
  """Local EASE of all history."""

  def weights(self, statistics):
    options = self.config.memory_options
    return local.local_weights(statistics.together, options.neighbours, options.regularisation)
