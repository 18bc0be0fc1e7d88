"""DeMix: hard candidates mixed with others, or with the positive if they may be false negatives."""
import dataclasses
from typing import Tuple

import tensorflow as tf

from graphsane_tf.negatives.base import Choice, Draw, NegativeSampler
from graphsane_tf.negatives.dns import hardest_probabilities
from graphsane_tf.graph.draws import Complement


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mix(Choice):
  """The hard candidates (first half of `columns`), their partners (second half), and their mixing.

  Attributes:
    share: [B, N2] float32 share of the partner in the mixture.
    suspect: [B, N2] float32, 1 where the partner is the positive because the candidate may be one.
  """
  share: tf.Tensor
  suspect: tf.Tensor


def mixed_scores(positive: tf.Tensor, hard: tf.Tensor, partner: tf.Tensor, mix: Mix) -> Tuple[tf.Tensor, tf.Tensor]:
  """Scores of mixtures of representations, and what they count.

  A score is linear in the item's representation, so a mixture is scored by the mixture of scores.
  A mixture with the positive is a positive to the extent of its share, so it counts the less.

  Args:
    positive: [B] scores of the pairs.
    hard: [B, N2] scores of the candidates.
    partner: [B, N2] scores of their partners among the candidates.
    mix: the first N2 of its weights are the candidates'.

  Returns:
    [B, N2] scores and [B, N2] weights.
  """
  other = tf.where(mix.suspect > 0, positive[:, None], partner)
  score = (1. - mix.share) * hard + mix.share * other
  return score, mix.weight[:, :hard.shape[1]] * (1. - mix.suspect * mix.share)


class DeMix(NegativeSampler):
  """The highest scored candidates, refined by mixing before they are trained on.

  Publication: Chen, Zhang, Yao, Chen, Tang, "Negative sampling with adaptive denoising mixup for
  knowledge graph embedding", ISWC 2023. The model's own scores part sampled triples into marginal
  pseudo-negatives, which may be true facts, and negatives. A pseudo-negative is mixed with the
  positive into a partially positive triple, a negative with another one into a harder negative.

  Adaptation: triples become (user, item). Of `candidates` uniform unobserved items the N2 with the
  highest current scores are taken. One that scores above the pair's own positive is suspected: it
  is mixed with the positive, and its BPR term is weighted by the share that is not positive. Any
  other is mixed with the hardest candidate that is not suspected. Shares come from
  Beta(concentration, concentration), as in mixup, at most a half for the partner, so that the
  candidate stays the main part. (Only the abstract was at hand: the threshold, the pair's own
  positive, and the weight are ours.)
  """

  loss_name = 'demix'
  chooses = True

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    self._candidates = max(config.demix.candidates, self.num_slots)
    self._concentration = config.demix.concentration
    self._uniform = Complement(context.positives)

  def draw(self, users, positives, seeds):
    return Draw(*self._uniform.draw(users, self._candidates, seeds.next()))

  def choose(self, positive, candidate, draw, seeds):
    top = tf.math.top_k(candidate, self.num_slots)
    suspected = candidate > positive[:, None]
    true_negative = tf.argmax(tf.where(suspected, tf.float32.min, candidate), axis=1,
                              output_type=tf.int32)
    partner = tf.repeat(true_negative[:, None], self.num_slots, axis=1)
    one, other = (tf.random.stateless_gamma(tf.shape(top.values), seeds.next(), self._concentration)
                  for _ in range(2))
    share = tf.math.divide_no_nan(one, one + other)
    columns = tf.concat([top.indices, partner], axis=1)
    return Mix(columns, tf.gather(draw.weight, columns, batch_dims=1),
               share=tf.minimum(share, 1. - share),
               suspect=tf.cast(top.values > positive[:, None], tf.float32))

  def slots(self, positive, negative, draw):
    hard, partner = tf.split(negative, 2, axis=1)
    return mixed_scores(positive, hard, partner, draw)

  def probabilities(self, user, positive, scores):
    return hardest_probabilities(scores, self._uniform.probabilities(user), self._candidates)
