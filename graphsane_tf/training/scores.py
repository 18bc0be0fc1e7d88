"""Scores of (user, item) pairs, with a gradient that does not materialise the pairs' rows."""
import tensorflow as tf


def _scatter_products(gradient, columns, rows, num_rows):
  """sum over pairs of gradient * rows, by column: G^T R, as a product with a sparse matrix.

  Args:
    gradient: [B, N] weights.
    columns: [B, N] int32 target row of each weight.
    rows: [B, D].
    num_rows: number of target rows.

  Returns:
    [num_rows, D].
  """
  batch, width = tf.unstack(tf.shape(columns))
  flat = tf.reshape(columns, [-1])
  order = tf.argsort(flat, stable=True)
  source = tf.cast(order // width, tf.int64)
  indices = tf.stack([tf.cast(tf.gather(flat, order), tf.int64), source], axis=1)
  # A pair may name the same item twice: the matrix then holds two entries in one place, which the
  # product adds up.
  sparse = tf.raw_ops.SparseTensorToCSRSparseMatrix(
      indices=indices, values=tf.gather(tf.reshape(gradient, [-1]), order),
      dense_shape=tf.cast(tf.stack([num_rows, batch]), tf.int64))
  return tf.raw_ops.SparseMatrixMatMul(a=sparse, b=rows)


@tf.custom_gradient
def pair_scores(user_rows: tf.Tensor, item_table: tf.Tensor, items: tf.Tensor):
  """Dot products of users with items.

  The plain gradient of a gather writes one row of size D for each of the B x N pairs and adds them up;
  this one is a sparse product.

  Args:
    user_rows: [B, D] representations of the pairs' users.
    item_table: [n, D] representations.
    items: [B, N] int32 rows of `item_table`.

  Returns:
    [B, N] scores.
  """
  gathered = tf.gather(item_table, items)
  scores = tf.linalg.matvec(gathered, user_rows)

  def gradient(upstream):
    user_gradient = tf.squeeze(tf.matmul(upstream[:, None, :], gathered), axis=1)
    item_gradient = _scatter_products(upstream, items, user_rows, tf.shape(item_table)[0])
    return user_gradient, item_gradient, None

  return scores, gradient
