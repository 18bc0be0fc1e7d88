"""What a negative sampler is."""
import abc
import dataclasses
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np
import tensorflow as tf

from graphsane_tf.evaluation import ranking
from graphsane_tf.random import Seeds


@dataclasses.dataclass(frozen=True)
class Draw:
  """Negatives of a batch, or the candidates among which `choose` finds them.

  Attributes:
    items: [B, m] int32; all of them are encoded and scored.
    weight: [B, m] float32 weight of each in the loss; 0 leaves it out.
    log_probability: [B, m] float32 log of the probability that a draw gives this item, for the correction of
      a softmax; None takes all items to be equally likely.
  """
  items: tf.Tensor
  weight: tf.Tensor
  log_probability: Optional[tf.Tensor] = None


@dataclasses.dataclass(frozen=True)
class Choice:
  """The candidates that a pair is trained on.

  Attributes:
    columns: [B, n] int32 places among the m candidates of a `Draw`.
    weight: [B, n] float32 weight of each in the loss; 0 leaves it out.
    log_probability: [B, n] float32 that of the candidates among which each was chosen, so that it stands for
      all of them in a softmax; see `Draw`.
  """
  columns: tf.Tensor
  weight: tf.Tensor
  log_probability: Optional[tf.Tensor] = None


@dataclasses.dataclass(frozen=True)
class Report:
  """What a sampler has found out about a block.

  Attributes:
    facts: for results.json.
    users: name to [n] int users that it is true of; a column of the per-user files.
  """
  facts: Dict[str, Any] = dataclasses.field(default_factory=dict)
  users: Dict[str, np.ndarray] = dataclasses.field(default_factory=dict)


class NegativeSampler(tf.Module, abc.ABC):
  """Fills the last `num_sampler_negatives` slots of each pair; the others are uniform.

  To add one: subclass, implement `draw` (and `refresh` if it ranks, `choose` if it looks at current
  scores, `loss` if its loss is not BPR), and register it (`graphsane_tf.registry`);
  docs/extending.md has a whole example. `draw`, `choose` and
  `loss` run inside the train step's `tf.function`, `refresh` between epochs; none may loop over
  users in Python. State that a resumed run needs lives in tf.Variables, which are saved with the
  model's; trainable ones are trained with it.
  """

  # What the train step must not ask for: it changes from block to block (see `graphsane_tf.traced`).
  host: Tuple[str, ...] = ('context', 'seed')
  # Name of the triplet loss over the drawn items.
  loss_name = 'sampler'
  # Command-line flags that only mean something to this sampler.
  flags: Tuple[str, ...] = ()
  # Epochs between two calls of `refresh`; 0 means never.
  refresh_epochs = 0
  # Whether `draw` gives candidates and `choose` the negatives among them.
  chooses = False
  # Make a scorer of final representations: those of the block's model, and, in `study`, those of the model before it.
  # With a memory they join it with the dot products.
  scorer: Callable[..., ranking.Scorer] = ranking.DotProduct
  scorer_before: Callable[..., ranking.Scorer] = ranking.DotProduct

  def __init__(self, config, context, seed):
    """Prepares for a block.

    Args:
      config: the whole configuration.
      context: the block's `BlockContext`.
      seed: (seed, block) counter of everything random.
    """
    super().__init__()
    self.config = config
    self.context = context
    self.seed = seed
    # Slots of a pair that the sampler fills (N2); `draw` may return more items than that.
    self.num_slots = config.train.num_sampler_negatives

  def study(self, before: Callable[[], Tuple[tf.Tensor, tf.Tensor]]) -> None:
    """Looks at the model of the block before, as it was when that block ended, if there is one.

    Args:
      before: gives its final representations, [num_old_users, D] and [num_old_items, D]; computed only if
        it is called.
    """

  def report(self) -> Report:
    """What the sampler has found out about the block, at its end."""
    return Report()

  @classmethod
  def check(cls, config, interactions) -> None:
    """Raises a `UserError` before anything is trained if the sampler cannot work with this log."""

  def refresh(self, user_vectors: tf.Tensor, item_vectors: tf.Tensor, epoch: int) -> None:
    """Brings the sampler up to date with the model.

    Args:
      user_vectors: [num_users, D] current final representations.
      item_vectors: [num_items, D] likewise.
      epoch: the epoch about to start, from 0.
    """

  def rank(self, user_vectors: tf.Tensor, item_vectors: tf.Tensor) -> Optional[ranking.Lists]:
    """Ranks ahead by `scorer` for the `refresh` that follows with the same tensors, so that validation can share.

    Args:
      user_vectors: [num_users, D] current final representations.
      item_vectors: [num_items, D] likewise.

    Returns:
      Lists that leave out nothing but items seen up to the block; None if the sampler does not rank.
    """
    del user_vectors, item_vectors
    return None

  @abc.abstractmethod
  def draw(self, users: tf.Tensor, positives: tf.Tensor, seeds: Seeds) -> Draw:
    """Draws for a batch of [B] users and [B] positives; never a positive of the current block."""

  def choose(self, positive: tf.Tensor, candidate: tf.Tensor, draw: Draw, seeds: Seeds) -> Choice:
    """Picks the negatives among the candidates, if `chooses`.

    Args:
      positive: [B] current scores of the pairs, without gradient.
      candidate: [B, m] current scores of the draw's items, without gradient.
      draw: the candidates.
      seeds: for random choices.
    """
    raise NotImplementedError(f'{type(self).__name__} has chooses = True, so it must define choose.')

  def slots(self, positive: tf.Tensor, negative: tf.Tensor, draw) -> Tuple[tf.Tensor, tf.Tensor]:
    """Scores [B, N2] of the slots and their weights [B, N2] in the loss; arguments as in `loss`."""
    del positive
    return negative, draw.weight

  def loss(self, positive: tf.Tensor, negative: tf.Tensor, draw) -> tf.Tensor:
    """Loss of each pair; BPR of the slots unless overridden. A softmax takes the slots themselves.

    Args:
      positive: [B] scores of the pairs.
      negative: [B, n] scores of the draw's items, or of the chosen ones.
      draw: the `Draw`, or the `Choice` of a sampler that chooses.

    Returns:
      [B].
    """
    score, weight = self.slots(positive, negative, draw)
    return tf.reduce_sum(weight * tf.nn.softplus(score - positive[:, None]), axis=1)

  def losses(self, batch) -> Dict[str, tf.Tensor]:
    """Further named, weighted losses of a `Batch` (a clustering loss, say)."""
    del batch
    return {}

  def probabilities(self, user: int, positive: int, scores: np.ndarray) -> Optional[np.ndarray]:
    """The distribution of the first slot's negative, for tests and inspection.

    Args:
      user: a user with a pair in the block.
      positive: that pair's item.
      scores: [num_items] the user's current scores.

    Returns:
      [num_items] float64 probabilities, or None if the sampler does not state them.
    """
    del user, positive, scores
    return None


class NoSampler(NegativeSampler):
  """All negatives uniform: any item that the user has not taken in the current block."""

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    self.num_slots = 0

  def draw(self, users, positives, seeds):
    empty = tf.zeros([tf.size(users), 0])
    return Draw(tf.cast(empty, tf.int32), empty)
