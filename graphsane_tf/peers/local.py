"""EASE within neighbourhoods: each item is rebuilt from the items that are taken together with it most."""
import numpy as np
import scipy.sparse

from graphsane_tf import parallel, workers
from graphsane_tf.peers import neighbourhoods

# Entries of the small systems in work at once, in each thread: larger ones do not fit in a cache.
_CHUNK_FLOATS = 1 << 20
# Items up to which co-occurrences are looked up in a dense matrix (1 GiB at most), which is many times as fast.
_DENSE_ITEMS = 1 << 14


class _Dense:
  """Co-occurrences of all pairs of some items, from a dense matrix.

  Neighbours are mostly popular items. These stand first, in few bytes each, so that look-ups stay in the cache; and
  only one of the two triangles is looked up.
  """

  def __init__(self, together: scipy.sparse.csr_matrix):
    size = self._size = together.shape[0]
    place = self._place = np.empty(size, np.int64)
    place[np.argsort(-together.diagonal(), kind='stable')] = np.arange(size)
    small = together.nnz and together.data.max() <= np.iinfo(np.uint16).max
    self._values = np.zeros(size * size, np.uint16 if small else np.float32)
    self._values[np.repeat(place * size, np.diff(together.indptr)) + place[together.indices]] = together.data

  def __call__(self, items: np.ndarray) -> np.ndarray:
    """[n, width, width] float32 of items [n, width]."""
    count, width = items.shape
    rows, columns = np.tril_indices(width)
    # Where the entry of a pair, in either order, stands among those of the triangle.
    pair = np.empty((width, width), np.int64)
    pair[rows, columns] = pair[columns, rows] = np.arange(len(rows))
    place = self._place[items]
    found = self._values.take(place[:, rows] * self._size + place[:, columns]).astype(np.float32)
    return found.take(pair.ravel(), axis=1).reshape(count, width, width)


class _Sorted:
  """The same by a search in sorted pairs."""

  def __init__(self, together: scipy.sparse.csr_matrix):
    together = together.tocsr()
    together.sort_indices()
    self._size = together.shape[0]
    # In place: there may be hundreds of millions of pairs.
    keys = np.repeat(np.arange(self._size, dtype=np.int64), np.diff(together.indptr))
    keys *= self._size
    keys += together.indices
    self._keys, self._values = keys, together.data

  def __call__(self, items: np.ndarray) -> np.ndarray:
    asked = items[:, :, None] * self._size + items[:, None, :]
    place = np.minimum(np.searchsorted(self._keys, asked), len(self._keys) - 1)
    return np.where(self._keys[place] == asked, self._values[place], np.float32(0))


def local_weights(together: scipy.sparse.csr_matrix, width: int, regularisation: float) -> scipy.sparse.csr_matrix:
  """Ridge regressions of every item on its strongest neighbours.

  With X the binary interactions and N(j) the neighbours of item j, the column b of j minimises
  |X_j - X_N(j) b|^2 + lambda |b|^2, i.e. (G_NN + lambda I) b = G_Nj with G = X^T X. With all other items as
  neighbours this is EASE. Time and memory grow with the number of items; an item x item matrix is held in small
  catalogues only.

  Args:
    together: [num_items, num_items] float32, G.
    width: neighbours of an item at most.
    regularisation: lambda, positive.

  Returns:
    [num_items, num_items] float32; at most `width` of a column are not 0.
  """
  near = neighbourhoods.strongest(together, width)
  size, width = near.items.shape
  look_up = _Dense(together) if size <= _DENSE_ITEMS else _Sorted(together)
  diagonal = np.arange(width)
  stretch = max(1, _CHUNK_FLOATS // (width * width))
  solved = np.zeros((size, width), np.float32)
  fellows = workers.current()
  own = fellows.share(size)

  def solve(start):
    stop = min(start + stretch, own.stop)
    chunk = near.items[start:stop]
    present = chunk >= 0
    system = look_up(np.maximum(chunk, 0)) * (present[:, :, None] & present[:, None, :])
    system[:, diagonal, diagonal] += np.float32(regularisation)
    solved[start:stop] = np.linalg.solve(system, near.together[start:stop, :, None])[:, :, 0]

  if together.nnz:
    parallel.side_by_side(solve, range(own.start, own.stop, stretch))
  return near.matrix(fellows.gather(solved[own]))
