"""The best of many scores, in TensorFlow: as `tf.math.top_k` has them, but faster on a CPU."""
import math

import tensorflow as tf


def without(scores, places) -> tf.Tensor:
  """Scores [n, num_items] with minus infinity at places [m] int64 (row * num_items + item).

  Where nobody else holds the scores they are changed in place, so that it costs in proportion to m.
  """
  out = tf.fill(tf.shape(places), tf.constant(-math.inf, scores.dtype))
  return tf.reshape(tf.tensor_scatter_nd_update(tf.reshape(scores, [-1]), places[:, None], out), [-1, scores.shape[1]])


def best(scores, k) -> tuple[tf.Tensor, tf.Tensor]:
  """The k best of each row, of equal ones the first: what `tf.math.top_k` returns.

  That keeps a heap over all scores of a row. Here only groups of neighbouring items are compared, by their maxima:
  the k best items are in the k best groups, because each of these has an item that is better, or as good and
  earlier, than all of another group.

  Args:
    scores: [n, num_items] float32; the number of items is known when this is traced.
    k: int32 scalar, at most num_items.

  Returns:
    scores [n, k] and items [n, k] int32.
  """
  num_items = scores.shape[1]
  width = group_width(num_items)

  def in_groups():
    missing = -num_items % width
    padding = [[0, 0], [0, missing]]
    padded = tf.pad(scores, padding, constant_values=-math.inf) if missing else scores
    groups = tf.reshape(padded, [-1, padded.shape[1] // width, width])
    # Ascending, so that places among the candidates are in the order of the items.
    chosen = tf.sort(tf.math.top_k(tf.reduce_max(groups, axis=2), k).indices, axis=1)
    candidates = tf.gather(groups, chosen, batch_dims=1)
    values, places = tf.math.top_k(tf.reshape(candidates, tf.stack([tf.shape(scores)[0], k * width])), k)
    return values, tf.gather(chosen, places // width, batch_dims=1) * width + places % width

  # With many groups chosen, nothing is left to be saved.
  return tf.cond(2 * k * width < num_items, in_groups, lambda: tuple(tf.math.top_k(scores, k)))


def group_width(num_items: int) -> int:
  """Items of a group: with a few dozen asked for, as many groups are compared as items in the chosen ones."""
  return max(8, 2**round(math.log2(num_items / 32) / 2))
