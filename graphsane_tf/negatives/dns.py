"""Dynamic negative sampling: the hardest of a few uniform candidates."""
import numpy as np
import tensorflow as tf

from graphsane_tf.negatives.base import Choice, Draw, NegativeSampler
from graphsane_tf.graph.draws import Complement


def hardest_probabilities(scores: np.ndarray, drawn: np.ndarray, candidates: int) -> np.ndarray:
  """Distribution of the best scored of `candidates` draws with replacement.

  Args:
    scores: [num_items].
    drawn: [num_items] probabilities of one draw.
    candidates: M.

  Returns:
    [num_items]: G(r)^M - G(r + 1)^M for the item at rank r, with G(r) the probability of all ranks
    from r on.
  """
  if candidates == 1:
    return drawn
  order = np.argsort(scores)
  below = np.concatenate([[0.], np.cumsum(drawn[order])])
  result = np.zeros(len(scores))
  result[order] = np.diff(below ** candidates)
  return result


def hardest_choice(candidate: tf.Tensor, draw: Draw, num_slots: int) -> Choice:
  """Gives each slot the best scored of its own candidates.

  Args:
    candidate: [B, num_slots * M] scores.
    draw: the candidates, those of the first slot first.
    num_slots: number of slots.
  """
  slot_size = candidate.shape[1] // num_slots
  scores = tf.reshape(candidate, [-1, num_slots, slot_size])
  columns = tf.range(num_slots) * slot_size + tf.argmax(scores, axis=2, output_type=tf.int32)
  probability = draw.log_probability
  return Choice(columns, tf.gather(draw.weight, columns, batch_dims=1),
                None if probability is None else tf.gather(probability, columns, batch_dims=1))


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
    return hardest_choice(candidate, draw, self.num_slots)

  def probabilities(self, user, positive, scores):
    return hardest_probabilities(scores, self._uniform.probabilities(user), self._candidates)
