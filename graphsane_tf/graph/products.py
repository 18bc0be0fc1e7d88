"""Products with sparse matrices that live for one step, and their gradients."""
import tensorflow as tf


def matrix(columns: tf.Tensor, weight: tf.Tensor, num_columns: tf.Tensor) -> tf.Tensor:
  """A CSR variant tensor; to be made inside the `tf.function` using it.

  Args:
    columns: [n, f] columns of the f entries of each row; two in one place are added up.
    weight: [n, f] float32 their values.
    num_columns: of the matrix.
  """
  rows, width = tf.unstack(tf.shape(columns, out_type=tf.int64))
  row = tf.repeat(tf.range(rows), width)
  return tf.raw_ops.SparseTensorToCSRSparseMatrix(
      indices=tf.stack([row, tf.cast(tf.reshape(columns, [-1]), tf.int64)], axis=1),
      values=tf.reshape(weight, [-1]),
      dense_shape=tf.stack([rows, tf.cast(num_columns, tf.int64)]))


def transposed(sparse: tf.Tensor) -> tf.Tensor:
  return tf.raw_ops.SparseMatrixTranspose(input=sparse, type=tf.float32)


def multiply(sparse: tf.Tensor, dense: tf.Tensor) -> tf.Tensor:
  return tf.raw_ops.SparseMatrixMatMul(a=sparse, b=dense)


def weighted_sums(table: tf.Tensor, places: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
  """Sums of the rows at [n, f] places of a [m, d] table by [n, f] weights, [n, d].

  Neither the rows nor their gradients are gathered. There is no gradient for the weights.
  """
  @tf.custom_gradient
  def product(dense):
    sparse = matrix(places, weight, tf.shape(dense)[0])
    return multiply(sparse, dense), lambda upstream: multiply(transposed(sparse), upstream)

  return product(table)
