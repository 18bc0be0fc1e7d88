"""What a negative sampler is."""
import abc
import dataclasses
from typing import Dict

import tensorflow as tf

from graphsane_tf.random import Seeds


@dataclasses.dataclass(frozen=True)
class Draw:
  """Negatives of a batch.

  Attributes:
    items: [B, m] int32; all of them are encoded and scored.
    weight: [B, m] float32 weight of each in the loss; 0 leaves it out.
  """
  items: tf.Tensor
  weight: tf.Tensor


class NegativeSampler(tf.Module, abc.ABC):
  """Fills the last `num_sampler_negatives` slots of each pair; the others are uniform.

  To add one: subclass, implement `draw` (and `refresh` if it ranks, `loss` if it weighs), and add a line
  to the registry in `graphsane_tf/negatives/__init__.py`. `draw` and `loss` run inside the train step's
  `tf.function`, `refresh` between epochs; none may loop over users in Python. State that a resumed run
  needs lives in tf.Variables, which are saved with the model's; trainable ones are trained with it.
  """

  # Name of the triplet loss over the drawn items.
  loss_name = 'sampler'
  # Command-line flags that only mean something to this sampler.
  flags = ()
  # Epochs between two calls of `refresh`; 0 means never.
  refresh_epochs = 0

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

  def refresh(self, user_vectors: tf.Tensor, item_vectors: tf.Tensor, epoch: int) -> None:
    """Brings the sampler up to date with the model.

    Args:
      user_vectors: [num_users, D] current final representations.
      item_vectors: [num_items, D] likewise.
      epoch: the epoch about to start, from 0.
    """

  @abc.abstractmethod
  def draw(self, users: tf.Tensor, positives: tf.Tensor, seeds: Seeds) -> Draw:
    """Draws for a batch of [B] users and [B] positives; never a positive of the current block."""

  def loss(self, positive: tf.Tensor, negative: tf.Tensor, draw: Draw) -> tf.Tensor:
    """[B] loss of each pair from its score [B] and the draws' scores [B, m]; BPR unless overridden."""
    return tf.reduce_sum(draw.weight * tf.nn.softplus(negative - positive[:, None]), axis=1)

  def losses(self, batch) -> Dict[str, tf.Tensor]:
    """Further named, weighted losses of a `Batch` (a clustering loss, say)."""
    del batch
    return {}


class NoSampler(NegativeSampler):
  """All negatives uniform."""

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    self.num_slots = 0

  def draw(self, users, positives, seeds):
    empty = tf.zeros([tf.size(users), 0])
    return Draw(tf.cast(empty, tf.int32), empty)
