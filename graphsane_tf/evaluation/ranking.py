"""Exact top-k of user-item dot products, without ever holding users x items in memory."""
import collections
import dataclasses
from concurrent import futures
from typing import Optional

import numpy as np
import tensorflow as tf

# Scores held at once: products with larger results take up to twice as long, as the system hands out
# fresh pages for each.
_CHUNK_FLOATS = 3 << 20
# Most items scored at a time.
_ITEM_TILE = 1 << 16
# Users, items and tiles are padded to multiples of this, a power of two.
_UNIT = 64
# Halvings of the interval that holds a row's threshold.
_HALVINGS = 8
# Chunks of users ranked side by side.
_CHUNKS_AT_ONCE = 2
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
  fitting = _CHUNK_FLOATS // max(min(num_items, _ITEM_TILE), 1)
  return int(np.clip(fitting // _UNIT * _UNIT, _UNIT, 512))


def top_k(user_vectors: np.ndarray, item_vectors: np.ndarray, users: np.ndarray,
          seen: tuple[np.ndarray, np.ndarray], k: int, user_chunk: Optional[int] = None,
          item_tile: int = _ITEM_TILE) -> tuple[np.ndarray, np.ndarray]:
  """Ranks all items for each user and keeps the best k that the user has not seen.

  Equal scores are ordered by item number, whatever the sizes of chunk and tile. A matrix product
  rounds the rows and columns at its rim differently, which would part equal items; so all products
  have one shape, padded to multiples of 64.

  Args:
    user_vectors: [num_users, d] float32.
    item_vectors: [num_items, d] float32.
    users: [n] int, the users to rank for.
    seen: CSR pair (indptr [num_users + 1], indices) of the items that each user has seen.
    k: length of the lists.
    user_chunk: users ranked at a time, rounded up to a multiple of 64; None fits the items.
    item_tile: most items scored at a time, rounded likewise; a chunk needs user_chunk * item_tile
      floats.

  Returns:
    ids [n, k] int32 and scores [n, k] float32. Slots beyond the unseen items have id -1 and score
    -inf.
  """
  users = np.asarray(users)
  indptr, indices = (np.asarray(part) for part in seen)
  user_vectors, item_vectors = (
      np.asarray(part, np.float32) for part in (user_vectors, item_vectors))
  num_items = len(item_vectors)
  user_chunk = user_chunk or user_chunk_size(num_items)
  user_chunk = _round_up(min(user_chunk, max(len(users), 1)))
  num_tiles = max(-(-num_items // _round_up(item_tile)), 1)
  # An odd multiple: columns of an even one fall on the same cache lines, and products take longer.
  item_tile = _round_up(-(-num_items // num_tiles)) | _UNIT
  # Products with the transposed matrix take a third less time.
  items = tf.transpose(_extended(item_vectors, num_tiles * item_tile, 0., -np.inf))
  ids = np.full((len(users), k), -1, np.int32)
  scores = np.full((len(users), k), -np.inf, np.float32)
  # Bound once: that takes as long as ranking a few users.
  rank = _rank_chunk.get_concrete_function()
  sizes = [tf.constant(size) for size in (num_items, k, item_tile, group_size(item_tile, k))]

  def rank_from(start):
    chunk = users[start:start + user_chunk]
    row, item = _seen_pairs(indptr, indices, chunk)
    best, found = rank(
        tf.constant(_extended(user_vectors[chunk], user_chunk, 1., 1.)), tf.constant(len(chunk)),
        items, tf.constant(row), tf.constant(item), *sizes)
    ids[start:start + user_chunk] = found.numpy()
    scores[start:start + user_chunk] = best.numpy()

  # One chunk's serial operations fill the gaps of the other's.
  with futures.ThreadPoolExecutor(_CHUNKS_AT_ONCE) as pool:
    collections.deque(pool.map(rank_from, range(0, len(users), user_chunk)), maxlen=0)
  return ids, scores


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


def group_size(num_columns: int, k: int) -> int:
  """The largest power of two up to 64 that leaves 4 k groups of columns; 2 if only that leaves 2 k."""
  wanted = num_columns // max(4 * k, 1)
  if wanted < 2:
    return 2 if num_columns >= 4 * k else 1
  return min(_UNIT, 1 << wanted.bit_length() - 1)


def select(scores: tf.Tensor, k: tf.Tensor, size: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """`tf.math.top_k`, several times faster where there are many more columns than k.

  `tf.math.top_k` keeps a heap of the k best. Here it only sorts a row's candidates: the scores that
  reach a threshold below which none of the k best can be.

  Args:
    scores: [n, m] float32.
    k: at most m.
    size: `group_size(m, k)`, which must divide m.

  Returns:
    The k best scores of each row, best first, and their columns, of equal ones the lower first. The
    column of a slot with score -inf means nothing.
  """
  def fast():
    flat = tf.where(tf.reshape(scores >= _threshold(scores, k, size)[:, None], [-1]))[:, 0]
    # Many equal scores can make candidates of all.
    return tf.cond(tf.size(flat) <= 3 * k * tf.shape(scores)[0],
                   lambda: _sort_candidates(scores, flat, k), lambda: _top_k(scores, k))

  return tf.cond(size > 1, fast, lambda: _top_k(scores, k))


def _top_k(scores, k):
  values, columns = tf.math.top_k(scores, k)
  return values, columns


def _threshold(scores: tf.Tensor, k: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
  """[n] a finite score that k entries of each row [n, m] reach, or all finite ones if fewer.

  Columns are put into groups of `size`; if the maxima of k groups reach a value, k entries do. The
  largest such value is found by halving an interval.
  """
  maxima = tf.reduce_max(tf.reshape(scores, [tf.shape(scores)[0], size, -1]), axis=1)

  def reached(value):
    return tf.reduce_sum(tf.cast(maxima >= value[:, None], tf.float32), axis=1) >= needed

  needed = tf.cast(k, tf.float32)
  low = tf.reduce_min(tf.where(maxima > -np.inf, maxima, np.inf), axis=1)
  low = tf.where(reached(low), low, scores.dtype.min)
  high = tf.reduce_max(maxima, axis=1)
  for _ in range(_HALVINGS):
    middle = .5 * low + .5 * high
    enough = reached(middle)
    low, high = tf.where(enough, middle, low), tf.where(enough, high, middle)
  return tf.maximum(low, scores.dtype.min)


def _sort_candidates(scores: tf.Tensor, flat: tf.Tensor, k: tf.Tensor):
  """The k best of some candidates, as `select` gives them.

  Args:
    scores: [n, m].
    flat: ascending int64 numbers row * m + column of the candidates.
    k: how many are kept.
  """
  rows, columns = tf.unstack(tf.shape(scores, out_type=tf.int64))
  start = tf.range(rows + 1) * columns
  splits = tf.searchsorted(flat, start, out_type=tf.int64)
  # A row's candidates side by side, in the order of their columns.
  width = tf.maximum(tf.reduce_max(splits[1:] - splits[:-1]), tf.cast(k, tf.int64))
  values = tf.RaggedTensor.from_row_splits(
      tf.gather(tf.reshape(scores, [-1]), flat), splits, validate=False)
  values = values.to_tensor(-np.inf, shape=tf.stack([rows, width]))
  # All of a row: then top_k sorts, which is faster than its heap.
  values, order = tf.math.top_k(values, tf.cast(width, tf.int32))
  place = splits[:-1, None] + tf.cast(order[:, :k], tf.int64)
  # A slot without a candidate may point behind the last one.
  found = tf.gather(tf.concat([flat, tf.zeros_like(values[0], tf.int64)], axis=0), place)
  return values[:, :k], tf.cast(found - start[:-1, None], tf.int32)


def _round_up(size: int) -> int:
  """The next multiple of 64."""
  return -(-size // _UNIT) * _UNIT


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
    tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([], tf.int32),
    tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None], tf.int32),
    tf.TensorSpec([None], tf.int32), *[tf.TensorSpec([], tf.int32)] * 4])
def _rank_chunk(users, num_users, items, seen_row, seen_item, num_items, k, item_tile, size):
  """Ranks the items for one chunk of users, tile by tile.

  A tile's best come after the best so far, and `tf.math.top_k` prefers the earlier of two equal
  scores, hence the lower item number. If there is one tile, its best are the best.

  Args:
    users: [n, d + 1], extended.
    num_users: how many of them are users; the others are padding.
    items: [d + 1, num_tiles * item_tile], likewise.
    seen_row: [m], the row of each seen pair.
    seen_item: [m], its item.
    num_items: how many of `items` are items; the others are padding.
    k: length of the lists.
    item_tile: items scored at a time.
    size: `group_size(item_tile, k)`.

  Returns:
    scores [num_users, k] and ids [num_users, k].
  """
  rows = num_users
  best = tf.fill([rows, k], -np.inf)
  ids = tf.fill([rows, k], -1)
  for start in tf.range(0, num_items, item_tile):
    stop = tf.minimum(start + item_tile, num_items)
    inside = tf.where((seen_item >= start) & (seen_item < stop))[:, 0]
    masked = tf.gather(seen_row, inside) * item_tile + tf.gather(seen_item, inside) - start
    scores = tf.matmul(users, items[:, start:start + item_tile])[:rows]
    scores = tf.reshape(scores, [-1])
    # tf.tensor_scatter_nd_update would copy the scores.
    scores = tf.raw_ops.InplaceUpdate(x=scores, i=masked, v=tf.fill(tf.shape(masked), -np.inf))
    scores = tf.reshape(scores, [rows, item_tile])
    tile_best, tile_ids = select(scores, tf.minimum(k, item_tile), size)
    tile_ids = tf.where(tile_best == -np.inf, -1, tile_ids + start)
    if item_tile >= num_items and k <= item_tile:
      best, ids = tile_best, tile_ids
    else:
      best, order = tf.math.top_k(tf.concat([best, tile_best], axis=1), k)
      ids = tf.gather(tf.concat([ids, tile_ids], axis=1), order, batch_dims=1)
  return best, ids
