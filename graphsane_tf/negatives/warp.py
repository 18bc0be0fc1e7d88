"""WARP: trials until an item violates the margin, weighted by the rank that their number tells."""
import numpy as np
import tensorflow as tf

from graphsane_tf.negatives.base import Choice, Draw, NegativeSampler
from graphsane_tf.graph.draws import Complement


def rank_weights(num_items: int) -> np.ndarray:
  """[num_items] float32: Phi(r) = sum_{s=1..r} 1/s at rank r, over Phi of the last rank."""
  harmonic = np.concatenate([[0.], np.cumsum(1. / np.arange(1, max(num_items, 2)))])
  return (harmonic / harmonic[-1]).astype(np.float32)[:max(num_items, 2)]


class Warp(NegativeSampler):
  """The first violating item of a sequence of uniform trials, weighted by its estimated rank.

  Publication: Weston, Bengio, Usunier, "Large scale image annotation: learning to rank with joint
  word-image embeddings", 2010 (WSABIE). Unobserved items are drawn one after another until one
  violates the margin, y_uj + margin > y_ui. If that took k trials, the rank of the positive is
  about floor((|I| - 1) / k), and the loss of the pair is weighted by Phi(rank) = sum_{r <= rank}
  1/r.

  Adaptation: a batch makes `trials` trials for each pair at once. Slot k takes the k-th violator,
  and its trials are counted from the violator before it: trials are independent, so this is the
  loop run anew for each slot, with one budget for all. A slot without a violator has no loss, as in
  the publication. Phi is divided by its largest value, which keeps the loss on the scale of the
  other samplers'; `loss` is the paper's triplet loss ('bpr') or the publication's ('hinge').

  The paper calls its plain uniform sampler WARP; that row of its table is `--sampler=uniform` here.
  """

  loss_name = 'warp'
  chooses = True

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    options = config.warp
    self._hinge = options.loss == 'hinge'
    self._trials = max(options.trials, self.num_slots)
    self._margin = options.margin
    self._uniform = Complement(context.positives)
    self._weights = tf.constant(rank_weights(context.num_items))
    self._num_others = tf.constant(context.num_items - 1, tf.int32)

  def draw(self, users, positives, seeds):
    return Draw(*self._uniform.draw(users, self._trials, seeds.next()))

  def choose(self, positive, candidate, draw, seeds):
    violates = tf.logical_and(candidate + self._margin > positive[:, None], draw.weight > 0)
    num_violators = tf.cumsum(tf.cast(violates, tf.int32), axis=1)
    wanted = tf.range(1, self.num_slots + 1)
    # Trials before the k-th violator, [B, N2]; all of them if there is none.
    place = tf.reduce_sum(tf.cast(num_violators[:, None, :] < wanted[:, None], tf.int32), axis=2)
    trials = place + 1 - tf.concat([tf.zeros_like(place[:, :1]), place[:, :-1] + 1], axis=1)
    rank = self._num_others // tf.maximum(trials, 1)
    weight = tf.gather(self._weights, rank) * tf.cast(place < self._trials, tf.float32)
    return Choice(tf.minimum(place, self._trials - 1), weight)

  def loss(self, positive, negative, draw):
    if not self._hinge:
      return super().loss(positive, negative, draw)
    gap = self._margin + negative - positive[:, None]
    return tf.reduce_sum(draw.weight * tf.nn.relu(gap), axis=1)

  def probabilities(self, user, positive, scores):
    """Every violator is equally likely; nothing is trained on where there is none."""
    free = self._uniform.probabilities(user) > 0
    violates = (free & (scores + self._margin > scores[positive])).astype(np.float64)
    return violates / max(violates.sum(), 1.)
