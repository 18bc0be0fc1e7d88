"""Item neighbours as a memory."""
from graphsane_tf.memory.base import Memory
from graphsane_tf.peers import neighbourhoods


class NeighbourMemory(Memory):
  """Shrunk cosines of the items that are taken together most."""

  def weights(self, statistics):
    options = self.config.memory_options
    near = neighbourhoods.strongest(statistics.together, options.neighbours, options.shrinkage)
    return near.matrix(near.cosine)
