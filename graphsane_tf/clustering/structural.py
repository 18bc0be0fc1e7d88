"""Deep structural clustering, trained end to end with the model (section 5.3)."""
import numpy as np
import tensorflow as tf

from graphsane_tf.clustering.base import ItemClusters


@tf.custom_gradient
def squared_distances(vectors: tf.Tensor, centres: tf.Tensor):
  """[n, K] squared distances of [n, D] vectors from [K, D] centres; its gradient passes over vectors less often."""
  distance = (tf.reduce_sum(tf.square(vectors), axis=1, keepdims=True)
              - 2. * tf.matmul(vectors, centres, transpose_b=True)
              + tf.reduce_sum(tf.square(centres), axis=1))

  def gradient(upstream):
    twice = 2. * upstream
    return (tf.reduce_sum(twice, axis=1, keepdims=True) * vectors - tf.matmul(twice, centres),
            tf.reduce_sum(twice, axis=0)[:, None] * centres - tf.matmul(twice, vectors, transpose_a=True))

  return distance, gradient


def soft_assignment(vectors: tf.Tensor, centres: tf.Tensor, nu: float) -> tf.Tensor:
  """q_ik, equation 11: Student-t kernel of squared distances, normalised over clusters.

  Args:
    vectors: [n, D] items.
    centres: [K, D].
    nu: degrees of freedom.

  Returns:
    [n, K], rows sum to one.
  """
  distance = squared_distances(vectors, centres)
  kernel = tf.pow(1. + tf.maximum(distance, 0.) / nu, -(nu + 1.) / 2.)
  return kernel / tf.reduce_sum(kernel, axis=1, keepdims=True)


def target(q: tf.Tensor) -> tf.Tensor:
  """p_ik, equation 12: q squared over the cluster's total, normalised over clusters, [n, K]."""
  weight = tf.square(q) / tf.reduce_sum(q, axis=0, keepdims=True)
  return weight / tf.reduce_sum(weight, axis=1, keepdims=True)


def clustering_loss(q: tf.Tensor) -> tf.Tensor:
  """KL(P || Q), equation 13, summed over items; P is a constant target."""
  p = tf.stop_gradient(target(q))
  return tf.reduce_sum(tf.math.xlogy(p, p) - p * tf.math.log(q))


def membership(p: tf.Tensor, temperature: float) -> tf.Tensor:
  """c_ik, equation 14: softmax of p / tau (as printed, tau would cancel), [n, K]."""
  return tf.nn.softmax(p / temperature, axis=1)


class StructuralClusters(ItemClusters):
  """Centres start from K-means at the beginning of each block and follow the gradient of the KL."""

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    # The centres live in the space of final representations, whose size the backbone decides.
    self.centres = tf.Variable(tf.zeros([self.num_clusters, context.representation_dim]),
                               name='cluster_centres')
    self._ready = tf.Variable(False, trainable=False, name='clusters_ready')

  def assign(self, item_vectors, epoch):
    return tf.argmax(self.memberships(item_vectors, epoch), axis=1, output_type=tf.int32)

  def memberships(self, item_vectors, epoch):
    if not self._ready.numpy():  # On replicas, a variable has no truth of its own.
      fitted = self.kmeans(np.asarray(item_vectors), epoch)
      self.centres.assign(fitted.cluster_centers_.astype(np.float32))
      self._ready.assign(True)
    q = soft_assignment(item_vectors, self.centres, self.config.clustering.nu)
    return membership(target(q), self.config.clustering.temperature)

  def losses(self, batch):
    q = soft_assignment(batch.item_rows(-1), self.centres, self.config.clustering.nu)
    return {'kl': self.config.clustering.beta * clustering_loss(q) / batch.size}
