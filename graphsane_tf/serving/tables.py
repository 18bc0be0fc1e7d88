"""Sparse tables of a SavedModel, and what is asked of them: rows, sums over rows, single entries."""
from typing import Tuple

import numpy as np
import scipy.sparse
import tensorflow as tf


class Table(tf.Module):
  """A [num_rows, num_columns] CSR table in variables, with one more row that is empty (for unknown ids)."""

  def __init__(self, matrix: scipy.sparse.csr_matrix):
    """Takes a matrix whose columns are ascending in each row."""
    super().__init__()
    self.none = matrix.shape[0]
    indptr = np.append(matrix.indptr, matrix.indptr[-1]).astype(np.int64)
    self._indptr = tf.Variable(indptr, trainable=False)
    self._columns = tf.Variable(matrix.indices.astype(np.int32), trainable=False)
    self._values = tf.Variable(matrix.data.astype(np.float32), trainable=False)
    self._steps = int(np.diff(indptr).max(initial=0)).bit_length()

  def columns(self, rows) -> Tuple[tf.Tensor, tf.Tensor]:
    """The rows [n] one after another: where each begins [n + 1] int64, and columns [m] int32."""
    return self._part(self._columns, rows)

  def rows(self, rows) -> Tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """`columns`, and values [m] float32."""
    splits, columns = self.columns(rows)
    return splits, columns, self._part(self._values, rows)[1]

  def _part(self, values, rows):
    part = tf.raw_ops.RaggedGather(params_nested_splits=[self._indptr], params_dense_values=values,
                                   indices=rows, OUTPUT_RAGGED_RANK=1)
    return part.output_nested_splits[0], part.output_dense_values

  def entries(self, rows, columns) -> tf.Tensor:
    """[n] float32 the entries at rows [n], columns [n] int32, by bisection; 0 where there is none."""
    low, end = tf.gather(self._indptr, rows), tf.gather(self._indptr, rows + 1)
    high, last = end, tf.size(self._columns, out_type=tf.int64) - 1
    for _ in range(self._steps):
      middle = (low + high) // 2
      below = (low < high) & (tf.gather(self._columns, tf.minimum(middle, last)) < columns)
      low, high = tf.where(below, middle + 1, low), tf.where(below, high, tf.maximum(low, middle))
    place = tf.minimum(low, last)
    there = (low < end) & (tf.gather(self._columns, place) == columns)
    return tf.where(there, tf.gather(self._values, place), 0.)


def row_numbers(splits) -> tf.Tensor:
  """[m] int64 the row of each entry, from where rows begin [n + 1].

  `tf.repeat` would need memory for all rows at the length of the longest.
  """
  half = tf.constant(32, tf.int64)
  first = tf.bitwise.left_shift(tf.range(tf.size(splits, out_type=tf.int64) - 1), half)
  counted = tf.raw_ops.RaggedRange(starts=first, limits=first + splits[1:] - splits[:-1],
                                   deltas=tf.constant(1, tf.int64))
  return tf.bitwise.right_shift(counted.rt_dense_values, half)


def repeated(values, splits) -> tf.Tensor:
  """[m] float32 for each entry the value [n] of its row, from where rows begin [n + 1].

  Ranges that begin with a value's bits as their upper half are several times as fast as gathering by row numbers.
  """
  half = tf.constant(32, tf.int64)
  first = tf.bitwise.left_shift(tf.cast(tf.bitcast(values, tf.int32), tf.int64), half)
  counted = tf.raw_ops.RaggedRange(starts=first, limits=first + splits[1:] - splits[:-1],
                                   deltas=tf.constant(1, tf.int64))
  # The upper half comes second on all processors that TensorFlow is released for.
  return tf.bitcast(counted.rt_dense_values, tf.float32)[:, 1]


class Memory(tf.Module):
  """Profiles times item-item weights: scores that are added to those of the vectors."""

  def __init__(self, profile: scipy.sparse.csr_matrix, weights: scipy.sparse.csr_matrix, scale: float):
    """Takes profiles [num_users, num_items], weights [num_items, num_items] and the scale of `one_each`."""
    super().__init__()
    self._profile, self._weights = Table(profile), Table(weights)
    self._num_items = weights.shape[1]
    self._scale = tf.Variable(scale, dtype=tf.float32, trainable=False)

  def of_users(self, rows):
    """The profiles of users [n] (`Table.none` is empty): splits [n + 1], items [m] and weights [m]."""
    return self._profile.rows(rows)

  def of_items(self, splits, items):
    """The profiles of people who are known by items alone."""
    return splits, items, tf.fill(tf.shape(items), self._scale.read_value())

  def scores(self, profile):
    """[n, num_items] float32 scores of n profiles."""
    splits, items, weights = profile
    begins, columns, values = self._weights.rows(tf.cast(items, tf.int64))
    values *= repeated(weights, begins)
    return tf.raw_ops.RaggedBincount(
        splits=tf.gather(begins, splits), values=columns, size=self._num_items, weights=values)

  def pairs(self, users, items):
    """[n] float32 scores of users [n] int64 and items [n] int64."""
    splits, owned, weights = self._profile.rows(users)
    pair = row_numbers(splits)
    entries = self._weights.entries(tf.cast(owned, tf.int64), tf.cast(tf.gather(items, pair), tf.int32))
    return tf.math.unsorted_segment_sum(weights * entries, pair, tf.size(users))
