"""LSP_s: each node keeps its similarities to its old neighbours (Yang et al., CVPR 2020)."""
from typing import Dict

import tensorflow as tf

from graphsane_tf.distillation.base import Distiller, weighted
from graphsane_tf.distillation.divergence import softmax_divergence
from graphsane_tf.graph import views


def local_structure_loss(student: tf.Tensor, student_neighbours: tf.Tensor, teacher: tf.Tensor,
                         teacher_neighbours: tf.Tensor, mask: tf.Tensor, temperature: float,
                         teacher_first: bool) -> tf.Tensor:
  """Mean over nodes of the divergence between the local structures LS of teacher and student.

  LS_i = softmax over the neighbours j of i of e_i . e_j / temperature. Nodes without neighbours are
  left out of the mean.

  Args:
    student: [n, d] nodes.
    student_neighbours: [n, k, d].
    teacher: [n, d].
    teacher_neighbours: [n, k, d].
    mask: [n, k], 0 where a slot holds no neighbour.
    temperature: of the softmax.
    teacher_first: see `softmax_divergence`.
  """
  def logits(nodes, neighbours):
    return tf.linalg.matvec(neighbours, nodes) / temperature
  divergence = softmax_divergence(
      logits(teacher, teacher_neighbours), logits(student, student_neighbours), mask, teacher_first)
  num_nodes = tf.reduce_sum(tf.reduce_max(mask, axis=1))
  return tf.math.divide_no_nan(tf.reduce_sum(divergence), num_nodes)


class Lsp(Distiller):
  """Local structure preservation on the batch's distinct old nodes.

  Neighbours are those of the teacher's graph, so they are old nodes, too; up to `num_neighbours` of
  a node are drawn anew in each step. Similarities are dot products of embeddings.
  """

  weight_fields = ('lsp.weight',)

  def losses(self, batch) -> Dict[str, tf.Tensor]:
    options = self.config.lsp
    seeds = batch.seeds.child('distiller')

    def term():
      total = 0.
      for kind, other, relation in (('user', 'item', 'ui'), ('item', 'user', 'iu')):
        nodes, student = batch.old(kind, 0, self.teacher)
        neighbours, mask = views.draw_neighbours(
            self.teacher.relation(relation), nodes, options.num_neighbours, seeds.next())
        total += local_structure_loss(
            student, tf.gather(getattr(batch.backbone, f'{other}_table'), neighbours),
            tf.gather(self.teacher.embedding(kind), nodes),
            tf.gather(self.teacher.embedding(other), neighbours), mask, options.temperature,
            options.teacher_first)
      return total

    return {'lsp': weighted(options.weight, term)}
