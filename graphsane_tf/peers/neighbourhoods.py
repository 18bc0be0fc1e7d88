"""The items that are taken together with an item most."""
import dataclasses
from typing import List

import numpy as np
import scipy.sparse

from graphsane_tf import parallel
from graphsane_tf.graph import topk

# Entries in work at once, in each thread.
_CHUNK_FLOATS = 1 << 21


@dataclasses.dataclass(frozen=True)
class Neighbourhoods:
  """The strongest neighbours of every item.

  Attributes:
    items: [num_items, width] int64 neighbours, ascending; -1 where there are no more, at the end.
    together: [num_items, width] float32, users who have taken both; 0 where there is no neighbour.
    cosine: [num_items, width] float32, that over the root of the product of both counts.
  """
  items: np.ndarray
  together: np.ndarray
  cosine: np.ndarray

  def matrix(self, values: np.ndarray) -> scipy.sparse.csr_matrix:
    """[num_items, num_items]: values [num_items, width], those of an item in its column."""
    present = self.items >= 0
    columns = np.broadcast_to(np.arange(len(self.items))[:, None], self.items.shape)
    return scipy.sparse.csr_matrix((values[present], (self.items[present], columns[present])),
                                   shape=(len(self.items), len(self.items)))


def strongest(together: scipy.sparse.csr_matrix, width: int, shrinkage: float = 0.) -> Neighbourhoods:
  """The `width` other items with the largest cosine, lower numbers first among equal ones.

  Args:
    together: [num_items, num_items] float32, users who have taken both; the diagonal counts users of one.
    width: neighbours of an item at most.
    shrinkage: added to the denominator, so that cosines of few users count less.
  """
  matrix = together.tocsr()
  matrix.sort_indices()
  size, lengths = matrix.shape[0], np.diff(matrix.indptr)
  root = np.sqrt(np.maximum(matrix.diagonal(), 1)).astype(np.float32)
  width = min(width, max(int(lengths.max(initial=0)), 1))
  items = np.full((size, width), -1, np.int64)
  users, cosine = np.zeros((size, width), np.float32), np.zeros((size, width), np.float32)

  def select(rows):
    longest = -(-int(lengths[rows].max()) // topk.UNIT) * topk.UNIT
    inside = np.arange(longest) < lengths[rows, None]
    place = np.where(inside, matrix.indptr[rows, None] + np.arange(longest), 0)
    near, counts = matrix.indices[place], matrix.data[place]
    values = counts / (root[rows, None] * root[near] + np.float32(shrinkage))
    values[~inside | (near == rows[:, None]) | (counts <= 0)] = -np.inf
    best, chosen = topk.select(values, min(width, longest))
    present = best > -np.inf
    chosen = np.where(present, chosen, 0)
    near = np.where(present, np.take_along_axis(near, chosen, axis=1), size)
    # Ascending, so that later searches go forward.
    order = np.argsort(near, axis=1, kind='stable')
    filled = slice(0, best.shape[1])
    for table, found, empty in ((items, near, -1), (users, np.take_along_axis(counts, chosen, axis=1), 0),
                                (cosine, best, 0)):
      table[rows, filled] = np.take_along_axis(np.where(present, found, empty), order, axis=1)

  parallel.side_by_side(select, _stretches(lengths))
  return Neighbourhoods(items, users, cosine)


def _stretches(lengths: np.ndarray) -> List[np.ndarray]:
  """Rows in groups of about the same length, each of bounded size; empty rows are left out."""
  order = np.argsort(lengths, kind='stable')
  order = order[np.searchsorted(lengths[order], 1):]
  stretches, start = [], 0
  while start < len(order):
    # As many as fit if all were as long as the first; later ones are longer, so fewer of them are taken.
    stop = start + max(1, _CHUNK_FLOATS // (2 * int(lengths[order[start]])))
    stop = max(start + 1, min(stop, int(np.searchsorted(lengths[order], 2 * lengths[order[start]], side='right'))))
    stretches.append(order[start:stop])
    start = stop
  return stretches
