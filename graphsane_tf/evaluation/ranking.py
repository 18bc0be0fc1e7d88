"""Exact top-k of user-item scores, without ever holding users x items in memory."""
import abc
import dataclasses
import threading
from typing import Callable, Optional

import numpy as np
import tensorflow as tf

from graphsane_tf import parallel, workers
from graphsane_tf.graph import csr, topk

# Scores held at once by all threads, but each has those of 64 users at least. Products with fewer than
# 256 users take up to half as long again.
_CHUNK_FLOATS = 24 << 20
# Most items scored at a time.
_ITEM_TILE = 1 << 16
# Chunks of users ranked at once on a GPU; the host's work on one fills the gaps of the others.
_GPU_THREADS = 3
# Entries of longer lists that `shortened` looks at, in lengths of the shorter ones.
_LOOK_AHEAD = 16


@dataclasses.dataclass(frozen=True)
class Lists:
  """The best items of some users, with some or all of those that they have seen left out.

  Attributes:
    users: [n] int, ascending.
    items: [n, length] int32, best first as in `top_k`; -1 beyond a user's last item.
  """
  users: np.ndarray
  items: np.ndarray


def user_chunk_size(num_items: int, on_device: Optional[bool] = None) -> int:
  """Users ranked at a time, by default: 64 to 512; `on_device` as in `top_k`."""
  fitting = _CHUNK_FLOATS // _threads(on_device) // max(min(num_items, _ITEM_TILE), 1)
  return int(np.clip(fitting // topk.UNIT * topk.UNIT, topk.UNIT, 512))


class Scorer(abc.ABC):
  """Scores of all known items for all known users, of which only a part is computed at a time.

  Attributes:
    num_users, num_items: how many there are.
  """
  num_users: int
  num_items: int

  @abc.abstractmethod
  def tile(self, start: int, stop: int) -> Callable[[np.ndarray, np.ndarray], None]:
    """A function of users [n] that writes their scores of items start to stop - 1 into [n, stop - start].

    It is called from several threads at once.
    """

  def device_tile(self, start: int, stop: int) -> Optional[Callable[[np.ndarray, np.ndarray], tf.Tensor]]:
    """The same with TensorFlow, on its device, or None if it cannot.

    It is a function of users [n] and of places, row * (stop - start) + column, that are set to -inf, and returns the
    scores [n, stop - start].
    """
    del start, stop
    return None


class DotProduct(Scorer):
  """Dot products of final representations."""

  def __init__(self, user_vectors: np.ndarray, item_vectors: np.ndarray):
    """Takes [num_users, D] and [num_items, D] float32, arrays or tensors."""
    # With a type, NumPy would copy a tensor.
    self.user_vectors, self.item_vectors = (
        np.asarray(part).astype(np.float32, copy=False) for part in (user_vectors, item_vectors))
    self.num_users, self.num_items = len(self.user_vectors), len(self.item_vectors)

  def cut(self, num_users: int, num_items: int) -> 'DotProduct':
    """The scores of the first users and items."""
    return DotProduct(self.user_vectors[:num_users], self.item_vectors[:num_items])

  def tile(self, start, stop):
    items = self.item_vectors[start:stop].T

    def write(users, out):
      np.matmul(self.user_vectors[users], items, out=out)

    return write

  def device_tile(self, start, stop):
    items = tf.constant(self.item_vectors[start:stop].T)
    # Bound once: that takes as long as ranking a few users.
    masked_scores = _masked_scores.get_concrete_function()
    return lambda users, masked: masked_scores(
        tf.constant(self.user_vectors[users]), items, tf.constant(masked))


def top_k(scorer: Scorer, users: np.ndarray, seen: csr.Csr, k: int, user_chunk: Optional[int] = None,
          item_tile: int = _ITEM_TILE, on_device: Optional[bool] = None) -> tuple[np.ndarray, np.ndarray]:
  """Ranks all items for each user and keeps the best k that the user has not seen.

  On a device, scores and `tf.math.top_k` are TensorFlow's; without one they are NumPy's, which is faster on a CPU
  (`topk.select`). The device's way has been run on CPUs only, where it gives the same lists, never on a GPU.

  Equal scores are ordered by item number. Scores are what the machine's matrix product gives: two that
  differ by its rounding alone may come in either order on another processor, with another number of
  threads or with other sizes of chunk and tile. The same call on the same machine gives the same lists.

  Several workers rank a part of the users each, and all get the lists of all.

  Args:
    scorer: gives the scores.
    users: [n] int, the users to rank for.
    seen: [num_users or more, ...] items that each user has seen.
    k: length of the lists.
    user_chunk: users ranked at a time; None fits the items.
    item_tile: most items scored at a time; a chunk needs user_chunk * item_tile floats.
    on_device: whether TensorFlow's device ranks; None asks whether that is a GPU.

  Returns:
    ids [n, k] int32 and scores [n, k] float32. Slots beyond the unseen items have id -1 and score
    -inf.
  """
  users = np.asarray(users)
  if workers.current().count > 1:
    ids, scores = workers.in_shares(lambda some: top_k(scorer, some, seen, k, user_chunk, item_tile, on_device), users)
    return ids, scores
  num_items = scorer.num_items
  on_device = has_gpu() if on_device is None else on_device
  user_chunk = user_chunk or user_chunk_size(num_items, on_device)
  tile_size = max(-(-num_items // max(-(-num_items // item_tile), 1)), 1)
  bounds = [(start, min(start + tile_size, num_items)) for start in range(0, num_items, tile_size)]
  tiles = [_Tile(scorer, *bound, on_device) for bound in bounds]
  ids = np.full((len(users), k), -1, np.int32)
  scores = np.full((len(users), k), -np.inf, np.float32)

  def rank_from(start):
    chunk = users[start:start + user_chunk]
    row, item = seen_pairs(seen, chunk)
    best = columns = None
    for tile in tiles:
      values, places = tile.select(tile.scores(chunk, row, item), min(k, tile.width))
      places = places + np.int32(tile.start)
      places[values == -np.inf] = -1
      if best is None:
        best, columns = values, places
        continue
      # A tile's best stand behind the best so far, so that of equal ones the lower number is kept.
      best, columns = np.hstack([best, values]), np.hstack([columns, places])
      best, order = topk.plain(best, min(k, best.shape[1]))
      columns = np.take_along_axis(columns, order, axis=1)
    if best is not None:
      ids[start:start + user_chunk, :columns.shape[1]] = columns
      scores[start:start + user_chunk, :best.shape[1]] = best

  parallel.side_by_side(rank_from, range(0, len(users), user_chunk), _threads(on_device))
  return ids, scores


def has_gpu() -> bool:
  """Whether TensorFlow's device is a GPU."""
  return bool(tf.config.list_logical_devices('GPU'))


def _threads(on_device: Optional[bool] = None) -> int:
  return _GPU_THREADS if (has_gpu() if on_device is None else on_device) else parallel.cores()


class _Tile:
  """Scores of some items with those that a user has seen left out.

  On a CPU they are NumPy's: TensorFlow is slow to change single entries of a product. Each thread has its own
  memory for them, which its next call overwrites.

  Attributes:
    start: number of the first item.
    width: columns of the scores, of which those beyond the items are -inf.
    select: finds the best of the scores.
  """

  def __init__(self, scorer: Scorer, start: int, stop: int, on_device: bool):
    self.start = start
    self._size = stop - start
    self._on_device = scorer.device_tile(start, stop) if on_device else None
    self.select = topk.plain if self._on_device else topk.select
    if not self._on_device:
      self._write = scorer.tile(start, stop)
    # An odd multiple of the unit: columns of an even one fall on the same cache lines, and products take longer.
    self.width = self._size if self._on_device else -(-self._size // topk.UNIT) * topk.UNIT | topk.UNIT
    self._memory = threading.local()

  def scores(self, users: np.ndarray, row: np.ndarray, item: np.ndarray):
    """[n, width] of users [n]; the pairs (row [m], item [m]) are -inf."""
    inside = (item >= self.start) & (item < self.start + self._size)
    masked = row[inside] * self.width + item[inside] - self.start
    if self._on_device:
      return self._on_device(users, masked)
    shape = len(users), self.width
    if getattr(self._memory, 'scores', np.empty(0)).shape != shape:
      self._memory.scores = np.empty(shape, np.float32)
    scores = self._memory.scores
    self._write(users, scores[:, :self._size])
    scores[:, self._size:] = -np.inf
    scores.ravel()[masked] = -np.inf
    return scores


def shortened(lists: Lists, users: np.ndarray, seen: csr.Csr, k: int, num_items: int
             ) -> tuple[np.ndarray, np.ndarray]:
  """What `top_k` gives, from lists of the same vectors that leave out fewer items.

  Args:
    lists: lists that leave out nothing but seen items.
    users: [n] int, the users wanted.
    seen: as in `top_k`.
    k: length of the lists wanted.
    num_items: number of items.

  Returns:
    ids [n, k] int32 as in `top_k`, and [n] bool, whether a user's list could be had in this way.
  """
  ids = np.full((len(users), k), -1, np.int32)
  complete = np.isin(users, lists.users)
  rows = np.flatnonzero(complete)
  size = user_chunk_size(num_items)
  for chunk in np.split(rows, range(size, len(rows), size)):
    items = lists.items[np.searchsorted(lists.users, users[chunk]), :_LOOK_AHEAD * k]
    row = np.arange(len(chunk))[:, None]
    known = np.zeros((len(chunk), num_items + 1), bool)  # The last column is that of item -1.
    known[:, -1] = True
    known[seen_pairs(seen, users[chunk])] = True
    new = ~known[row, items]
    place = np.cumsum(new, axis=1, dtype=np.int32)
    listed = np.nonzero(new & (place <= k))
    ids[chunk[listed[0]], place[listed] - 1] = items[listed]
    complete[chunk] = (place[:, -1] >= k) | (items[:, -1] < 0)
  return ids, complete


def seen_pairs(seen: csr.Csr, users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """The seen items of some users [n] as pairs.

  Returns:
    row [m] int32, the position in `users`, and item [m] int32.
  """
  starts, counts = seen.indptr[users], seen.indptr[users + 1] - seen.indptr[users]
  row = np.repeat(np.arange(len(users), dtype=np.int32), counts)
  shift = np.repeat(starts - (np.cumsum(counts) - counts), counts)
  return row, seen.indices[shift + np.arange(len(row))].astype(np.int32)


@tf.function(input_signature=[
    tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None, None], tf.float32),
    tf.TensorSpec([None], tf.int32)])
def _masked_scores(users, items, masked):
  """Scores of a chunk of users and a tile of items.

  Args:
    users: [n, d].
    items: [d, m].
    masked: numbers row * m + column of the entries that are set to -inf.

  Returns:
    [n, m].
  """
  scores = tf.matmul(users, items)
  # tf.tensor_scatter_nd_update would copy the scores.
  flat = tf.raw_ops.InplaceUpdate(
      x=tf.reshape(scores, [-1]), i=masked, v=tf.fill(tf.shape(masked), -np.inf))
  return tf.reshape(flat, tf.shape(scores))
