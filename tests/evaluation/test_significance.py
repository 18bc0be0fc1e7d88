"""Tests of paired tests, their correction and intervals."""
import itertools

import numpy as np
import pytest
from scipy import stats

from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import significance


def test_wilcoxon_by_hand():
  """Differences 1, 2, 3, -4, 5: rank sums 11 and 4; 14 of 32 sign patterns are as extreme."""
  test = significance.paired_wilcoxon([1, 2, 3, 0, 5], [0, 0, 0, 4, 0])
  assert test.statistic == 4
  assert test.p_value == pytest.approx(14 / 32)
  assert test.mean_difference == pytest.approx(1.4)
  assert (test.pairs, test.differing) == (5, 5)


def test_wilcoxon_leaves_zeros_and_missing_users_out():
  rng = np.random.default_rng(0)
  a, b = rng.random(80), rng.random(80)
  plain = significance.paired_wilcoxon(a, b)
  more = significance.paired_wilcoxon(
      np.concatenate([a, np.ones(20), [np.nan]]), np.concatenate([b, np.ones(20), [0.5]]))
  assert more.p_value == pytest.approx(plain.p_value, rel=1e-12)
  assert (more.pairs, more.differing) == (100, 80)
  assert more.mean_difference == pytest.approx(0.8 * plain.mean_difference)


def test_wilcoxon_finds_a_shift_and_is_symmetric():
  rng = np.random.default_rng(1)
  b = rng.random(500)
  a = b + rng.normal(0.02, 0.1, 500)
  one, two = significance.paired_wilcoxon(a, b), significance.paired_wilcoxon(b, a)
  assert one.p_value < 0.01
  assert one.p_value == pytest.approx(two.p_value)
  assert one.mean_difference == pytest.approx(-two.mean_difference)


def test_a_user_counts_once_whatever_the_blocks_and_seeds():
  rng = np.random.default_rng(2)
  ours, theirs = ([{(block, user): rng.random() for block in (1, 2, 3) for user in (4, 7, 9)} for _ in range(2)]
                  for _ in range(2))
  # User 9 is judged with both methods in block 3 alone, and by one of them with one seed only; user 4 has a NaN.
  del ours[0][1, 9], theirs[1][2, 9]
  theirs[0][2, 4] = np.nan
  users, (first, second) = significance.by_user([ours, theirs])
  assert users == [4, 7, 9]
  for found, side in ((first, ours), (second, theirs)):
    blocks = {4: (1, 3), 7: (1, 2, 3), 9: (3,)}
    np.testing.assert_allclose(found, [np.mean([[values[block, user] for block in blocks[user]] for values in side])
                                       for user in users])
  assert significance.by_user([[{}], [{(1, 2): .5}]])[0] == []


def test_wilcoxon_of_equal_methods():
  test = significance.paired_wilcoxon(np.ones(9), np.ones(9))
  assert (test.p_value, test.statistic, test.differing) == (1, 0, 0)


@pytest.mark.parametrize('a,b', [([1, 2], [1]), ([], []), ([np.nan], [1])])
def test_wilcoxon_refuses_what_is_not_paired(a, b):
  with pytest.raises(UserError):
    significance.paired_wilcoxon(a, b)


def _holm_by_closed_testing(p_values):
  """A hypothesis falls if Bonferroni rejects every set of hypotheses that it belongs to."""
  numbers = range(len(p_values))
  sets = [s for size in numbers for s in itertools.combinations(numbers, size + 1)]
  return [max(min(1., len(s) * min(p_values[k] for k in s)) for s in sets if one in s) for one in numbers]


@pytest.mark.parametrize('seed', range(5))
def test_holm_is_closed_testing_with_bonferroni(seed):
  rng = np.random.default_rng(seed)
  p_values = np.round(rng.random(7) ** 3, 2)
  np.testing.assert_allclose(significance.holm(p_values), _holm_by_closed_testing(p_values))


def test_holm_by_hand():
  """.01 * 3, then .02 * 2, then .04 * 1, which may not be below the one before it."""
  np.testing.assert_allclose(significance.holm([.04, .01, .02]), [.04, .03, .04])
  np.testing.assert_allclose(significance.holm([.9, .8]), [1., 1.])
  np.testing.assert_allclose(significance.holm([.3]), [.3])
  assert significance.holm([]).shape == (0,)


def test_interval_by_hand():
  """Mean 2, standard error 1 / sqrt(3), t of 2 degrees of freedom 4.3027."""
  result = significance.interval([1, 2, 3])
  assert result.mean == 2 and result.count == 3
  assert result.high - 2 == pytest.approx(4.30265 / np.sqrt(3), rel=1e-5)
  assert 2 - result.low == pytest.approx(result.high - 2)
  narrow = significance.interval([1, 2, 3], level=0.5)
  assert narrow.high == pytest.approx(2 + stats.t.ppf(0.75, 2) / np.sqrt(3))


def test_interval_of_one_value_has_no_limits():
  assert significance.interval([0.3]) == significance.Interval(0.3, None, None, 1)
  with pytest.raises(UserError):
    significance.interval([])
