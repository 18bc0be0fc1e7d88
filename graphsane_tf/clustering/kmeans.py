"""K-means between epochs: the paper's "hard-cluster" ablation."""
import numpy as np
import tensorflow as tf

from graphsane_tf.clustering.base import ItemClusters


class KMeansClusters(ItemClusters):
  """Clusters the items' final representations anew at each refresh; nothing is trained."""

  def assign(self, item_vectors, epoch):
    return tf.constant(self.kmeans(np.asarray(item_vectors), epoch).labels_, tf.int32)
