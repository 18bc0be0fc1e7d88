"""SANE: a personalised negative reservoir, with a prior from the interest shift (section 5)."""
from typing import Dict

import numpy as np
import tensorflow as tf

from graphsane_tf import clustering
from graphsane_tf.negatives.base import Draw, NegativeSampler
from graphsane_tf.negatives.ranked import ItemTable, SlotEdges, ranked_items, start_rank
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


class Sane(NegativeSampler):
  """Top-ranked unobserved items of each user, drawn by category with a shift-aware posterior.

  Users with pairs in the block have a slot each. A slot holds the `size` unobserved items from rank
  `start_rank` on, and the running sum of their probabilities, from which draws are made by
  inversion. Users the model did not know before the block get uniform negatives instead.

  With `soft_membership` an item counts in every cluster by its membership c_jk: in the histograms,
  in the counts of the reservoir, and as theta_j = sum_k c_jk theta_k in equation 10. With one-hot
  memberships that is the paper's rule.
  """

  loss_name = 'sane'
  flags = ('clusters', 'sane_variant')

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    options = config.sane
    self.refresh_epochs = options.refresh_epochs
    self.clusters = clustering.REGISTRY[config.clusters](config, context, seed)
    users = np.unique(context.users)
    users = users[users < context.num_old_users]
    self.users = tf.constant(users, tf.int32)
    self._current = SlotEdges(context.block.select(users))
    self._previous = SlotEdges(context.previous.select(users))
    excluded = context.history if options.exclude_history else context.positives
    self._excluded = excluded.select(users)
    self.first_rank = start_rank(options, context.num_items)
    last = min(self.first_rank - 1 + options.size, context.num_items)
    self.size = max(last - self.first_rank + 1, 1)
    self.table = ItemTable(users, self.size, context.positives)
    self.cumulative = tf.Variable(tf.zeros(self.table.items.shape), trainable=False,
                                  name='reservoir_cumulative')
    self.category = tf.Variable(tf.zeros([context.num_items], tf.int32), trainable=False,
                                name='item_category')
    self.membership = None
    if options.soft_membership:
      self.membership = tf.Variable(tf.zeros([context.num_items, self.clusters.num_clusters]),
                                    trainable=False, name='item_membership')

  @classmethod
  def check(cls, config, interactions):
    clustering.REGISTRY[config.clusters].check(interactions)

  @property
  def items(self) -> tf.Variable:
    """[num_slots, size] int32 the reservoirs."""
    return self.table.items

  def refresh(self, user_vectors, item_vectors, epoch):
    """Algorithm 1: clusters, then reservoir and probabilities of every slot."""
    if self.membership is None:
      self.category.assign(self.clusters.assign(item_vectors, epoch))
    else:
      membership = self.clusters.memberships(item_vectors, epoch)
      self.membership.assign(membership)
      self.category.assign(tf.argmax(membership, axis=1, output_type=tf.int32))
    items, _ = ranked_items(tf.gather(user_vectors, self.users), item_vectors, self._excluded,
                            self.first_rank - 1, self.first_rank - 1 + self.size,
                            self.config.sane.selection)
    self.table.assign(items)
    width = self.size * (self.clusters.num_clusters if self.membership is not None else 8)
    for start, stop in self.table.chunks(width):
      explained = self.explain(self.items[start:stop], self.valid(start, stop), start, stop)
      self.cumulative[start:stop].assign(tf.cumsum(explained['probability'], axis=1))

  def valid(self, start, stop) -> tf.Tensor:
    """[n, Q] float32, 1 where a reservoir of slots start to stop - 1 holds an item."""
    return tf.sequence_mask(self.table.count[start:stop], self.size, tf.float32)

  def _histogram(self, edges: SlotEdges, start, stop) -> tf.Tensor:
    """[n, K] interactions of each slot in each category."""
    number = self.clusters.num_clusters
    rows, items = edges.of(start, stop)
    if self.membership is not None:
      return tf.math.unsorted_segment_sum(tf.gather(self.membership, items), rows, stop - start)
    return _count(rows, tf.gather(self.category, items), tf.ones_like(rows, tf.float32),
                  stop - start, number)

  def explain(self, items, valid, start, stop) -> Dict[str, tf.Tensor]:
    """Every quantity of section 5.2 for slots start to stop - 1, given their reservoirs [n, Q]."""
    options = self.config.sane
    number = self.clusters.num_clusters
    current = self._histogram(self._current, start, stop)
    previous = self._histogram(self._previous, start, stop)
    shift = interest_shift(current, previous)
    alpha = prior(shift, options.strength, self.size, options.temperature, options.prior_sign)
    category = tf.gather(self.category, items)
    if self.membership is None:
      rows = tf.repeat(tf.range(stop - start), self.size)
      counts = _count(rows, tf.reshape(category, [-1]), tf.reshape(valid, [-1]), stop - start,
                      number)
    else:
      membership = tf.gather(self.membership, items)
      counts = tf.einsum('nq,nqk->nk', valid, membership)
    theta = posterior_mean(alpha, counts)
    if options.uniform_theta:
      theta = tf.ones_like(theta) / number
    if self.membership is None:
      probability = item_probabilities(theta, category, valid)
    else:
      weight = valid * tf.einsum('nqk,nk->nq', membership, theta)
      probability = shares(weight)
    return {
        'current': current, 'previous': previous, 'shift': shift, 'alpha': alpha, 'counts': counts,
        'theta': theta, 'category': category, 'probability': probability}

  def draw(self, users: tf.Tensor, positives: tf.Tensor, seeds: Seeds) -> Draw:
    """Equation 10: items with replacement, the multinomial N_u of the derivation."""
    del positives

    def place(random, count, row):
      del count
      cumulative = tf.gather(self.cumulative, row)
      point = random * cumulative[:, -1:]
      # The first item whose running sum exceeds the point.
      return tf.reduce_sum(tf.cast(cumulative[:, None, :] <= point[:, :, None], tf.int32), axis=2)

    return Draw(*self.table.draw(users, self.num_slots, seeds, place))

  def probabilities(self, user, positive, scores):
    def by_place(slot, count):
      cumulative = self.cumulative[slot, :count].numpy().astype(np.float64)
      return np.diff(cumulative, prepend=0.) / cumulative[-1]
    return self.table.probabilities(user, by_place)

  def losses(self, batch):
    return self.clusters.losses(batch)


def _count(rows, columns, weight, num_rows, num_columns):
  """[num_rows, num_columns] sums of `weight` by row and column."""
  cell = rows * num_columns + columns
  return tf.reshape(tf.math.unsorted_segment_sum(weight, cell, num_rows * num_columns),
                    [-1, num_columns])
