"""Tests of the selection of the k best."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.graph import topk


@pytest.mark.parametrize('k', [1, 20, 150, 500])
@pytest.mark.parametrize(
    'kind', ['plain', 'skewed', 'rounded', 'equal', 'mostly_masked', 'all_masked'])
def test_select_is_top_k(kind, k):
  """The fast path gives what `tf.math.top_k` gives, bit for bit, ties included."""
  rng = np.random.default_rng(3)
  scores = rng.normal(size=(40, 1_024)).astype(np.float32)
  if kind == 'skewed':
    scores = np.exp(6 * scores)
  elif kind == 'rounded':
    scores = scores.round(1)
  elif kind == 'equal':
    scores[:] = 1.
  elif kind == 'mostly_masked':
    scores[rng.random(scores.shape) < .95] = -np.inf
  elif kind == 'all_masked':
    scores[::2] = -np.inf
  values, columns = topk.select(scores, k)
  wanted, wanted_columns = tf.math.top_k(scores, k)
  np.testing.assert_array_equal(values, wanted)
  finite = np.isfinite(wanted)
  np.testing.assert_array_equal(columns[finite], wanted_columns.numpy()[finite])


def test_group_size():
  assert [topk.group_size(5_568, k) for k in (1, 20, 300, 1_000, 3_000)] == [64, 64, 8, 2, 1]
  assert [topk.group_size(number, 1) for number in (64, 3, 1_001, 1_000)] == [32, 1, 1, 8]
