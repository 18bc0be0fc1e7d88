"""Draws from the complement of the positives."""
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from graphsane_tf.graph import csr
from graphsane_tf.graph.draws import Complement


@pytest.mark.parametrize('seed', [0, 1, 2])
def test_each_unobserved_item_is_equally_likely(seed):
  rng = np.random.default_rng(4)
  keys = rng.permutation(5 * 11)[:25]
  positives = csr.from_pairs(keys // 11, keys % 11, 5, 11)
  dense = positives.matrix().toarray() > 0
  items, valid = Complement(positives).draw(tf.range(5), 6000, tf.constant([seed, 9]))
  assert np.all(valid.numpy() == 1)
  for user in range(5):
    counts = np.bincount(items.numpy()[user], minlength=11)
    assert not counts[dense[user]].any()
    assert scipy.stats.chisquare(counts[~dense[user]]).pvalue > 1e-3


def test_users_who_took_everything_or_all_but_one():
  positives = csr.from_pairs([0] * 4 + [1] * 3, [0, 1, 2, 3, 0, 1, 3], 3, 4)
  items, valid = Complement(positives).draw(tf.range(3), 50, tf.constant([1, 1]))
  assert not valid.numpy()[0].any()
  assert np.all(items.numpy()[1] == 2) and np.all(valid.numpy()[1] == 1)
  assert set(items.numpy()[2]) == {0, 1, 2, 3}
  assert items.numpy().min() >= 0 and items.numpy().max() < 4


@pytest.mark.parametrize('places', [[0, 2], [1], []])
def test_some_users_draw_what_they_draw_among_all(places):
  positives = csr.from_pairs([0] * 4 + [1] * 3, [0, 1, 2, 3, 0, 1, 3], 3, 9)
  draws, users, seed = Complement(positives), tf.constant([2, 0, 1]), tf.constant([3, 1])
  for some, everyone in zip(draws.draw(users, 20, seed, tf.constant(places, tf.int64)), draws.draw(users, 20, seed)):
    np.testing.assert_array_equal(some, everyone.numpy()[places])


def test_a_catalogue_too_large_for_small_keys():
  """Users times items is beyond int32: the positives and nothing else are left out, at both ends too."""
  size = 10**9
  taken = np.array([0, 1, 5, size - 2])
  positives = csr.from_pairs(np.repeat([1, 3], 4), np.tile(taken, 2), 4, size)
  items, valid = Complement(positives).draw(tf.range(4), 3000, tf.constant([1, 2]))
  items = items.numpy()
  assert np.all(valid.numpy() == 1) and items.min() >= 0 and items.max() < size
  assert not np.isin(items[[1, 3]], taken).any()
  for user in range(4):
    assert scipy.stats.kstest(items[user] / size, 'uniform').pvalue > 1e-3


def test_small_and_large_keys_give_the_same_draws():
  keys = np.random.default_rng(5).permutation(20 * 30)[:250]
  complement = Complement(csr.from_pairs(keys // 30, keys % 30, 20, 30))
  assert complement._keys.dtype == tf.int32
  small = complement.draw(tf.range(20), 40, tf.constant([3, 4]))
  complement._keys = tf.cast(complement._keys, tf.int64)
  for one, other in zip(small, complement.draw(tf.range(20), 40, tf.constant([3, 4]))):
    np.testing.assert_array_equal(one, other)
