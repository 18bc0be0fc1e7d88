"""Rankings of unobserved items by user, and tables of a few items for each of them."""
import math
from typing import Callable, Iterator, Optional, Tuple

import numpy as np
import tensorflow as tf

from graphsane_tf.evaluation import approximate, ranking
from graphsane_tf.graph import csr, topk
from graphsane_tf.graph.draws import Complement
from graphsane_tf.random import Seeds

# Entries of a table in work held at once.
_CHUNK_FLOATS = 1 << 23


def start_rank(options, num_items: int) -> int:
  """First rank of a band, 1-based; a small catalogue moves it up, to its last rank at the latest.

  Args:
    options: has `start_rank` and `max_start_share`.
    num_items: size of the catalogue.
  """
  return max(1, min(options.start_rank, int(options.max_start_share * num_items) + 1, num_items))


def top_keys(scores: np.ndarray, excluded: Tuple[np.ndarray, np.ndarray],
             depth: int) -> Tuple[np.ndarray, np.ndarray]:
  """The best `depth` columns of each row, best first; of equal ones the lower number first.

  For columns of which many are equal, where `topk.select` has too many candidates.

  Args:
    scores: [n, num_items] float32.
    excluded: (row [m], column [m]) of the entries to leave out.
    depth: at most num_items.

  Returns:
    columns [n, depth] int32, -1 where a row has no more, and their scores [n, depth] float32
    (-inf).
  """
  keys = topk.sort_keys(scores, np.arange(scores.shape[1], dtype=np.int64))
  keys[excluded] = topk.NO_KEY
  if depth < scores.shape[1]:
    keys.partition(depth - 1, axis=1)
    keys = keys[:, :depth]
  keys.sort(axis=1)
  present = keys < topk.NO_KEY
  columns = np.where(present, keys & 0xffffffff, -1).astype(np.int32)
  best = np.take_along_axis(scores, np.maximum(columns, 0), axis=1)
  return columns, np.where(present, best, np.float32(-np.inf))


class Rankings:
  """Rankings of the unobserved items of some users, of which the last is kept until it is used."""

  def __init__(self, users: np.ndarray, excluded: csr.Csr, kind: str = 'exact'):
    """Prepares to rank.

    Args:
      users: [n] int, ascending.
      excluded: [num_users, num_items] items that are not ranked.
      kind: 'exact', or 'approximate' by an index of the items.
    """
    self._users = users
    self._excluded = excluded
    self._approximate = kind == 'approximate'
    if self._approximate:
      approximate.check()
    self._item_vectors = None
    self._lists: Optional[ranking.Lists] = None

  def rank(self, user_vectors: tf.Tensor, item_vectors: tf.Tensor, last: int,
           scorer: Callable[..., ranking.Scorer] = ranking.DotProduct) -> Optional[ranking.Lists]:
    """Ranks 1 to `last`, for others to share; the same object `item_vectors` is not ranked twice.

    Args:
      user_vectors: [num_users, D] float32.
      item_vectors: [num_items, D] float32.
      last: last rank, at most num_items.
      scorer: makes the scorer of them; always the same.

    Returns:
      The lists; None if they are approximate, which is good enough for negatives only.
    """
    if self._approximate:
      return None
    if self._lists is None or self._item_vectors is not item_vectors:
      items, _ = ranking.top_k(scorer(user_vectors, item_vectors), self._users, self._excluded, last)
      self._item_vectors, self._lists = item_vectors, ranking.Lists(self._users, items)
    return self._lists

  def take(self, user_vectors: tf.Tensor, item_vectors: tf.Tensor, last: int,
           scorer: Callable[..., ranking.Scorer] = ranking.DotProduct) -> np.ndarray:
    """[n, last] int32, the same items, -1 beyond the unobserved ones; they are no longer kept."""
    lists = self.rank(user_vectors, item_vectors, last, scorer)
    if lists is None:
      return approximate.top_k(scorer(user_vectors, item_vectors), self._users, self._excluded, last)[0]
    self._item_vectors = self._lists = None
    return lists.items


