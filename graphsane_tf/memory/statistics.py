"""What is counted of all history; a block's rows are added to it without looking at the others again."""
import dataclasses
import functools

import numpy as np
import scipy.sparse

from graphsane_tf.peers import base

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
    age: [num_users, num_items] float32, for each item that a user has taken 1 plus the number of items that they
      have taken since. Whole numbers add up exactly, so that blocks one by one give what all at once give.
    together: [num_items, num_items] float32, how many users have taken both of two items, with fewer than
      `MAX_BEFORE` others in between; on the diagonal, how many have taken one.
    recent: [num_items] int64, interactions of each item in the newest eighth of the rows.
    half_life: in a user's own interactions; 0 weighs all of them equally.
  """
  age: scipy.sparse.csr_matrix
  together: scipy.sparse.csr_matrix
  recent: np.ndarray
  half_life: float

  @functools.cached_property
  def taken(self) -> scipy.sparse.csr_matrix:
    """[num_users, num_items] float32, 1 where a user has taken an item."""
    return _with_data(self.age, np.ones_like(self.age.data))

  @functools.cached_property
  def profile(self) -> scipy.sparse.csr_matrix:
    """[num_users, num_items] float32, the same with a weight that halves with every `half_life` later items."""
    if not self.half_life:
      return self.taken
    return _with_data(self.age, np.exp2((1 - self.age.data) / np.float32(self.half_life)))

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


def empty(half_life: float) -> Statistics:
  """Statistics of no rows."""
  nothing = scipy.sparse.csr_matrix((0, 0), dtype=np.float32)
  return Statistics(nothing, nothing, np.zeros(0, np.int64), half_life)


def _after_others(age: scipy.sparse.csr_matrix, new_rows: np.ndarray) -> scipy.sparse.csr_matrix:
  """How often an item (column) of the new rows was taken after another (row), of the `MAX_BEFORE` before it.

  Args:
    age: [n, num_items], see `Statistics`, with the new rows.
    new_rows: [n] number of new rows of each user.

  Returns:
    [num_items, num_items] float32.
  """
  count = np.diff(age.indptr)
  user = np.repeat(np.arange(len(count)), count)
  # Each user's items in the order in which they were taken.
  order = np.lexsort((-age.data, user))
  items = age.indices[order]
  place = np.arange(len(items)) - np.repeat(age.indptr[:-1], count)
  new = np.flatnonzero(age.data[order] <= new_rows[user])
  gap = np.arange(1, MAX_BEFORE + 1)
  total = scipy.sparse.csr_matrix((age.shape[1], age.shape[1]), dtype=np.float32)
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
  users, items = context.rows(slice(int(before.age.nnz), context.num_rows))
  shape = context.num_users, context.num_items
  old = _sized(before.taken, shape)
  fresh = scipy.sparse.csr_matrix((np.ones(len(users), np.float32), (users, items)), shape=shape)

  grown = np.repeat(np.diff(fresh.indptr), np.diff(old.indptr)).astype(np.float32)
  age = _with_data(old, before.age.data + grown) + scipy.sparse.csr_matrix(
      ((1 + base.later_items(users)).astype(np.float32), (users, items)), shape=shape)

  # (old + fresh)^T (old + fresh) without old^T old; only users with new rows have anything to add.
  new_rows = np.diff(fresh.indptr)
  busy = (new_rows > 0) & (np.diff(old.indptr) + new_rows > MAX_BEFORE + 1)
  active = np.flatnonzero((new_rows > 0) & ~busy)
  across = old[active].T @ fresh[active]
  together = _sized(before.together, (shape[1], shape[1])) + fresh[active].T @ fresh[active] + across + across.T
  if busy.any():
    across = _after_others(age[busy], new_rows[busy])
    alone = scipy.sparse.diags(np.asarray(fresh[busy].sum(axis=0)).ravel(), dtype=np.float32)
    together = together + across + across.T + alone

  _, newest = context.rows(slice(context.num_rows - int(np.ceil(context.num_rows * RECENT_SHARE)), context.num_rows))
  together, age = together.tocsr(), age.tocsr()
  # Sums in another order are rounded in another way.
  together.sort_indices()
  age.sort_indices()
  return Statistics(age, together, np.bincount(newest, minlength=shape[1]), before.half_life)


def of_all(context, half_life: float) -> Statistics:
  """Statistics of all rows of a `BlockContext`."""
  return added(empty(half_life), context)
