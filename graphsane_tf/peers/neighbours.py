"""Item neighbours: what resembles what a user has taken."""
import numpy as np
import scipy.sparse

from graphsane_tf import parallel
from graphsane_tf.graph import topk
from graphsane_tf.peers.base import ItemWeights, Peer, profiles

# Entries of the similarity matrix in work at once, in each thread.
_CHUNK_FLOATS = 1 << 21


def cosine_weights(counts: scipy.sparse.csr_matrix, kept: int, shrinkage: float) -> scipy.sparse.csr_matrix:
  """[n, n] float32: the `kept` largest shrunk cosines of each column, 0 of an item with itself.

  cosine(i, j) = c_ij / (sqrt(c_ii c_jj) + shrinkage), with c the co-occurrences.

  Args:
    counts: [num_users, n] interactions, 0 or 1.
    kept: neighbours of an item.
    shrinkage: weighs down cosines of few interactions.
  """
  items = counts.T.tocsr()
  size = items.shape[0]
  kept = min(kept, max(size - 1, 0))
  root = np.sqrt(np.asarray(counts.sum(axis=0)).ravel()).astype(np.float32)
  width = -(-max(size, kept) // topk.UNIT) * topk.UNIT
  stretch = max(1, _CHUNK_FLOATS // max(width, 1))

  def nearest(start):
    stop = min(start + stretch, size)
    dense = np.zeros((stop - start, width), np.float32)
    dense[:, :size] = (items[start:stop] @ counts).toarray()
    dense[:, :size] /= root[start:stop, None] * root[None, :] + np.float32(shrinkage + 1e-12)
    dense[np.arange(stop - start), np.arange(start, stop)] = 0.
    values, columns = topk.select(dense, kept)
    rows = np.repeat(np.arange(start, stop), kept)
    positive = values.ravel() > 0
    return rows[positive], columns.ravel()[positive], values.ravel()[positive]

  parts = parallel.side_by_side(nearest, range(0, size, stretch)) if kept else []
  rows, columns, values = (np.concatenate([part[place] for part in parts]) if parts else np.zeros(0)
                           for place in range(3))
  # An item's neighbours stand in its column: a profile times the weights sums over what was taken.
  return scipy.sparse.csr_matrix((values.astype(np.float32), (columns, rows)), shape=(size, size))


class Neighbours(Peer):
  """Cosine neighbours of items, summed over a user's profile."""

  settings = {'half_life': [0., 3.], 'kept': [200], 'shrinkage': [10., 0.]}

  def fit(self, context, half_life=0., kept=200, shrinkage=10.):
    return ItemWeights(profiles(context, half_life), cosine_weights(profiles(context), kept, shrinkage))
