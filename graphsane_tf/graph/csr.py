"""Neighbour tables in compressed sparse row form."""
import dataclasses
import tempfile

import numpy as np
import scipy.sparse


@dataclasses.dataclass(frozen=True)
class Csr:
  """Neighbours of each node: those of row r are `indices[indptr[r]:indptr[r + 1]]`, ascending.

  Attributes:
    indptr: [num_rows + 1] int64.
    indices: [num_edges] int32.
    num_columns: how many nodes a neighbour may be.
  """
  indptr: np.ndarray
  indices: np.ndarray
  num_columns: int

  @property
  def num_rows(self) -> int:
    return len(self.indptr) - 1

  @property
  def degree(self) -> np.ndarray:
    """[num_rows] int64, number of neighbours."""
    return np.diff(self.indptr)

  def rows(self) -> np.ndarray:
    """[num_edges] int32, the row of each entry of `indices`."""
    return np.repeat(np.arange(self.num_rows, dtype=np.int32), self.degree)

  def transposed(self) -> 'Csr':
    return from_pairs(self.indices, self.rows(), self.num_columns, self.num_rows)

  def mapped(self) -> 'Csr':
    """The same table with its neighbours in a file that vanishes with it: the system reads what is needed."""
    with tempfile.TemporaryFile() as stream:
      indices = np.memmap(stream, np.int32, 'w+', shape=self.indices.shape)
    indices[:] = self.indices
    indices.flush()
    return dataclasses.replace(self, indices=indices)

  def matrix(self) -> scipy.sparse.csr_matrix:
    """The binary [num_rows, num_columns] float32 matrix."""
    return scipy.sparse.csr_matrix(
        (np.ones(len(self.indices), np.float32), self.indices, self.indptr),
        shape=(self.num_rows, self.num_columns))

  def select(self, rows: np.ndarray) -> 'Csr':
    """The neighbour table of the given rows, renumbered 0, 1, ... in their order."""
    degree = self.degree[rows]
    indptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    position = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], degree)
    return Csr(indptr, self.indices[position], self.num_columns)

  def cut(self, num_rows: int, num_columns: int) -> 'Csr':
    """The first rows, with their neighbours below `num_columns`."""
    rows = self.rows()
    keep = (rows < num_rows) & (self.indices < num_columns)
    return from_pairs(rows[keep], self.indices[keep], num_rows, num_columns)

  def contains(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """[n] bool, whether each (row, column) is an edge."""
    edges = self.rows().astype(np.int64) * self.num_columns + self.indices
    return np.isin(np.asarray(rows, np.int64) * self.num_columns + columns, edges)

  def resized(self, num_rows: int, num_columns: int) -> 'Csr':
    """The same edges in a table with at least as many rows and columns."""
    extra = np.full(num_rows - self.num_rows, self.indptr[-1], np.int64)
    return Csr(np.concatenate([self.indptr, extra]), self.indices, num_columns)


def from_pairs(rows: np.ndarray, columns: np.ndarray, num_rows: int, num_columns: int) -> Csr:
  """Builds the neighbour table of an edge list without duplicates.

  Args:
    rows: [num_edges] integers below `num_rows`.
    columns: [num_edges] integers below `num_columns`.
    num_rows: number of rows.
    num_columns: number of columns.
  """
  key = np.asarray(rows, np.int64) * num_columns + np.asarray(columns, np.int64)
  key.sort()
  counts = np.bincount(rows, minlength=num_rows) if len(key) else np.zeros(num_rows, np.int64)
  indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
  return Csr(indptr, (key % num_columns).astype(np.int32), int(num_columns))
