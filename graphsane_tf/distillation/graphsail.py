"""GraphSAIL: a node keeps its place, its neighbourhood's and its position in the whole graph."""
from typing import Dict

import numpy as np
import tensorflow as tf

from graphsane_tf.distillation.base import Distiller, outside_loops, weighted
from graphsane_tf.distillation.divergence import softmax_divergence
from graphsane_tf.random import host_generator


def self_coefficients(old_degree: np.ndarray, degree: np.ndarray) -> np.ndarray:
  """[n] float32, c = (|N^{t-1}| / |N^t|) over its own length, for the nodes the teacher knows.

  The fewer of a node's interactions are new, the more it is held. |N^t| counts all training
  interactions up to the block, so the ratio lies between 0 and 1.

  Args:
    old_degree: [n] interactions before the block.
    degree: [n] interactions up to and including it.
  """
  ratio = old_degree / np.maximum(degree, 1.)
  return (ratio / max(np.linalg.norm(ratio), 1e-12)).astype(np.float32)


def self_loss(student: tf.Tensor, teacher: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
  """Sum over nodes of weight |e^t - e^{t-1}|^2, for [n, d] embeddings and [n] weights."""
  return tf.reduce_sum(weight * tf.reduce_sum(tf.square(student - teacher), axis=1))


def local_loss(student: tf.Tensor, student_mean: tf.Tensor,
               teacher_product: tf.Tensor, square: str = 'inside') -> tf.Tensor:
  """Mean over nodes of (e^{t-1} . c^{t-1} - e^t . c^t)^2, or the square of the mean.

  With the square outside, gaps of different nodes cancel each other.

  Args:
    student: [n, d] embeddings e^t.
    student_mean: [n, d] means c^t of the current embeddings of the neighbours in N^{t-1}.
    teacher_product: [n] products e^{t-1} . c^{t-1}.
    square: 'inside' or 'outside' of the mean.
  """
  gap = teacher_product - tf.reduce_sum(student * student_mean, axis=1)
  return tf.reduce_mean(tf.square(gap)) if square == 'inside' else tf.square(tf.reduce_mean(gap))


def anchors(rows: tf.Tensor, cluster: tf.Tensor, num_clusters: int) -> tf.Tensor:
  """[num_clusters, d] means of the [n, d] rows in each [n] cluster."""
  return tf.math.unsorted_segment_mean(rows, cluster, num_clusters)


def global_loss(student: tf.Tensor, student_anchors: tf.Tensor, teacher_logits: tf.Tensor,
                temperature: float, teacher_first: bool) -> tf.Tensor:
  """Mean over nodes of the divergence of their softmax distributions over the anchors.

  Args:
    student: [n, d].
    student_anchors: [k, d].
    teacher_logits: [n, k] products of the teacher's rows with its anchors.
    temperature: tau of both distributions.
    teacher_first: see `softmax_divergence`.
  """
  logits = tf.matmul(student, student_anchors, transpose_b=True)
  return tf.reduce_mean(softmax_divergence(
      teacher_logits / temperature, logits / temperature, teacher_first=teacher_first))


class GraphSail(Distiller):
  """Self, local and global structure distillation (Xu et al., CIKM 2020), on embeddings.

  The local and global terms are exact means over all old nodes in each step: two sparse products
  of the teacher's graph, and products with a handful of anchors. The self term covers the pairs'
  users, positives and negatives that the teacher knows, each with its own coefficient.
  Neighbourhoods are the teacher's; membership in a cluster is fixed for the block, its anchor
  moves with its members.
  """

  weight_fields = ('graphsail.self_weight', 'graphsail.local_weight', 'graphsail.global_weight')

  def __init__(self, config, context, teacher, seed):
    import sklearn.cluster  # pylint: disable=g-import-not-at-top
    super().__init__(config, context, teacher, seed)
    options = config.graphsail
    rows = {kind: teacher.embedding(kind).numpy() for kind in teacher.num_nodes}
    self._coefficient, self._cluster, self._num_clusters = {}, {}, {}
    self._product, self._logits = {}, {}
    degree = {'user': context.history.degree, 'item': context.popularity}
    new = {'user': context.block.degree,
           'item': np.bincount(context.block.indices, minlength=context.num_items)}
    centres = {}
    for kind, num_nodes in (('user', teacher.num_users), ('item', teacher.num_items)):
      now = degree[kind][:num_nodes]
      self._coefficient[kind] = tf.constant(self_coefficients(now - new[kind][:num_nodes], now))
      count = min(options.num_clusters, num_nodes)
      start = int(host_generator(*seed, name=f'graphsail_{kind}').integers(2**31 - 1))
      label = sklearn.cluster.KMeans(count, n_init=1, random_state=start).fit_predict(rows[kind])
      self._num_clusters[kind] = count
      self._cluster[kind] = tf.constant(label, tf.int32)
      centres[kind] = anchors(tf.constant(rows[kind]), self._cluster[kind], count).numpy()
    for kind, other, relation in (('user', 'item', 'ui'), ('item', 'user', 'iu')):
      table = teacher.relation(relation).table
      mean = (table.matrix() @ rows[other]) / np.maximum(table.degree, 1)[:, None]
      self._product[kind] = tf.constant((rows[kind] * mean).sum(axis=1), tf.float32)
      for anchor_kind in (kind, other):
        self._logits[kind, anchor_kind] = tf.constant(rows[kind] @ centres[anchor_kind].T)

  def losses(self, batch) -> Dict[str, tf.Tensor]:
    options = self.config.graphsail
    student = {kind: tf.convert_to_tensor(getattr(batch.backbone, f'{kind}_table'))[:num_nodes]
               for kind, num_nodes in self.teacher.num_nodes.items()}
    return {
        'graphsail_self': weighted(options.self_weight, lambda: self._self(student, batch)),
        'graphsail_local': weighted(options.local_weight, lambda: self._local(student)),
        'graphsail_global': weighted(options.global_weight, lambda: self._global(student))}

  def _self(self, student, batch):
    items = tf.concat([batch.positives[:, None], batch.negatives], axis=1)
    total = 0.
    for kind, nodes in (('user', batch.users), ('item', tf.reshape(items, [-1]))):
      num_nodes = self.teacher.num_nodes[kind]
      # Negative segments are left out: these are nodes the teacher does not know.
      occurs = tf.math.unsorted_segment_sum(
          tf.ones_like(nodes, tf.float32), tf.where(nodes < num_nodes, nodes, -1), num_nodes)
      total += self_loss(
          student[kind], self.teacher.embedding(kind), occurs * self._coefficient[kind])
    return total / batch.size

  def _local(self, student):
    view = outside_loops(self.teacher.graph.whole)
    total = 0.
    for kind, other, relation in (('user', 'item', 'ui'), ('item', 'user', 'iu')):
      mean = view.mean(relation, None, lambda _, rows=student[other]: rows, 0)
      total += local_loss(student[kind], mean, self._product[kind], self.config.graphsail.square)
    return total

  def _global(self, student):
    options = self.config.graphsail
    centres = {kind: anchors(student[kind], self._cluster[kind], self._num_clusters[kind])
               for kind in student}
    return sum([
        global_loss(student[kind], centres[other], logits, options.temperature,
                    options.teacher_first) for (kind, other), logits in self._logits.items()])
