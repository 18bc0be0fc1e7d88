"""Exact top-k of user-item dot products, without ever holding users x items in memory."""
import dataclasses
import threading
from typing import List, Optional

import numpy as np
import tensorflow as tf

from graphsane_tf import parallel
from graphsane_tf.graph import topk

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


def user_chunk_size(num_items: int) -> int:
  """Users ranked at a time, by default: 64 to 512."""
  fitting = _CHUNK_FLOATS // _threads() // max(min(num_items, _ITEM_TILE), 1)
  return int(np.clip(fitting // topk.UNIT * topk.UNIT, topk.UNIT, 512))


def top_k(user_vectors: np.ndarray, item_vectors: np.ndarray, users: np.ndarray,
          seen: tuple[np.ndarray, np.ndarray], k: int, user_chunk: Optional[int] = None,
          item_tile: int = _ITEM_TILE) -> tuple[np.ndarray, np.ndarray]:
  """Ranks all items for each user and keeps the best k that the user has not seen.

  Equal scores are ordered by item number. Scores are what the machine's matrix product gives: two that
  differ by its rounding alone may come in either order on another processor, with another number of
  threads or with other sizes of chunk and tile. The same call on the same machine gives the same lists.

  Args:
    user_vectors: [num_users, d] float32.
    item_vectors: [num_items, d] float32.
    users: [n] int, the users to rank for.
    seen: CSR pair (indptr [num_users + 1], indices) of the items that each user has seen.
    k: length of the lists.
    user_chunk: users ranked at a time; None fits the items.
    item_tile: most items scored at a time, rounded up to a multiple of 64; a chunk needs
      user_chunk * item_tile floats.

  Returns:
    ids [n, k] int32 and scores [n, k] float32. Slots beyond the unseen items have id -1 and score
    -inf.
  """
  users = np.asarray(users)
  indptr, indices = (np.asarray(part) for part in seen)
  # With a type, NumPy would copy a tensor.
  user_vectors, item_vectors = (
      np.asarray(part).astype(np.float32, copy=False) for part in (user_vectors, item_vectors))
  num_items = len(item_vectors)
  user_chunk = user_chunk or user_chunk_size(num_items)
  num_tiles = max(-(-num_items // _round_up(item_tile)), 1)
  # An odd multiple: columns of an even one fall on the same cache lines, and products take longer.
  item_tile = _round_up(-(-num_items // num_tiles)) | topk.UNIT
  tiles = np.split(_extended(item_vectors, num_tiles * item_tile, 0., -np.inf), num_tiles)
  scorer = (_device_scorer if _has_gpu() else _host_scorer)(tiles)
  ids = np.full((len(users), k), -1, np.int32)
  scores = np.full((len(users), k), -np.inf, np.float32)

  def rank_from(start):
    chunk = users[start:start + user_chunk]
    row, item = _seen_pairs(indptr, indices, chunk)
    vectors = _extended(user_vectors[chunk], len(chunk), 1., 1.)
    for number in range(num_tiles):
      inside = item // item_tile == number
      masked = row[inside] * item_tile + item[inside] % item_tile
      values, columns = topk.select(scorer(vectors, number, masked), min(k, item_tile))
      columns = columns + np.int32(number * item_tile)
      columns[values == -np.inf] = -1
      if not number:
        best, found = values, columns
        continue
      # A tile's best stand behind the best so far, so that of equal ones the lower number is kept.
      best, found = np.hstack([best, values]), np.hstack([found, columns])
      best, order = topk.plain(best, min(k, best.shape[1]))
      found = np.take_along_axis(found, order, axis=1)
    ids[start:start + user_chunk, :found.shape[1]] = found
    scores[start:start + user_chunk, :best.shape[1]] = best

  parallel.side_by_side(rank_from, range(0, len(users), user_chunk), _threads())
  return ids, scores


def _has_gpu() -> bool:
  return bool(tf.config.list_logical_devices('GPU'))


def _threads() -> int:
  return _GPU_THREADS if _has_gpu() else parallel.cores()


def _host_scorer(tiles: List[np.ndarray]):
  """Scores of a chunk of users and a tile of items, in NumPy: each thread has its own memory for them.

  TensorFlow is slow to change single entries of a product.

  Args:
    tiles: [m, d + 1] each, extended.

  Returns:
    A function of users [n, d + 1], extended, the number of a tile and numbers row * m + column of the
    entries that are set to -inf. Its result [n, m] is overwritten by the thread's next one.
  """
  memory = threading.local()

  def scores(users, number, masked):
    shape = len(users), len(tiles[number])
    if getattr(memory, 'scores', np.empty(0)).shape != shape:
      memory.scores = np.empty(shape, np.float32)
    np.matmul(users, tiles[number].T, out=memory.scores)
    memory.scores.ravel()[masked] = -np.inf
    return memory.scores

  return scores


def _device_scorer(tiles: List[np.ndarray]):
  """The same on a GPU."""
  tiles = [tf.transpose(tile) for tile in tiles]
  # Bound once: that takes as long as ranking a few users.
  masked_scores = _masked_scores.get_concrete_function()
  return lambda users, number, masked: masked_scores(
      tf.constant(users), tiles[number], tf.constant(masked))


def shortened(lists: Lists, users: np.ndarray, seen: tuple[np.ndarray, np.ndarray], k: int,
              num_items: int) -> tuple[np.ndarray, np.ndarray]:
  """What `top_k` gives, from lists of the same vectors that leave out fewer items.

  Args:
    lists: lists that leave out nothing but seen items.
    users: [n] int, the users wanted.
    seen: CSR pair as in `top_k`.
    k: length of the lists wanted.
    num_items: number of items.

  Returns:
    ids [n, k] int32 as in `top_k`, and [n] bool, whether a user's list could be had in this way.
  """
  ids = np.full((len(users), k), -1, np.int32)
  found = np.isin(users, lists.users)
  rows = np.flatnonzero(found)
  size = user_chunk_size(num_items)
  for chunk in np.split(rows, range(size, len(rows), size)):
    items = lists.items[np.searchsorted(lists.users, users[chunk]), :_LOOK_AHEAD * k]
    row = np.arange(len(chunk))[:, None]
    known = np.zeros((len(chunk), num_items + 1), bool)  # The last column is that of item -1.
    known[:, -1] = True
    known[_seen_pairs(*seen, users[chunk])] = True
    new = ~known[row, items]
    place = np.cumsum(new, axis=1, dtype=np.int32)
    listed = np.nonzero(new & (place <= k))
    ids[chunk[listed[0]], place[listed] - 1] = items[listed]
    found[chunk] = (place[:, -1] >= k) | (items[:, -1] < 0)
  return ids, found


def _round_up(size: int) -> int:
  """The next multiple of 64."""
  return -(-size // topk.UNIT) * topk.UNIT


def _extended(vectors: np.ndarray, rows: int, inside: float, outside: float) -> np.ndarray:
  """Vectors [n, d] followed by zeros, and a last coordinate, [rows, d + 1].

  The last coordinate, 1 of a user, gives padding the score -inf and leaves those of items as they
  are: that is free, while masking the padding of each chunk is not.

  Args:
    vectors: [n, d] float32.
    rows: how many there are with padding.
    inside: last coordinate of the vectors.
    outside: last coordinate of the padding.
  """
  result = np.zeros([rows, vectors.shape[1] + 1], np.float32)
  result[:len(vectors), :-1] = vectors
  result[:len(vectors), -1] = inside
  result[len(vectors):, -1] = outside
  return result


def _seen_pairs(indptr: np.ndarray, indices: np.ndarray,
                users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """The seen items of some users as pairs.

  Args:
    indptr: [num_users + 1].
    indices: [num_pairs].
    users: [n].

  Returns:
    row [m] int32, the position in `users`, and item [m] int32.
  """
  starts, counts = indptr[users], indptr[users + 1] - indptr[users]
  row = np.repeat(np.arange(len(users), dtype=np.int32), counts)
  shift = np.repeat(starts - (np.cumsum(counts) - counts), counts)
  return row, indices[shift + np.arange(len(row))].astype(np.int32)


@tf.function(input_signature=[
    tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None, None], tf.float32),
    tf.TensorSpec([None], tf.int32)])
def _masked_scores(users, items, masked):
  """Scores of a chunk of users and a tile of items.

  Args:
    users: [n, d + 1], extended.
    items: [d + 1, m], likewise.
    masked: numbers row * m + column of the entries that are set to -inf.

  Returns:
    [n, m].
  """
  scores = tf.matmul(users, items)
  # tf.tensor_scatter_nd_update would copy the scores.
  flat = tf.raw_ops.InplaceUpdate(
      x=tf.reshape(scores, [-1]), i=masked, v=tf.fill(tf.shape(masked), -np.inf))
  return tf.reshape(flat, tf.shape(scores))
