"""Equations 5 to 10 in TensorFlow, so that on a GPU nothing of a rebuild but the ranking's ids leaves the device.

On a CPU NumPy is faster (`posterior`, `interests`), and gives the same within rounding. This has been run on CPUs only,
never on a GPU.
"""
from typing import Optional

import tensorflow as tf

from graphsane_tf.graph import csr


def histogram(edges: csr.Csr, start: int, stop: int, category: tf.Tensor, num_categories: int) -> tf.Tensor:
  """[stop - start, K] float32 interactions of some rows of a table by category."""
  begin, end = edges.indptr[start], edges.indptr[stop]
  ends = tf.constant(edges.indptr[start + 1:stop + 1] - begin)
  rows = tf.cast(tf.searchsorted(ends, tf.range(end - begin, dtype=tf.int64), side='right'), tf.int32)
  columns = tf.gather(category, edges.indices[begin:end])
  return _counts(rows, columns, tf.ones([end - begin]), stop - start, num_categories)


def _counts(rows, columns, weight, num_rows: int, num_columns: int) -> tf.Tensor:
  sums = tf.math.unsorted_segment_sum(weight, rows * num_columns + columns, num_rows * num_columns)
  return tf.reshape(sums, [num_rows, num_columns])


def _shares(weight: tf.Tensor) -> tf.Tensor:
  return tf.math.divide_no_nan(weight, tf.reduce_sum(weight, axis=1, keepdims=True))


def printed_prior(current: tf.Tensor, previous: tf.Tensor, options, count: tf.Tensor) -> tf.Tensor:
  """alpha [n, K] of histograms [n, K] and reservoirs of [n] items, equations 5 and 6; `options` is config.sane."""
  known = tf.reduce_any(current > 0., axis=1, keepdims=True) & tf.reduce_any(previous > 0., axis=1, keepdims=True)
  shift = tf.where(known, _shares(current) - _shares(previous), 0.)
  strength = tf.cast(options.strength * tf.cast(count[:, None], tf.float64), tf.float32)
  return strength * tf.nn.softmax(options.prior_sign * shift / options.temperature)


def cumulative(items: tf.Tensor, count: tf.Tensor, category: tf.Tensor, current: tf.Tensor, previous: tf.Tensor,
               options, weight: Optional[tf.Tensor] = None) -> tf.Tensor:
  """Running sums of the probabilities of reservoirs, equations 6 to 10.

  Args:
    items: [n, Q] int32 reservoirs, valid ones first.
    count: [n] int32 number of valid ones.
    category: [num_items] int32.
    current: [n, K] interactions in the block.
    previous: [n, K] interactions in the block before.
    options: config.sane.
    weight: [num_items] float32 weight of each item; None weighs them equally.

  Returns:
    [n, Q] float32; a row of zeros where the reservoir is empty.
  """
  num_rows, size = items.shape
  num_categories = current.shape[1]
  valid = tf.sequence_mask(count, size, tf.float32)
  cell = tf.range(num_rows)[:, None] * num_categories + tf.gather(category, items)
  counts = _counts(tf.zeros_like(cell), cell, valid, 1, num_rows * num_categories)
  counts = tf.reshape(counts, [num_rows, num_categories])
  theta = tf.ones_like(counts) if options.uniform_theta else _shares(
      printed_prior(current, previous, options, count) + counts)
  chance = valid * tf.gather(tf.reshape(theta, [-1]), cell)
  if weight is not None:
    chance *= tf.gather(weight, items)
  return tf.cumsum(_shares(chance), axis=1)
