"""Softmax over the items of a step's pairs and further negatives, corrected for how often each is there."""
import math

import numpy as np
import tensorflow as tf

from graphsane_tf.graph import views

# Logit of what does not count. Finite, so that a user without any negative has a gradient: zero.
_NOTHING = -1e30


def corrected(score: tf.Tensor, weight: tf.Tensor, log_count: tf.Tensor) -> tf.Tensor:
  """Logits of negatives that count `weight` times, over how often they are expected to be there.

  Args:
    score: [B, n] scores over the temperature.
    weight: [B, n]; 0 leaves one out.
    log_count: [B, n] or [n] log of the expected number.

  Returns:
    [B, n].
  """
  kept = weight > 0
  return tf.where(kept, score + tf.math.log(tf.where(kept, weight, 1.)) - log_count, _NOTHING)


@tf.custom_gradient
def log_sums(user_rows: tf.Tensor, item_rows: tf.Tensor, log_count: tf.Tensor, left_out: tf.Tensor):
  """Logs of sums over items of exp(score) / count.

  Plain code goes over the [n, m] scores a dozen times, and does so again for its gradient.

  Args:
    user_rows: [n, D].
    item_rows: [m, D].
    log_count: [m]; it has no gradient.
    left_out: [k, 2] int32 (user, item) that do not count.

  Returns:
    [n].
  """
  # One more column takes the counts into the product.
  logits = tf.matmul(tf.pad(user_rows, [[0, 0], [0, 1]], constant_values=1.),
                     tf.concat([item_rows, -log_count[:, None]], axis=1), transpose_b=True)
  logits = tf.tensor_scatter_nd_update(logits, left_out, tf.fill([tf.shape(left_out)[0]], _NOTHING))
  top = tf.reduce_max(logits, axis=1, keepdims=True)
  mass = tf.exp(logits - top)
  total = tf.reduce_sum(mass, axis=1, keepdims=True)

  def gradient(upstream):
    share = tf.convert_to_tensor(upstream)[:, None] / total
    return (share * tf.matmul(mass, item_rows), tf.matmul(mass, share * user_rows, transpose_a=True),
            None, None)

  return tf.squeeze(tf.math.log(total) + top, axis=1), gradient


class Softmax:
  """-log(exp(y_ui) / (exp(y_ui) + sum over all items j that the user has not taken of exp(y_uj))).

  The sum is estimated (Horvitz and Thompson) from those items that are at hand: the distinct positives of the
  step, which are the same for all users but for their own positives, and a pair's uniform negatives. An item
  that is expected to be there c times counts 1 / c each time, so that the estimate has no bias whichever way an
  item came in: c_j = 1 - (1 - B / n)^n_j + N1 / |I| for an item with n_j of the block's n pairs, B of which are in
  the step. The positive is always there and counts once.

  The sampler's slots are a second sum, over what it draws from: a slot counts its weight over N2 times its
  probability. What is in a reservoir thus counts twice, once like any item and once for being hard.
  """

  host = ()

  def __init__(self, context, temperature: float, num_uniform: int):
    """Prepares for a block.

    Args:
      context: the block's `BlockContext`.
      temperature: divides the scores.
      num_uniform: uniform negatives of a pair (N1).
    """
    self._temperature = temperature
    self._taken = views.Relation(context.positives)
    self._num_items = tf.constant(context.num_items, tf.int32)
    self._num_uniform = num_uniform
    # The host's quotients: what is the same in each step is rounded once.
    self._uniform_count = tf.constant(num_uniform / context.num_items, tf.float32)
    self._log_probability = tf.constant(-math.log(context.num_items), tf.float32)
    self._num_pairs = tf.constant(len(context.users), tf.float32)
    self._pairs_of = tf.constant(np.bincount(context.items, minlength=context.num_items), tf.float32)

  def log_count(self, items: tf.Tensor, num_pairs: tf.Tensor) -> tf.Tensor:
    """Log of how often items are expected in a step of `num_pairs` pairs, of their shape."""
    left_out = tf.math.log1p(-tf.cast(num_pairs, tf.float32) / self._num_pairs)
    pairs = tf.gather(self._pairs_of, items)
    # A step may be the whole block: log 0 times no pairs would be no number.
    in_batch = tf.where(pairs > 0, -tf.math.expm1(pairs * left_out), 0.)
    return tf.math.log(in_batch + self._uniform_count)

  def _shared(self, batch) -> tf.Tensor:
    """[n] log of the sum over the step's own items, for each distinct user."""
    users, items = batch.distinct_users, batch.distinct_items
    # Of the users' positives, those that have a column; the pairs' own are among them.
    column = tf.tensor_scatter_nd_update(
        tf.fill([self._num_items], -1), items[:, None], tf.range(tf.size(items)))
    row, edge = self._taken.edges_at(users)
    taken = tf.gather(column, tf.gather(self._taken.indices, edge))
    places = tf.boolean_mask(tf.stack([tf.cast(row, tf.int32), taken], axis=1), taken >= 0)
    return log_sums(batch.user_rows(-1) / self._temperature, batch.item_rows(-1),
                    self.log_count(items, tf.size(batch.users)), places)

  def loss(self, batch, negatives: tf.Tensor, user_places: tf.Tensor, positive: tf.Tensor, uniform: tf.Tensor,
           valid: tf.Tensor, slots=None) -> tf.Tensor:
    """Loss of each pair.

    Args:
      batch: the `Batch`, for the distinct users and positives.
      negatives: [B, N1 or more] items of the pairs that are meant, uniform ones first: all of the batch's, or a part.
      user_places: [B] places of the pairs' users among the distinct ones.
      positive: [B] scores of the pairs.
      uniform: [B, N1] scores of the uniform negatives.
      valid: [B, N1] float32, 0 where there is none.
      slots: scores [B, N2] and weights [B, N2] of the sampler's slots, and the log probabilities [B, N2] of their
        draws, None if all items are equally likely; None without a sampler.

    Returns:
      [B].
    """
    scaled = lambda score: score / self._temperature
    items = negatives[:, :self._num_uniform]
    parts = [tf.gather(self._shared(batch), user_places)[:, None],
             corrected(scaled(uniform), valid, self.log_count(items, tf.size(batch.users)))]
    if slots is not None:
      score, weight, log_probability = slots
      if log_probability is None:
        log_probability = self._log_probability * tf.ones_like(score)
      parts.append(corrected(scaled(score), weight, log_probability + math.log(score.shape[1])))
    negative = tf.reduce_logsumexp(tf.concat(parts, axis=1), axis=1)
    return tf.nn.softplus(negative - scaled(positive))
