"""Kullback-Leibler divergence between two softmax distributions."""
from typing import Optional

import tensorflow as tf


def softmax_divergence(teacher: tf.Tensor, student: tf.Tensor, mask: Optional[tf.Tensor] = None,
                       teacher_first: bool = True) -> tf.Tensor:
  """[n] divergence of the rows' softmax distributions; zero where they agree.

  Args:
    teacher: [n, k] logits.
    student: [n, k] logits.
    mask: [n, k], 0 where a slot is empty; None means none is. A row of empty slots gives 0.
    teacher_first: KL(teacher || student), the expectation under the teacher; else
      KL(student || teacher).
  """
  if mask is None:
    mask = tf.ones_like(student)
  def log_shares(logits):
    return tf.nn.log_softmax(tf.where(mask > 0, logits, logits.dtype.min), axis=1)
  first, second = log_shares(teacher), log_shares(student)
  if not teacher_first:
    first, second = second, first
  # Empty slots hold huge numbers of both signs, which must not meet, even under a weight of zero.
  gap = tf.where(mask > 0, first - second, 0.)
  return tf.reduce_sum(tf.exp(first) * gap, axis=1)
