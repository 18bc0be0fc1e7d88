"""Products with sparse matrices that live for one step, and their gradients.

A matrix is given as the [n, f] columns of the f entries of each row and their [n, f] float32 values;
two entries in one place are added up.
"""
import tensorflow as tf


def _matrix(columns: tf.Tensor, weight: tf.Tensor, shape) -> tf.Tensor:
  rows, width = tf.unstack(tf.shape(columns, out_type=tf.int64))
  row = tf.repeat(tf.range(rows), width)
  return tf.raw_ops.SparseTensorToCSRSparseMatrix(
      indices=tf.stack([row, tf.cast(tf.reshape(columns, [-1]), tf.int64)], axis=1),
      values=tf.reshape(weight, [-1]), dense_shape=tf.cast(tf.stack(shape), tf.int64))


def product(columns: tf.Tensor, weight: tf.Tensor, dense: tf.Tensor) -> tf.Tensor:
  """The product with a dense [m, d] matrix, [n, d]."""
  rows = tf.shape(columns)[0]
  # TensorFlow's product ends the process where there is no row.
  sparse = _matrix(columns, weight, [tf.maximum(rows, 1), tf.shape(dense)[0]])
  return tf.raw_ops.SparseMatrixMatMul(a=sparse, b=dense)[:rows]


def transposed_product(columns: tf.Tensor, weight: tf.Tensor, dense: tf.Tensor,
                       num_columns: tf.Tensor) -> tf.Tensor:
  """The product of the transposed matrix with a dense [n, d] matrix, [num_columns, d]."""
  sparse = _matrix(columns, weight, [tf.shape(columns)[0], num_columns])
  sparse = tf.raw_ops.SparseMatrixTranspose(input=sparse, type=tf.float32)
  return tf.raw_ops.SparseMatrixMatMul(a=sparse, b=dense)


@tf.custom_gradient
def rows_at(table: tf.Tensor, places: tf.Tensor):
  """tf.gather of [n] places in a [m, d] table; its gradient is a sparse product, hence dense.

  The gradients of several plain gathers are put one behind the other before they are added up.
  """
  def gradient(upstream):
    ones = tf.ones([tf.size(places), 1])
    return transposed_product(places[:, None], ones, upstream, tf.shape(table)[0]), None

  return tf.gather(table, places), gradient


@tf.custom_gradient
def first_rows(table: tf.Tensor, number: tf.Tensor):
  """table[:number] of a [m, d] table; the gradient of a plain slice takes several times as long."""
  def gradient(upstream):
    rest = tf.zeros([tf.shape(table)[0] - number, tf.shape(table)[1]])
    return tf.concat([upstream, rest], axis=0), None

  return table[:number], gradient


def weighted_sums(table: tf.Tensor, places: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
  """Sums of the rows at [n, f] places of a [m, d] table by [n, f] weights, [n, d].

  Neither the rows nor their gradients are gathered. There is no gradient for the weights.
  """
  @tf.custom_gradient
  def sums(dense):
    # The gradient makes a matrix of its own: a tape outside of a function could not carry this one.
    return product(places, weight, dense), lambda upstream: transposed_product(
        places, weight, upstream, tf.shape(dense)[0])

  return sums(table)
