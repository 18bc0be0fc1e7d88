"""User-user and item-item graphs: exact nearest neighbours by cosine of binary interaction rows."""
from typing import Iterator, Tuple

import numpy as np
import scipy.sparse

from graphsane_tf import parallel
from graphsane_tf.graph import csr, topk


class _Cosines:
  """Cosines of the binary interaction vectors of all rows of [num_rows, num_columns] edges."""

  def __init__(self, edges: csr.Csr):
    scale = 1. / np.sqrt(np.maximum(edges.degree, 1)).astype(np.float32)
    self._rows = scipy.sparse.diags(scale) @ edges.matrix()
    self._columns = self._rows.T.tocsr()
    # Padded, so that `topk.select` can group the columns.
    self.width = -(-edges.num_rows // topk.UNIT) * topk.UNIT
    self._columns.resize(self._columns.shape[0], self.width)

  def of(self, start: int, stop: int) -> np.ndarray:
    """[n, width] float32 of rows start to stop - 1 with all, 0 with themselves and the padding."""
    result = (self._rows[start:stop] @ self._columns).toarray()
    places = np.arange(len(result))
    result[places, start + places] = 0.
    return result


def _stretches(count: int, chunk_floats: int) -> Iterator[Tuple[int, int]]:
  chunk = max(1, chunk_floats // max(count, 1))
  return ((start, min(start + chunk, count)) for start in range(0, count, chunk))


def cosine_chunks(edges: csr.Csr, chunk_floats: int = 1 << 22) -> Iterator[Tuple[int, np.ndarray]]:
  """Cosines of all rows' binary interaction vectors, a stretch of rows at a time.

  Args:
    edges: interactions, [num_rows, num_columns].
    chunk_floats: bound on the entries held at once.

  Yields:
    The number of the first row and [n, num_rows] float32 cosines, 0 of a row with itself.
  """
  cosines = _Cosines(edges)
  for start, stop in _stretches(edges.num_rows, chunk_floats):
    yield start, cosines.of(start, stop)[:, :edges.num_rows]


def cosine_neighbours(edges: csr.Csr, num_neighbours: int, chunk_floats: int = 1 << 21) -> csr.Csr:
  """The `num_neighbours` most similar other rows of each row.

  Rows are compared by the cosine of their binary interaction vectors. Rows that share nothing are
  never neighbours, so a row may have fewer neighbours than asked for (an isolated one has none).
  Ties go to the lower number. Chunks of the similarity matrix are made side by side, one a core.

  Args:
    edges: interactions, [num_rows, num_columns].
    num_neighbours: k, 15 in MGCCF.
    chunk_floats: bound on the entries of a chunk.

  Returns:
    [num_rows, num_rows] neighbour table, at most `num_neighbours` entries a row.
  """
  count = edges.num_rows
  k = min(num_neighbours, max(count - 1, 0))
  found_rows, found_columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
  if k:
    cosines = _Cosines(edges)

    def nearest(stretch):
      values, columns = topk.select(cosines.of(*stretch), k)
      keep = values > 0.
      return np.repeat(np.arange(*stretch), keep.sum(1)), columns[keep]

    for rows, columns in parallel.side_by_side(nearest, _stretches(count, chunk_floats)):
      found_rows.append(rows)
      found_columns.append(columns)
  return csr.from_pairs(np.concatenate(found_rows), np.concatenate(found_columns), count, count)
