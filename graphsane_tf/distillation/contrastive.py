"""Contrastive distillation: student anchors against the teacher's neighbours (SGCT)."""
from typing import Dict

import tensorflow as tf

from graphsane_tf.distillation.base import Distiller
from graphsane_tf.graph import views
from graphsane_tf.negatives.uniform import Complement


def contrastive_loss(anchors: tf.Tensor, positives: tf.Tensor, positive_mask: tf.Tensor,
                     negatives: tf.Tensor, negative_mask: tf.Tensor,
                     temperature: float) -> tf.Tensor:
  """Mean over anchors of -1/|N| sum_{i in N} log softmax over positives and negatives of h.e_i / tau.

  The denominator is each anchor's own, over its positives and its negatives (equation SGCT of the
  appendix). Anchors without positives are left out of the mean.

  Args:
    anchors: [n, d] student embeddings.
    positives: [n, p, d] teacher embeddings of neighbours.
    positive_mask: [n, p], 0 where a slot is empty.
    negatives: [n, m, d] teacher embeddings of non-neighbours.
    negative_mask: [n, m].
    temperature: tau.
  """
  rows = tf.concat([positives, negatives], axis=1)
  mask = tf.concat([positive_mask, negative_mask], axis=1)
  logits = tf.einsum('nd,npd->np', anchors, rows) / temperature
  log_total = tf.reduce_logsumexp(
      tf.where(mask > 0, logits, logits.dtype.min), axis=1, keepdims=True)
  log_share = positive_mask * (logits[:, :tf.shape(positives)[1]] - log_total)
  count = tf.reduce_sum(positive_mask, axis=1)
  anchor_loss = -tf.math.divide_no_nan(tf.reduce_sum(log_share, axis=1), count)
  return tf.math.divide_no_nan(
      tf.reduce_sum(anchor_loss), tf.reduce_sum(tf.cast(count > 0, anchors.dtype)))


class Sgct(Distiller):
  """Single-layer graph contrastive distillation.

  Anchors are the batch's distinct old users (and old positive items) with their student embeddings;
  positives are neighbours in the teacher's graph, negatives uniform non-neighbours there, both with the
  teacher's embeddings. Neighbours are drawn anew in each step.
  """

  def __init__(self, config, context, teacher, seed):
    super().__init__(config, context, teacher, seed)
    self._complements = {
        name: Complement(teacher.graph.relations[name].table) for name in ('ui', 'iu')}

  def losses(self, batch) -> Dict[str, tf.Tensor]:
    options = self.config.sgct
    total = 0.
    for kind, other, relation in (('user', 'item', 'ui'), ('item', 'user', 'iu')):
      nodes, anchors = batch.old(kind, 0, self.teacher)
      positives, positive_mask = views.draw_neighbours(
          self.teacher.graph.relations[relation], nodes, options.num_positives, batch.seeds.next())
      negatives, negative_mask = self._complements[relation].draw(
          nodes, options.num_negatives, batch.seeds.next())
      rows = self.teacher.layers(other)[0]
      total += contrastive_loss(
          anchors, tf.gather(rows, positives), positive_mask, tf.gather(rows, negatives),
          negative_mask, options.temperature)
    return {'sgct': options.weight * total}
