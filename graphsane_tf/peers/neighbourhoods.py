"""The items that are taken together with an item most."""
import dataclasses
from typing import Sequence

import numpy as np
import scipy.sparse

# Pairs of items that are sorted at once.
_CHUNK_PAIRS = 1 << 22


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
  together = together.tocsr()
  size = together.shape[0]
  root = np.sqrt(np.maximum(together.diagonal(), 1))
  # Nobody has more neighbours than other items of a row.
  width = min(width, max(int(np.diff(together.indptr).max(initial=0)), 1))
  tables = [np.full((size, width), fill, kind) for fill, kind in ((-1, np.int64), (0, np.float32), (0, np.float32))]
  widest, start = 1, 0
  while start < size:
    # As many items as have that many pairs, and one at least.
    stop = int(np.searchsorted(together.indptr, int(together.indptr[start]) + _CHUNK_PAIRS, side='right')) - 1
    stop = min(max(stop, start + 1), size)
    place = _write_strongest(together, start, stop, root, shrinkage, tables)
    widest, start = max(widest, place), stop
  return Neighbourhoods(*(table[:, :widest] for table in tables))


def _write_strongest(together: scipy.sparse.csr_matrix, start: int, stop: int, root: np.ndarray, shrinkage: float,
                     tables: Sequence[np.ndarray]) -> int:
  """Fills rows start to stop - 1 of the tables of `Neighbourhoods`; returns the most neighbours of an item there."""
  counted = together[start:stop].tocoo()
  item, neighbour, users = counted.row + start, counted.col, counted.data
  other = (item != neighbour) & (users > 0)
  item, neighbour, users = item[other], neighbour[other], users[other]
  cosine = (users / (root[item] * root[neighbour] + shrinkage)).astype(np.float32)
  # By item, then from the largest cosine down, then by number.
  order = np.lexsort((neighbour, -cosine, item))
  item = item[order]
  kept = np.arange(len(item)) - np.searchsorted(item, item) < tables[0].shape[1]
  order, item = order[kept], item[kept]
  # By item and number, so that later searches go forward.
  again = np.lexsort((neighbour[order], item))
  order, item = order[again], item[again]
  place = np.arange(len(item)) - np.searchsorted(item, item)
  for table, values in zip(tables, (neighbour, users, cosine)):
    table[item, place] = values[order]
  return int(place.max(initial=0)) + 1
