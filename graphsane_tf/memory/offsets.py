"""What a memory says about the pairs of a step, as a constant part of their scores."""
import numpy as np
import scipy.sparse
import tensorflow as tf


class PairOffsets(tf.Module):
  """Profiles times item-item weights, for some pairs at a time.

  The offset of user u and item i is the sum over the neighbours n of i of weights[n, i] * profile[u, n]. An item's
  neighbours are a row of a table; what u has of each of them is found by binary search among all (user, item).
  """

  def __init__(self, profile: scipy.sparse.csr_matrix, weights: scipy.sparse.csr_matrix, num_users: int,
               num_items: int):
    """Prepares the tables.

    Args:
      profile: [num_old_users, num_old_items] float32; all pairs that the memory has counted are in it.
      weights: [num_old_items, num_old_items] float32, from an item taken (row) to an item scored (column).
      num_users: users of the block; those that the memory does not know have offsets of 0.
      num_items: items of the block, likewise.
    """
    super().__init__()
    by_item = weights.tocsc()
    count = np.diff(by_item.indptr)
    places = np.repeat(np.arange(len(count)), count), np.arange(by_item.nnz) - np.repeat(by_item.indptr[:-1], count)
    # Where an item has fewer neighbours, item 0 stands in with a weight of 0.
    neighbours = np.zeros((num_items, max(int(count.max(initial=0)), 1)), np.int32)
    values = np.zeros(neighbours.shape, np.float32)
    neighbours[places], values[places] = by_item.indices, by_item.data
    self._neighbours, self._values = tf.constant(neighbours), tf.constant(values)

    profile = profile.tocsr()
    profile.sort_indices()
    rows = np.repeat(np.arange(profile.shape[0], dtype=np.int64), np.diff(profile.indptr))
    # Smaller keys stay in the cache.
    kind = tf.int32 if num_users * num_items < np.iinfo(np.int32).max else tf.int64
    self._num_items = tf.constant(num_items, kind)
    # One key more than any pair can have, so that a search always ends on a key.
    self._keys = tf.constant(np.append(rows * num_items + profile.indices, kind.max), kind)
    self._profile = tf.constant(np.append(profile.data, 0.), tf.float32)

  def _find(self, users: tf.Tensor, items: tf.Tensor):
    """Places of pairs among the keys, flat, and whether they are there; shapes can be broadcast."""
    wanted = tf.cast(users, self._keys.dtype) * self._num_items + tf.cast(items, self._keys.dtype)
    wanted = tf.reshape(wanted, [-1])
    place = tf.searchsorted(self._keys, wanted)
    return place, tf.gather(self._keys, place) == wanted

  def scores(self, users: tf.Tensor, items: tf.Tensor) -> tf.Tensor:
    """[B, n] float32 of [B] users and [B, n] items."""
    near = tf.gather(self._neighbours, items)
    place, present = self._find(users[:, None, None], near)
    share = tf.where(present, tf.gather(self._profile, place), 0.)
    return tf.reduce_sum(tf.gather(self._values, items) * tf.reshape(share, tf.shape(near)), axis=2)

  def of_batch(self, users: tf.Tensor, items: tf.Tensor) -> tf.Tensor:
    """Offsets of a step's pairs and their negatives.

    A pair that the memory has counted itself, a replayed one, has none: the weights were made from its answer.

    Args:
      users: [B] int32.
      items: [B, 1 + N] int32, the positive first.

    Returns:
      [B, 1 + N] float32.
    """
    _, counted = self._find(users, items[:, 0])
    return tf.where(counted[:, None], 0., self.scores(users, items))
