"""Dynamic negative sampling: the hardest of a few uniform candidates."""
import numpy as np
import tensorflow as tf

from graphsane_tf.negatives.base import Choice, Draw, NegativeSampler
from graphsane_tf.negatives.uniform import Complement


def hardest_probabilities(scores: np.ndarray, free: np.ndarray, candidates: int) -> np.ndarray:
  """Distribution of the best scored of `candidates` uniform draws with replacement.

  Args:
    scores: [num_items].
    free: [num_items] bool, items that can be drawn.
    candidates: M.

  Returns:
    [num_items]: ((F - r + 1)^M - (F - r)^M) / F^M for the item at rank r of the F free ones.
  """
  places = np.flatnonzero(free)
  order = places[np.argsort(scores[places])]
  below = np.arange(len(order) + 1) / max(len(order), 1)
  result = np.zeros(len(scores))
  result[order] = np.diff(below ** candidates)
  return result


class DNS(NegativeSampler):
  """The candidate that the current model scores highest, for each slot on its own.

  Publication: Zhang, Chen, Wang, Yu, "Optimizing top-N collaborative filtering via dynamic negative
  item sampling", SIGIR 2013. For each negative, `candidates` unobserved items are drawn uniformly
  and the one with the highest current score is taken, so the sampler follows the model with every
  step.

  Adaptation: none is needed; unobserved means not taken in the current block, as for all samplers
  here.
  """

  loss_name = 'dns'
  chooses = True

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    self._candidates = config.dns.candidates
    self._uniform = Complement(context.positives)

  def draw(self, users, positives, seeds):
    return Draw(*self._uniform.draw(users, self.num_slots * self._candidates, seeds.next()))

  def choose(self, positive, candidate, draw, seeds):
    scores = tf.reshape(candidate, [-1, self.num_slots, self._candidates])
    first = tf.range(self.num_slots) * self._candidates
    columns = first + tf.argmax(scores, axis=2, output_type=tf.int32)
    return Choice(columns, tf.gather(draw.weight, columns, batch_dims=1))

  def probabilities(self, user, positive, scores):
    return hardest_probabilities(scores, self._uniform.probabilities(user) > 0, self._candidates)
