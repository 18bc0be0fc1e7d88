"""SANE: a personalised negative reservoir with a prior from the user's interest shift (section 5)."""
from typing import Dict

import numpy as np
import tensorflow as tf

from graphsane_tf import clustering
from graphsane_tf.graph import csr
from graphsane_tf.negatives.base import Draw, NegativeSampler
from graphsane_tf.negatives.uniform import Complement
from graphsane_tf.random import Seeds


def shares(histogram: tf.Tensor) -> tf.Tensor:
  """[n, K] counts over their row sums, H / |H|; rows without counts stay zero."""
  return tf.math.divide_no_nan(histogram, tf.reduce_sum(histogram, axis=1, keepdims=True))


def interest_shift(current: tf.Tensor, previous: tf.Tensor) -> tf.Tensor:
  """shift(u, t-1, t): difference of the normalised histograms, [n, K].

  A user without interactions in one of the two blocks shows no shift: his row is zero.
  """
  known = tf.logical_and(tf.reduce_any(current > 0, axis=1), tf.reduce_any(previous > 0, axis=1))
  return tf.where(known[:, None], shares(current) - shares(previous), 0.)


def prior(shift: tf.Tensor, strength: float, size: float, temperature: float = 1.,
          sign: int = -1) -> tf.Tensor:
  """alpha = lambda Q softmax(-shift), equation 6, [n, K].

  The equations of the posterior in the paper drop the minus; it belongs everywhere.
  """
  return strength * size * tf.nn.softmax(sign * shift / temperature, axis=1)


