"""Scores of (row, column) pairs whose memory and gradients do not grow with pairs times size."""
import tensorflow as tf

from graphsane_tf.graph import products

# Columns that are gathered one by one; beyond it all at once, to keep the graph small.
_MAX_COLUMNS = 64


@tf.custom_gradient
def pair_scores(user_rows: tf.Tensor, item_table: tf.Tensor, items: tf.Tensor):
  """Dot products of users with items.

  Plain code gathers a row of size D for each of the B x N pairs, and its gradient writes as many and
  adds them up. This one gathers a column of pairs at a time, which stays in the cache, and both
  gradients are sparse products.

  Args:
    user_rows: [B, D] representations of the pairs' users.
    item_table: [n, D] representations.
    items: [B, N] int32 rows of `item_table`.

  Returns:
    [B, N] scores.
  """
  width = items.shape[1]
  if width is not None and width <= _MAX_COLUMNS:
    columns = [tf.reduce_sum(tf.gather(item_table, column) * user_rows, axis=1)
               for column in tf.unstack(items, axis=1)]
    scores = tf.stack(columns, axis=1)
  else:
    scores = tf.linalg.matvec(tf.gather(item_table, items), user_rows)

  def gradient(upstream):
    entries = products.row_entries(items, upstream)
    user_gradient = products.product(entries, tf.shape(items)[0], item_table)
    item_gradient = products.transposed_product(entries, user_rows, tf.shape(item_table)[0])
    return user_gradient, item_gradient, None

  return scores, gradient


@tf.custom_gradient
def gathered_l2_loss(table: tf.Tensor, places: tf.Tensor):
  """Half the sum of the squares of the rows at `places`.

  Neither the rows nor their gradients are gathered: a row counts as often as it occurs.

  Args:
    table: [n, D] rows.
    places: integers of any shape.
  """
  flat = tf.reshape(places, [-1])
  count = tf.math.unsorted_segment_sum(tf.ones_like(flat, tf.float32), flat, tf.shape(table)[0])

  def gradient(upstream):
    return (upstream * count)[:, None] * table, None

  return tf.nn.l2_loss(tf.sqrt(count)[:, None] * table), gradient
