"""What item clusters are."""
import abc
from typing import Any, Dict, Tuple

import numpy as np
import tensorflow as tf


class ItemClusters(tf.Module, abc.ABC):
  """Assigns each item to one of `num_clusters` (pseudo-)categories.

  To add one: subclass, implement `assign`, and register it (`graphsane_tf.registry`); docs/extending.md
  has a whole example. Variables are saved (and, if trainable, trained) with the model.
  """

  # See `NegativeSampler.host`.
  host: Tuple[str, ...] = ('context', 'seed')

  def __init__(self, config, context, seed):
    """Prepares for a block: the whole configuration, its `BlockContext`, (seed, block)."""
    super().__init__()
    self.config = config
    self.context = context
    self.seed = seed
    self.num_clusters = min(config.clustering.num_clusters, context.num_items)

  @classmethod
  def check(cls, interactions) -> None:
    """Raises a `UserError` before anything is trained if the log lacks what the clusters need."""

  @abc.abstractmethod
  def assign(self, item_vectors: tf.Tensor, epoch: int) -> tf.Tensor:
    """[num_items] int32 clusters, from the items' final representations [num_items, D]."""

  def memberships(self, item_vectors: tf.Tensor, epoch: int) -> tf.Tensor:
    """[num_items, K] float32 shares of each item in the clusters, summing to one; hard by default."""
    return tf.one_hot(self.assign(item_vectors, epoch), self.num_clusters)

  def losses(self, batch) -> Dict[str, tf.Tensor]:
    """Named, weighted losses of a `Batch`."""
    del batch
    return {}

  def kmeans(self, vectors: np.ndarray, epoch: int) -> Any:
    """A fitted `sklearn.cluster.KMeans` of [n, D] vectors, seeded by the place in the run."""
    # Takes a second to import, which the base block does not need.
    import sklearn.cluster  # pylint: disable=g-import-not-at-top
    seed = int(np.random.default_rng([*self.seed, epoch]).integers(2**31 - 1))
    return sklearn.cluster.KMeans(
        self.num_clusters, n_init=1, random_state=seed,
        max_iter=self.config.clustering.kmeans_iterations).fit(vectors)
