"""Parts of the selection of the k best: odd shapes, thresholds, keys, and which way is taken."""
import numpy as np
import pytest

from graphsane_tf.graph import topk


@pytest.mark.parametrize('rows,columns', [(1, 1), (3, 7), (7, 96), (5, 97), (64, 3), (2, 640)])
@pytest.mark.parametrize('kind', ['plain', 'ties'])
def test_any_shape(rows, columns, kind):
  rng = np.random.default_rng(rows)
  scores = rng.normal(size=(rows, columns)).astype(np.float32)
  if kind == 'ties':
    scores = scores.round()
  for k in {1, min(3, columns), columns}:
    values, places = topk.select(scores, k)
    order = np.argsort(-scores, axis=1, kind='stable')[:, :k]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, order, axis=1))
    assert values.dtype == np.float32 and places.dtype == np.int32


@pytest.mark.parametrize('k', [1, 2, 5, 30])
def test_k_entries_reach_the_threshold(k):
  rng = np.random.default_rng(k)
  scores = rng.normal(size=(9, 128)).astype(np.float32)
  scores[4] = -np.inf
  scores[5, 3:] = -np.inf
  threshold = topk._threshold(scores, k)
  assert np.isfinite(threshold).all()
  reached = (scores >= threshold[:, None]).sum(axis=1)
  finite = np.isfinite(scores).sum(axis=1)
  assert np.all(reached >= np.minimum(k, finite)) and reached[4] == 0
  # Groups keep it from being far too low: at 2 k groups and more, few entries reach it by chance.
  assert reached[[0, 1, 2, 3, 6, 7, 8]].mean() <= 2.5 * k + 2


@pytest.mark.parametrize('share', [0., .05, .5, 1.])
def test_entries_that_reach_their_rows_threshold(share):
  rng = np.random.default_rng(0)
  scores = (rng.random((6, 35)) < share).astype(np.float32)
  found = topk._reaching(scores, np.full(6, .5, np.float32))
  np.testing.assert_array_equal(found, np.flatnonzero(scores))
  thresholds = np.array([.5, 2., .5, 2., 1., 2.], np.float32)
  np.testing.assert_array_equal(topk._reaching(scores, thresholds),
                                np.flatnonzero(scores >= thresholds[:, None]))


def test_keys_have_the_order_of_the_ranking():
  scores = np.array([3.5, -0., 0., -1e30, 1e-30, 7., -2., 7., -1e-40, 3.4e38], np.float32)
  columns = np.array([2**32 - 1, 5, 4, 0, 1, 9, 3, 8, 6, 7])
  keys = topk.sort_keys(scores, columns)
  expected = sorted(range(len(scores)), key=lambda place: (-scores[place], columns[place]))
  np.testing.assert_array_equal(np.argsort(keys), expected)
  np.testing.assert_array_equal(keys & 0xffffffff, columns)
  assert keys.max() < topk.NO_KEY
  # Higher scores have lower keys, and the key of no item stands for a score of -inf.
  assert topk.sort_keys(np.array([-np.inf], np.float32), np.array([2**32 - 1]))[0] == topk.NO_KEY


def test_bits_of_floats_are_put_in_order_and_back():
  values = np.array([-np.inf, -3., -1e-40, 0., 1e-40, 2., np.inf], np.float32)
  ordered = topk._ordered_bits(values.view(np.int32))
  assert (np.diff(ordered.astype(np.int64)) > 0).all()
  np.testing.assert_array_equal(topk._ordered_bits(ordered).view(np.float32), values)


def test_few_candidates_are_sorted_and_many_are_not(monkeypatch):
  """`tf.math.top_k` only has rows of which more than three times k would have to be sorted."""
  asked = []
  plain = topk.plain
  monkeypatch.setattr(topk, 'plain', lambda scores, k: (asked.append(k), plain(scores, k))[1])
  scores = np.zeros((4, 64), np.float32)
  scores[:, :6] = np.arange(1, 7)
  topk.select(scores, 2)  # At least two reach the threshold, six at most.
  assert not asked
  topk.select(np.ones((4, 64), np.float32), 20)
  assert asked == [20]
  asked.clear()
  # Three times k candidates are few enough, one more is not.
  for count, expected in ((6, []), (7, [2])):
    row = np.zeros((1, 64), np.float32)
    row[0, :count] = 1.
    monkeypatch.setattr(topk, '_threshold', lambda scores, k: np.array([.5], np.float32))
    topk.select(row, 2)
    assert asked == expected


@pytest.mark.parametrize('num_columns,k,size', [
    (64, 1, 32), (128, 1, 64), (4_096, 1, 64), (128, 2, 32), (128, 3, 16), (128, 32, 2), (128, 33, 1),
    (128, 128, 1), (96, 1, 32), (100, 1, 4), (1, 1, 1), (64, 0, 64)])
def test_groups(num_columns, k, size):
  assert topk.group_size(num_columns, k) == size
