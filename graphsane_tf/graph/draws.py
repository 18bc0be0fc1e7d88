"""Uniform negatives: any item that is not one of the user's positives, each equally likely."""
from typing import Optional

import numpy as np
import tensorflow as tf

from graphsane_tf.graph import csr


class Complement(tf.Module):
  """Draws uniformly from the complement of each user's positives, without rejection.

  Number the items that user u has not taken 0, 1, ..., in order. With p_0 < p_1 < ... their
  positives, item number r is r + #{k : p_k - k <= r}. The keys u * (num_items + 1) + p_k - k of all
  users are sorted, so one binary search over them gives the count for any (u, r).
  """

  host = ('num_items',)

  def __init__(self, positives: csr.Csr):
    """Takes the [num_users, num_items] positives to keep out."""
    super().__init__()
    self.num_items = num_items = positives.num_columns
    self._num_items = tf.constant(num_items, tf.int64)
    place = np.arange(len(positives.indices)) - np.repeat(positives.indptr[:-1], positives.degree)
    keys = positives.rows().astype(np.int64) * (num_items + 1) + positives.indices - place
    # Smaller keys stay in the cache.
    fits = positives.num_rows * (num_items + 1) <= np.iinfo(np.int32).max
    self._keys = tf.constant(keys, tf.int32 if fits else tf.int64)
    self._indptr = tf.constant(positives.indptr, tf.int64)

  def draw(self, users: tf.Tensor, count: int, seed: tf.Tensor, places: Optional[tf.Tensor] = None):
    """Draws `count` items for each user, with replacement.

    Args:
      users: [n] integers.
      count: draws a user.
      seed: [2] int32.
      places: [m] of the users who are drawn for, None for all; each gets the same as if it were all.

    Returns:
      [n, count] int32 items and [n, count] float32, 0 where a user has taken every item (then the
      item means nothing); [m, count] of the places.
    """
    uniform = tf.random.stateless_uniform([tf.size(users), count], seed, dtype=tf.float64)
    if places is not None:
      users, uniform = tf.gather(users, places), tf.gather(uniform, places)
    start = tf.gather(self._indptr, users)
    free = self._num_items - (tf.gather(self._indptr, users + 1) - start)
    rank = tf.cast(uniform * tf.cast(free, tf.float64)[:, None], tf.int64)
    key = tf.cast(users, tf.int64)[:, None] * (self._num_items + 1) + rank
    before = tf.searchsorted(self._keys, tf.reshape(tf.cast(key, self._keys.dtype), [-1]),
                             side='right', out_type=tf.int64)
    item = rank + tf.reshape(before, tf.shape(key)) - start[:, None]
    valid = tf.cast(free > 0, tf.float32)[:, None] * tf.ones_like(uniform, tf.float32)
    return tf.cast(tf.clip_by_value(item, 0, self._num_items - 1), tf.int32), valid

  def probabilities(self, user: int) -> np.ndarray:
    """[num_items] float64 probabilities of one draw; zeros if the user has taken every item."""
    start, stop = self._indptr[user].numpy(), self._indptr[user + 1].numpy()
    first = self._keys[start:stop].numpy() - user * (self.num_items + 1)
    taken = first + np.arange(stop - start)
    free = np.ones(self.num_items)
    free[taken] = 0.
    return free / max(free.sum(), 1.)


class Membership(tf.Module):
  """Tells whether (user, item) pairs are among given ones, by binary search."""

  def __init__(self, pairs: csr.Csr):
    """Takes the [num_users, num_items] pairs."""
    super().__init__()
    self._num_items = tf.constant(pairs.num_columns, tf.int64)
    keys = pairs.rows().astype(np.int64) * pairs.num_columns + pairs.indices
    # One key more than any pair can have, so that a search always ends on a key.
    self._keys = tf.constant(np.append(keys, np.iinfo(np.int64).max), tf.int64)

  def contains(self, users: tf.Tensor, items: tf.Tensor) -> tf.Tensor:
    """[n, m] bool for [n] users and [n, m] items."""
    wanted = tf.cast(users, tf.int64)[:, None] * self._num_items + tf.cast(items, tf.int64)
    place = tf.searchsorted(self._keys, tf.reshape(wanted, [-1]))
    return tf.reshape(tf.gather(self._keys, place), tf.shape(wanted)) == wanted