def posterior_mean(alpha: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
  """theta = (alpha + c) / sum(alpha + c), equation 9, [n, K]."""
  total = alpha + counts
  return tf.math.divide_no_nan(total, tf.reduce_sum(total, axis=1, keepdims=True))


def item_probabilities(theta: tf.Tensor, category: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
  """p(j) = theta_g(j) / sum over the reservoir, equation 10.

  Args:
    theta: [n, K] posterior means.
    category: [n, Q] int32 category g(j) of each reservoir item.
    valid: [n, Q] float32, 0 where the slot holds no item.

  Returns:
    [n, Q] probabilities, a row of zeros where the reservoir is empty.
  """
  weight = valid * tf.gather(theta, category, batch_dims=1)
  return tf.math.divide_no_nan(weight, tf.reduce_sum(weight, axis=1, keepdims=True))


def start_rank(config, num_items: int) -> int:
  """First rank of the reservoir, 1-based; a small catalogue moves it up (config.sane)."""
  return max(1, min(config.start_rank, int(config.max_start_share * num_items) + 1))


class _Edges(tf.Module):
  """Edges of the users with a reservoir, by slot, for histograms and masks of a chunk of slots."""

  def __init__(self, table: csr.Csr):
    super().__init__()
    self.indptr = tf.constant(table.indptr, tf.int64)
    self.items = tf.constant(np.append(table.indices, 0), tf.int32)

  def of(self, start: tf.Tensor, stop: tf.Tensor):
    """Rows (relative to `start`) and items of the edges of slots start to stop - 1."""
    bounds = self.indptr[start:stop + 1]
    rows = tf.repeat(tf.range(stop - start), bounds[1:] - bounds[:-1])
    return rows, self.items[bounds[0]:bounds[-1]]

  def histogram(self, start: tf.Tensor, stop: tf.Tensor, category: tf.Tensor, num: int):
    """[stop - start, num] float32 interactions in each category."""
    rows, items = self.of(start, stop)
    cell = rows * num + tf.gather(category, items)
    counts = tf.math.unsorted_segment_sum(tf.ones_like(cell, tf.float32), cell, (stop - start) * num)
    return tf.reshape(counts, [-1, num])


class Sane(NegativeSampler):
  """Top-ranked unobserved items of each user, drawn by category with a shift-aware posterior.

  Users with pairs in the block have a slot each. A slot holds the `size` unobserved items from rank
  `start_rank` on, and the running sum of their probabilities, from which draws are made by inversion.
  Users the model did not know before the block get uniform negatives instead.
  """

  loss_name = 'sane'
  flags = ('clusters', 'sane_variant')

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    options = config.sane
    self.refresh_epochs = options.refresh_epochs
    self.clusters = clustering.REGISTRY[config.clusters](config, context, seed)
    self._uniform = Complement(context.positives)
    users = np.unique(context.users)
    users = users[users < context.num_old_users]
    self.users = tf.constant(users, tf.int32)
    self._current = _Edges(context.block.select(users))
    self._previous = _Edges(context.previous.select(users))
    excluded = context.history if options.exclude_history else context.positives
    self._excluded = _Edges(excluded.select(users))
    first = start_rank(options, context.num_items)
    self._first = first - 1
    self._last = min(first - 1 + options.size, context.num_items)
    self.size = max(self._last - self._first, 1)
    slot = np.full(context.num_users, -1, np.int32)
    slot[users] = np.arange(len(users))
    self._slot = tf.constant(slot)
    # [num_slots, size]; one slot at least, so that they can always be gathered from.
    shape = [max(len(users), 1), self.size]
    self.items = tf.Variable(tf.zeros(shape, tf.int32), trainable=False, name='reservoir_items')
    self.cumulative = tf.Variable(tf.zeros(shape), trainable=False, name='reservoir_cumulative')
    self.category = tf.Variable(tf.zeros([context.num_items], tf.int32), trainable=False,
                                name='item_category')
    # Users and items of the score matrix held at once.
    self.chunk_floats = 1 << 23
    self.item_tile = 1 << 16

  def refresh(self, user_vectors, item_vectors, epoch):
    """Algorithm 1: clusters, then reservoir and probabilities of every slot."""
    self.category.assign(self.clusters.assign(item_vectors, epoch))
    num_slots = int(tf.size(self.users))
    tile = min(self.context.num_items, self.item_tile)
    chunk = max(1, min(self.chunk_floats // tile, num_slots))
    for start in range(0, num_slots, chunk):
      stop = min(start + chunk, num_slots)
      self._build(user_vectors, item_vectors, tf.constant(start), tf.constant(stop))

  @tf.function(reduce_retracing=True)
  def _build(self, user_vectors, item_vectors, start, stop):
    queries = tf.gather(user_vectors, self.users[start:stop])
    items, valid = self._ranked(queries, item_vectors, start, stop)
    explained = self.explain(items, valid, start, stop)
    self.items[start:stop].assign(items)
    self.cumulative[start:stop].assign(tf.cumsum(explained['probability'], axis=1))

  def _ranked(self, queries, item_vectors, start, stop):
    """The band of the ranking of unobserved items, [n, Q], by tiles of items."""
    rows, excluded = self._excluded.of(start, stop)
    best = None
    for first in range(0, self.context.num_items, self.item_tile):
      last = min(first + self.item_tile, self.context.num_items)
      scores = tf.matmul(queries, item_vectors[first:last], transpose_b=True)
      inside = tf.logical_and(excluded >= first, excluded < last)
      place = tf.stack([rows[inside], excluded[inside] - first], axis=1)
      scores = tf.tensor_scatter_nd_update(
          scores, place, tf.fill([tf.shape(place)[0]], np.float32(-np.inf)))
      top = tf.math.top_k(scores, k=min(self._last, last - first))
      found = (top.values, top.indices + first)
      if best is not None:
        values = tf.concat([best[0], found[0]], axis=1)
        numbers = tf.concat([best[1], found[1]], axis=1)
        top = tf.math.top_k(values, k=min(self._last, values.shape[1]))
        found = (top.values, tf.gather(numbers, top.indices, batch_dims=1))
      best = found
    values, numbers = best
    return numbers[:, self._first:self._last], tf.cast(
        tf.math.is_finite(values[:, self._first:self._last]), tf.float32)

  def explain(self, items, valid, start, stop) -> Dict[str, tf.Tensor]:
    """Every quantity of section 5.2 for slots start to stop - 1, given their reservoirs [n, Q]."""
    options = self.config.sane
    number = self.clusters.num_clusters
    current = self._current.histogram(start, stop, self.category, number)
    previous = self._previous.histogram(start, stop, self.category, number)
    shift = interest_shift(current, previous)
    alpha = prior(shift, options.strength, self.size, options.temperature, options.prior_sign)
    category = tf.gather(self.category, items)
    cell = tf.range(stop - start)[:, None] * number + category
    counts = tf.math.unsorted_segment_sum(
        tf.reshape(valid, [-1]), tf.reshape(cell, [-1]), (stop - start) * number)
    counts = tf.reshape(counts, [-1, number])
    theta = posterior_mean(alpha, counts)
    if options.uniform_theta:
      theta = tf.ones_like(theta) / number
    return {
        'current': current, 'previous': previous, 'shift': shift, 'alpha': alpha, 'counts': counts,
        'theta': theta, 'category': category,
        'probability': item_probabilities(theta, category, valid)}

  def draw(self, users: tf.Tensor, positives: tf.Tensor, seeds: Seeds) -> Draw:
    """Equation 10: items with replacement, the multinomial N_u of the derivation."""
    del positives
    slot = tf.gather(self._slot, users)
    row = tf.maximum(slot, 0)
    cumulative = tf.gather(self.cumulative, row)
    total = cumulative[:, -1:]
    point = tf.random.stateless_uniform([tf.size(users), self.num_slots], seeds.next()) * total
    # The first item whose running sum exceeds the point; items of probability zero never do first.
    place = tf.reduce_sum(tf.cast(cumulative[:, None, :] <= point[:, :, None], tf.int32), axis=2)
    chosen = tf.gather(tf.gather(self.items, row), tf.minimum(place, self.size - 1), batch_dims=1)
    uniform, valid = self._uniform.draw(users, self.num_slots, seeds.next())
    reservoir = tf.logical_and(slot >= 0, total[:, 0] > 0)[:, None]
    return Draw(tf.where(reservoir, chosen, uniform),
                tf.where(reservoir, tf.ones_like(valid), valid))

  def losses(self, batch):
    return self.clusters.losses(batch)
