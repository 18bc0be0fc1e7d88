"""EASE within neighbourhoods: each item is rebuilt from the items that are taken together with it most."""
import numpy as np
import scipy.sparse

from graphsane_tf import parallel
from graphsane_tf.peers import neighbourhoods

# Entries of the small systems in work at once, in each thread.
_CHUNK_FLOATS = 1 << 22


def local_weights(together: scipy.sparse.csr_matrix, width: int, regularisation: float) -> scipy.sparse.csr_matrix:
  """Ridge regressions of every item on its strongest neighbours.

  With X the binary interactions and N(j) the neighbours of item j, the column b of j minimises
  |X_j - X_N(j) b|^2 + lambda |b|^2, i.e. (G_NN + lambda I) b = G_Nj with G = X^T X. With all other items as
  neighbours this is EASE. Time and memory grow with the number of items; no item x item matrix is held.

  Args:
    together: [num_items, num_items] float32, G.
    width: neighbours of an item at most.
    regularisation: lambda, positive.

  Returns:
    [num_items, num_items] float32; at most `width` of a column are not 0.
  """
  near = neighbourhoods.strongest(together, width)
  size, width = near.items.shape
  together = together.tocsr()
  together.sort_indices()
  # In place: there may be hundreds of millions of pairs.
  keys, values = np.repeat(np.arange(size, dtype=np.int64), np.diff(together.indptr)), together.data
  keys *= size
  keys += together.indices
  diagonal = np.arange(width)
  stretch = max(1, _CHUNK_FLOATS // (width * width))
  solved = np.zeros((size, width), np.float32)

  def solve(start):
    chunk = near.items[start:start + stretch]
    asked = np.maximum(chunk, 0)[:, :, None] * size + np.maximum(chunk, 0)[:, None, :]
    place = np.minimum(np.searchsorted(keys, asked), max(len(keys) - 1, 0))
    present = (chunk >= 0)[:, :, None] & (chunk >= 0)[:, None, :]
    system = np.where(present & (keys[place] == asked), values[place], np.float32(0))
    system[:, diagonal, diagonal] += np.float32(regularisation)
    solved[start:start + stretch] = np.linalg.solve(system, near.together[start:start + stretch, :, None])[:, :, 0]

  if len(keys):
    parallel.side_by_side(solve, range(0, size, stretch))
  return near.matrix(solved)
