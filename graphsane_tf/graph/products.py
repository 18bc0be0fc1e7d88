"""Products with sparse matrices, of which most live for one step, and their gradients."""
from typing import NamedTuple

import tensorflow as tf


class Entries(NamedTuple):
  """Entries of a sparse matrix; two in one place are added up.

  Attributes:
    row: [m] int64, ascending.
    column: [m] int.
    value: [m] float32.
  """
  row: tf.Tensor
  column: tf.Tensor
  value: tf.Tensor

  def matrix(self, num_rows, num_columns) -> tf.Tensor:
    """A CSR variant tensor; to be called inside the `tf.function` using it."""
    return tf.raw_ops.SparseTensorToCSRSparseMatrix(
        indices=tf.stack([self.row, tf.cast(self.column, tf.int64)], axis=1), values=self.value,
        dense_shape=tf.cast(tf.stack([num_rows, num_columns]), tf.int64))


def row_entries(columns: tf.Tensor, weight: tf.Tensor) -> Entries:
  """Entries given as the [n, f] columns of the f entries of each row and their [n, f] values."""
  shape = tf.shape(columns, out_type=tf.int64)
  # tf.repeat would add twenty operations to a graph in which this occurs often.
  row = tf.broadcast_to(tf.range(shape[0])[:, None], shape)
  return Entries(*(tf.reshape(part, [-1]) for part in (row, columns, weight)))


def product(entries: Entries, num_rows: tf.Tensor, dense: tf.Tensor) -> tf.Tensor:
  """The product with a dense [m, d] matrix, [num_rows, d]."""
  # TensorFlow's product ends the process where there is no row.
  sparse = entries.matrix(tf.maximum(num_rows, 1), tf.shape(dense)[0])
  return tf.raw_ops.SparseMatrixMatMul(a=sparse, b=dense)[:num_rows]


def transposed_product(entries: Entries, dense: tf.Tensor, num_columns: tf.Tensor) -> tf.Tensor:
  """The product of the transposed matrix with a dense [n, d] matrix, [num_columns, d]."""
  sparse = entries.matrix(tf.shape(dense)[0], num_columns)
  sparse = tf.raw_ops.SparseMatrixTranspose(input=sparse, type=tf.float32)
  return tf.raw_ops.SparseMatrixMatMul(a=sparse, b=dense)


def spread(rows: tf.Tensor, places: tf.Tensor, num_rows: tf.Tensor) -> tf.Tensor:
  """[num_rows, d] zeros, to which [n, d] rows are added at [n] places."""
  ones = Entries(tf.range(tf.size(places, tf.int64)), places, tf.ones_like(places, tf.float32))
  return transposed_product(ones, rows, num_rows)


@tf.custom_gradient
def rows_at(table: tf.Tensor, places: tf.Tensor):
  """tf.gather of [n] places in a [m, d] table; its gradient is a sparse product, hence dense.

  The gradients of several plain gathers are put one behind the other before they are added up.
  """
  return tf.gather(table, places), lambda upstream: (
      spread(upstream, places, tf.shape(table)[0]), None)


def row_gaps(table: tf.Tensor, places: tf.Tensor, others: tf.Tensor,
             present: tf.Tensor) -> tf.Tensor:
  """Rows at [n] places of a [m, d] table minus those at [n] others, times [n] present: [n, d]."""
  return weighted_sums(
      table, tf.stack([places, others], axis=1), tf.stack([present, -present], axis=1))


@tf.custom_gradient
def first_rows(table: tf.Tensor, num_rows: tf.Tensor):
  """table[:num_rows] of a [m, d] table; the gradient of a plain slice takes several times as long."""
  def gradient(upstream):
    rest = tf.zeros([tf.shape(table)[0] - num_rows, tf.shape(table)[1]])
    return tf.concat([upstream, rest], axis=0), None

  return table[:num_rows], gradient


@tf.custom_gradient
def parted(table: tf.Tensor, num_rows: tf.Tensor):
  """A [m, d] table and its first rows, as `first_rows`, for those who go on with this table instead of the one given.

  The first rows' gradient is added to the table's where that is, instead of being filled up with zeros.
  """
  def gradient(upstream, first):
    return tf.tensor_scatter_nd_add(upstream, tf.range(tf.shape(first)[0])[:, None], first), None

  return (tf.identity(table), table[:num_rows]), gradient


def weighted_sums(table: tf.Tensor, places: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
  """Sums of the rows at [n, f] places of a [m, d] table by [n, f] weights, [n, d].

  Neither the rows nor their gradients are gathered. There is no gradient for the weights.
  """
  @tf.custom_gradient
  def sums(dense):
    # The gradient makes a matrix of its own: a tape outside of a function could not carry this one.
    entries = row_entries(places, weight)
    return product(entries, tf.shape(places)[0], dense), lambda upstream: transposed_product(
        entries, upstream, tf.shape(dense)[0])

  return sums(table)
