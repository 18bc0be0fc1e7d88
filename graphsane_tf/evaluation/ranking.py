"""Exact top-k of user-item dot products, without ever holding users x items in memory."""
import numpy as np
import tensorflow as tf


def top_k(user_vectors: np.ndarray, item_vectors: np.ndarray, users: np.ndarray,
          seen: tuple[np.ndarray, np.ndarray], k: int, user_chunk: int = 512,
          item_tile: int = 8_192) -> tuple[np.ndarray, np.ndarray]:
  """Ranks all items for each user and keeps the best k that the user has not seen.

  Equal scores are ordered by item number, whatever the sizes of chunk and tile. A matrix product
  rounds the rows and columns at its rim differently, which would part equal items; so all products
  have one shape, padded with zero vectors to multiples of 64.

  Args:
    user_vectors: [num_users, d] float32.
    item_vectors: [num_items, d] float32.
    users: [n] int, the users to rank for.
    seen: CSR pair (indptr [num_users + 1], indices) of the items that each user has seen.
    k: length of the lists.
    user_chunk: users ranked at a time, rounded up to a multiple of 64.
    item_tile: most items scored at a time, rounded likewise; a chunk needs user_chunk * item_tile
      floats.

  Returns:
    ids [n, k] int32 and scores [n, k] float32. Slots beyond the unseen items have id -1 and score
    -inf.
  """
  users = np.asarray(users)
  indptr, indices = (np.asarray(part) for part in seen)
  user_vectors, num_items = np.asarray(user_vectors, np.float32), len(item_vectors)
  user_chunk = _round_up(min(user_chunk, max(len(users), 1)))
  num_tiles = max(-(-num_items // _round_up(item_tile)), 1)
  item_tile = _round_up(-(-num_items // num_tiles))
  items = tf.convert_to_tensor(_pad(np.asarray(item_vectors, np.float32), num_tiles * item_tile))
  ids = np.full((len(users), k), -1, np.int32)
  scores = np.full((len(users), k), -np.inf, np.float32)
  for start in range(0, len(users), user_chunk):
    chunk = users[start:start + user_chunk]
    row, item = _seen_pairs(indptr, indices, chunk)
    best, found = _rank_chunk(_pad(user_vectors[chunk], user_chunk), items, num_items, row, item, k,
                              item_tile)
    ids[start:start + user_chunk] = found[:len(chunk)].numpy()
    scores[start:start + user_chunk] = best[:len(chunk)].numpy()
  return ids, scores


def _round_up(size: int) -> int:
  """The next multiple of 64."""
  return -(-size // 64) * 64


def _pad(vectors: np.ndarray, rows: int) -> np.ndarray:
  """Vectors [n, d] followed by zeros, [rows, d]."""
  return np.pad(vectors, ((0, rows - len(vectors)), (0, 0)))


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
    tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.int32),
    tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)])
def _rank_chunk(users, items, num_items, seen_row, seen_item, k, item_tile):
  """Ranks the items for one chunk of users, tile by tile.

  A tile's best come after the best so far, and `tf.math.top_k` prefers the earlier of two equal
  scores, hence the lower item number.

  Args:
    users: [n, d].
    items: [num_tiles * item_tile, d].
    num_items: how many of them are items; the others are padding.
    seen_row: [m], the row of each seen pair.
    seen_item: [m], its item.
    k: length of the lists.
    item_tile: items scored at a time.

  Returns:
    scores [n, k] and ids [n, k].
  """
  best = tf.fill([tf.shape(users)[0], k], -np.inf)
  ids = tf.fill([tf.shape(users)[0], k], -1)
  for start in tf.range(0, num_items, item_tile):
    stop = tf.minimum(start + item_tile, num_items)
    scores = tf.matmul(users, items[start:start + item_tile], transpose_b=True)
    scores = scores[:, :stop - start]
    inside = tf.where((seen_item >= start) & (seen_item < stop))[:, 0]
    pairs = tf.stack([tf.gather(seen_row, inside), tf.gather(seen_item, inside) - start], axis=1)
    scores = tf.tensor_scatter_nd_update(scores, pairs, tf.fill([tf.shape(pairs)[0]], -np.inf))
    tile_best, tile_ids = tf.math.top_k(scores, tf.minimum(k, stop - start))
    tile_ids = tf.where(tf.math.is_inf(tile_best) & (tile_best < 0), -1, tile_ids + start)
    best, order = tf.math.top_k(tf.concat([best, tile_best], axis=1), k)
    ids = tf.gather(tf.concat([ids, tile_ids], axis=1), order, batch_dims=1)
  return best, ids
