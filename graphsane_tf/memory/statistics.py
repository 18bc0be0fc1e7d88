"""What is counted of all history; a block's rows are added to it without looking at the others again."""
import dataclasses
import functools

import numpy as np
import scipy.sparse

# Recent popularity counts this share of all rows, the newest.
RECENT_SHARE = 1 / 8
# A row counts as taken together with this many items of its user before it, the newest. Few people have as many;
# without a bound, time and memory would grow with the square of what the busiest users take.
MAX_BEFORE = 4096
# Pairs of such users in work at once.
_CHUNK_PAIRS = 1 << 22


@dataclasses.dataclass(frozen=True, eq=False)
class Statistics:
  """Sums over all rows so far.

  Attributes:
    row: [num_users, num_items] float64, for each item that a user has taken 1 plus the number of the row. Rows do not
      change, so that blocks one by one give what all at once give.
    together: [num_items, num_items] float32, how many users have taken both of two items, with fewer than
      `MAX_BEFORE` others in between; on the diagonal, how many have taken one.
    recent: [num_items] int64, interactions of each item in the newest eighth of the rows.
  """
  row: scipy.sparse.csr_matrix
  together: scipy.sparse.csr_matrix
  recent: np.ndarray

  @functools.cached_property
  def taken(self) -> scipy.sparse.csr_matrix:
    """[num_users, num_items] float32, 1 where a user has taken an item."""
    return _with_data(self.row, np.ones(self.row.nnz, np.float32))

  def profile(self, half_age: float) -> scipy.sparse.csr_matrix:
    """[num_users, num_items] float32, the same with 1 / (1 + age / half_age), the age being a share of the log.

    A power of the age has no scale of its own beyond which everything is forgotten.

    Args:
      half_age: an item that was taken this share of all rows ago counts half; 0 weighs all equally.
    """
    if not half_age:
      return self.taken
    rows = self.row.nnz
    age = (rows - self.row.data) / rows
    return _with_data(self.row, (1 / (1 + age / half_age)).astype(np.float32))

  @functools.cached_property
  def counts(self) -> np.ndarray:
    """[num_items] float32, interactions of each item."""
    return self.together.diagonal()


def _with_data(matrix: scipy.sparse.csr_matrix, data: np.ndarray) -> scipy.sparse.csr_matrix:
  """The same places with other values."""
  return scipy.sparse.csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _sized(matrix: scipy.sparse.csr_matrix, shape) -> scipy.sparse.csr_matrix:
  """The same entries in a matrix with at least as many rows and columns."""
  indptr = np.concatenate([matrix.indptr, np.full(shape[0] - matrix.shape[0], matrix.indptr[-1], matrix.indptr.dtype)])
  return scipy.sparse.csr_matrix((matrix.data, matrix.indices, indptr), shape=shape)


def empty() -> Statistics:
  """Statistics of no rows."""
  nothing = scipy.sparse.csr_matrix((0, 0), dtype=np.float32)
  return Statistics(nothing.astype(np.float64), nothing, np.zeros(0, np.int64))


def _after_others(row: scipy.sparse.csr_matrix, first_new: int) -> scipy.sparse.csr_matrix:
  """How often an item (column) of the new rows was taken after another (row), of the `MAX_BEFORE` before it.

  Args:
    row: [n, num_items], see `Statistics`, with the new rows.
    first_new: number of the first new row.

  Returns:
    [num_items, num_items] float32.
  """
  count = np.diff(row.indptr)
  user = np.repeat(np.arange(len(count)), count)
  # Each user's items in the order in which they were taken.
  order = np.lexsort((row.data, user))
  items = row.indices[order]
  place = np.arange(len(items)) - np.repeat(row.indptr[:-1], count)
  new = np.flatnonzero(row.data[order] > first_new)
  gap = np.arange(1, MAX_BEFORE + 1)
  total = scipy.sparse.csr_matrix((row.shape[1], row.shape[1]), dtype=np.float32)
  stretch = max(1, _CHUNK_PAIRS // MAX_BEFORE)
  for start in range(0, len(new), stretch):
    chunk = new[start:start + stretch, None]
    present = gap <= place[chunk]
    pairs = items[(chunk - gap)[present]], np.broadcast_to(items[chunk], present.shape)[present]
    total = total + scipy.sparse.csr_matrix((np.ones(len(pairs[0]), np.float32), pairs), shape=total.shape)
  return total


def added(before: Statistics, context) -> Statistics:
  """Statistics of all rows of a `BlockContext`, from those of the rows before its own.

  Args:
    before: statistics of the rows before; `empty` makes those of no rows.
    context: the block, whose own rows are new.
  """
  first_new = before.row.nnz
  users, items = context.rows(slice(first_new, context.num_rows))
  shape = context.num_users, context.num_items
  old = _sized(before.taken, shape)
  fresh = scipy.sparse.csr_matrix((np.ones(len(users), np.float32), (users, items)), shape=shape)
  row = _with_data(old, before.row.data) + scipy.sparse.csr_matrix(
      (np.arange(first_new + 1., context.num_rows + 1), (users, items)), shape=shape)

  # (old + fresh)^T (old + fresh) without old^T old; only users with new rows have anything to add.
  new_rows = np.diff(fresh.indptr)
  busy = (new_rows > 0) & (np.diff(old.indptr) + new_rows > MAX_BEFORE + 1)
  active = np.flatnonzero((new_rows > 0) & ~busy)
  across = old[active].T @ fresh[active]
  together = _sized(before.together, (shape[1], shape[1])) + fresh[active].T @ fresh[active] + across + across.T
  if busy.any():
    across = _after_others(row[busy], first_new)
    alone = scipy.sparse.diags(np.asarray(fresh[busy].sum(axis=0)).ravel(), dtype=np.float32)
    together = together + across + across.T + alone

  _, newest = context.rows(slice(context.num_rows - int(np.ceil(context.num_rows * RECENT_SHARE)), context.num_rows))
  together, row = together.tocsr(), row.tocsr()
  # Sums in another order are rounded in another way.
  together.sort_indices()
  row.sort_indices()
  return Statistics(row, together, np.bincount(newest, minlength=shape[1]))


def of_all(context) -> Statistics:
  """Statistics of all rows of a `BlockContext`."""
  return added(empty(), context)
