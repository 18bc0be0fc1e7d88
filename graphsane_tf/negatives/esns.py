"""ESNS: negatives that resemble the positive."""
import math
import sys

import numpy as np
import tensorflow as tf

from graphsane_tf.graph import knn
from graphsane_tf.negatives.base import Draw, NegativeSampler
from graphsane_tf.negatives.ranked import top_keys
from graphsane_tf.graph.draws import Complement, Membership

# Probability of a draw in a softmax's correction at least, because running sums are rounded.
_SMALLEST = 1e-6


class ESNS(NegativeSampler):
  """An item similar to the pair's positive, drawn in proportion to the similarity.

  Publication: Yao et al., "Entity similarity-based negative sampling for knowledge
  graph embedding", PRICAI 2022. Entities in similar contexts deceive the model, so a triple's
  entity is replaced by one that shares many of its aspects (found through an inverted index), and
  the loss is a logistic one of shifted scores.

  Adaptation: an item's context is the users who took it up to the block; similarity is the cosine
  of these sets. The `num_similar` most similar items of each item are kept, and one is drawn with
  probability proportional to its similarity. Similar items are often the user's own: a draw that they
  have taken in the current block is repeated, at most `tries` times in all, then replaced by a
  uniform one. `loss` is the paper's triplet loss ('bpr') or 'shift': softplus(-(y_ui + shift)) +
  softplus(y_uj + shift) for each negative. (The chapter's text was not at hand; the form of the
  shift is the usual one of logistic losses on scores that are not centred.)
  """

  loss_name = 'esns'
  # The similarities do not depend on the model: once a block.
  refresh_epochs = sys.maxsize

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    options = config.esns
    self._options = options
    self._uniform = Complement(context.positives)
    self._taken = Membership(context.positives)
    self._uniform_log_probability = tf.constant(-math.log(max(context.num_items, 1)), tf.float32)
    shape = [context.num_items, max(1, min(options.num_similar, context.num_items))]
    self.items = tf.Variable(tf.zeros(shape, tf.int32), trainable=False, name='similar_items')
    # Running sums of the probabilities; 0 at the end of the row of an item without similar ones.
    self.cumulative = tf.Variable(tf.zeros(shape), trainable=False, name='similar_cumulative')

  def refresh(self, user_vectors, item_vectors, epoch):
    width = self.items.shape[1]
    nothing = (np.zeros(0, np.int64),) * 2
    for start, cosine in knn.cosine_chunks(self.context.history.transposed(), 1 << 22):
      columns, values = top_keys(cosine, nothing, width)
      total = values.sum(axis=1, keepdims=True)
      share = np.divide(values, total, out=np.zeros_like(values), where=total > 0)
      self.items[start:start + len(columns)].assign(columns)
      self.cumulative[start:start + len(columns)].assign(np.cumsum(share, axis=1))

  def draw(self, users, positives, seeds):
    num_slots, tries = self.num_slots, self._options.tries
    cumulative = tf.gather(self.cumulative, positives)
    total = cumulative[:, -1:]
    point = tf.random.stateless_uniform([tf.size(users), num_slots * tries], seeds.next()) * total
    place = tf.searchsorted(cumulative, point, side='right')
    place = tf.minimum(place, self.items.shape[1] - 1)
    items = tf.gather(tf.gather(self.items, positives), place, batch_dims=1)
    free = tf.logical_and(tf.logical_not(self._taken.contains(users, items)), total > 0)
    items, free = (tf.reshape(part, [-1, num_slots, tries]) for part in (items, free))
    first = tf.argmax(tf.cast(free, tf.int32), axis=2)
    chosen = tf.gather(items, first, batch_dims=2)
    other, valid = self._uniform.draw(users, num_slots, seeds.next())
    any_free = tf.reduce_any(free, axis=2)
    # Of one try: how much of an item's neighbourhood the user has taken is not known here.
    place = tf.gather(tf.reshape(place, [-1, num_slots, tries]), first, batch_dims=2)
    below = tf.gather(tf.pad(cumulative, [[0, 0], [1, 0]]), place, batch_dims=1)
    share = tf.gather(cumulative, place, batch_dims=1) - below
    return Draw(tf.where(any_free, chosen, other), tf.where(any_free, tf.ones_like(valid), valid),
                tf.where(any_free, tf.math.log(tf.maximum(share, _SMALLEST)), self._uniform_log_probability))

  def loss(self, positive, negative, draw):
    if self._options.loss == 'bpr':
      return super().loss(positive, negative, draw)
    shift = self._options.shift
    terms = tf.nn.softplus(-(positive[:, None] + shift)) + tf.nn.softplus(negative + shift)
    return tf.reduce_sum(draw.weight * terms, axis=1)

  def probabilities(self, user, positive, scores):
    uniform = self._uniform.probabilities(user)
    step = np.diff(self.cumulative[positive].numpy().astype(np.float64), prepend=0.)
    if step.sum() <= 0:
      return uniform
    similar = np.zeros_like(uniform)
    np.add.at(similar, self.items[positive].numpy(), step / step.sum())
    # A try fails with probability `taken`; those that succeed are a geometric series.
    taken = similar[uniform == 0].sum()
    tries = self._options.tries
    if taken >= 1.:
      return uniform
    series = (1. - taken ** tries) / (1. - taken)
    return np.where(uniform > 0, similar, 0.) * series + taken ** tries * uniform