class ItemTable(tf.Module):
  """A few items for each of some users; whoever has none is given uniform negatives.

  Attributes:
    users: [num_slots] int64 NumPy array, users with a row.
    items: [num_slots, width] int32 variable; the valid ones come first.
    count: [num_slots] int32 variable, number of valid ones.
    uniform: draws of the others.
  """

  host = ('users',)

  def __init__(self, users: np.ndarray, width: int, positives: csr.Csr):
    """Makes an empty table.

    Args:
      users: distinct users that get a row.
      width: most items of a user.
      positives: [num_users, num_items] items that are never drawn uniformly.
    """
    super().__init__()
    self.users = users
    self.width = max(width, 1)
    self.uniform = Complement(positives)
    self._uniform_log_probability = tf.constant(-math.log(max(positives.num_columns, 1)), tf.float32)
    slot = np.full(positives.num_rows, -1, np.int32)
    slot[users] = np.arange(len(users))
    self._slot = tf.constant(slot)
    # One row at least, so that it can always be gathered from.
    rows = max(len(users), 1)
    self.items = tf.Variable(tf.zeros([rows, self.width], tf.int32), trainable=False)
    self.count = tf.Variable(tf.zeros([rows], tf.int32), trainable=False)

  @property
  def num_slots(self) -> int:
    return len(self.users)

  def chunks(self, floats_a_slot: int, part: Optional[slice] = None) -> Iterator[Tuple[int, int]]:
    """Stretches (start, stop) of the slots, or a part of them, whose work fits in memory."""
    first, last = (part.start, part.stop) if part else (0, self.num_slots)
    size = max(1, _CHUNK_FLOATS // max(floats_a_slot, 1))
    for start in range(first, last, size):
      yield start, min(start + size, last)

  def assign(self, items: np.ndarray) -> None:
    """Fills the table with [num_slots, width] items, -1 where there is none (only at the end)."""
    if self.num_slots:
      self.items.assign(np.maximum(items, 0))
      self.count.assign((items >= 0).sum(axis=1).astype(np.int32))

  def draw(self, users: tf.Tensor, num_draws: int, seeds: Seeds,
           place: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor],
           log_probability: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]):
    """Draws with replacement.

    Args:
      users: [B] int32.
      num_draws: draws a user.
      seeds: of the draws.
      place: gives the place [B, num_draws] in the row from uniform numbers in [0, 1) [B, num_draws], the
        count [B, 1] as float32 and the row [B].
      log_probability: gives the log of the probability of places [B, num_draws] int32 from them, the count
        and the row.

    Returns:
      [B, num_draws] int32 items, [B, num_draws] float32 weights, 0 where a user has taken everything, and the
      [B, num_draws] float32 logs of the items' probabilities.
    """
    slot = tf.gather(self._slot, users)
    row = tf.maximum(slot, 0)
    count = tf.gather(self.count, row)[:, None]
    random = tf.random.stateless_uniform([tf.size(users), num_draws], seeds.next())
    held = tf.cast(count, tf.float32)
    places = tf.cast(place(random, held, row), tf.int32)
    # Rounding can push a number close to 1 over the end.
    places = tf.clip_by_value(places, 0, tf.maximum(count - 1, 0))
    chosen = tf.gather(tf.reshape(self.items, [-1]), tf.cast(row[:, None], tf.int64) * self.width
                       + tf.cast(places, tf.int64))
    filled = tf.logical_and(slot >= 0, count[:, 0] > 0)
    others = tf.where(tf.logical_not(filled))
    other, valid = self.uniform.draw(users, num_draws, seeds.next(), others[:, 0])
    return (tf.tensor_scatter_nd_update(chosen, others, other),
            tf.tensor_scatter_nd_update(tf.ones_like(random), others, valid),
            tf.where(filled[:, None], log_probability(places, held, row), self._uniform_log_probability))

  def probabilities(self, user: int, by_place: Callable[[int, int], np.ndarray]) -> np.ndarray:
    """[num_items] float64 probabilities of one draw of a user.

    Args:
      user: the user.
      by_place: gives the probability [count] of each place from the slot and its count.
    """
    slot = int(self._slot[user])
    count = int(self.count[slot]) if slot >= 0 else 0
    if not count:
      return self.uniform.probabilities(user)
    result = np.zeros(len(self.uniform.probabilities(user)))
    np.add.at(result, self.items[slot, :count].numpy(), by_place(slot, count))
    return result


def uniform_place(random, count, row):
  """Places that are all equally likely, for `ItemTable.draw`."""
  del row
  return random * count


def uniform_log_probability(places, count, row):
  """Their log probabilities, for `ItemTable.draw`."""
  del row
  return -tf.math.log(tf.maximum(count, 1.)) * tf.ones_like(places, tf.float32)


def uniform_by_place(slot: int, count: int) -> np.ndarray:
  """Their probabilities, for `ItemTable.probabilities`."""
  del slot
  return np.full(count, 1. / count)
