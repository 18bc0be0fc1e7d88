"""Is a difference more than noise? Paired tests over users, intervals over seeds."""
import dataclasses
from typing import Dict, Iterable, List, Mapping, Tuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from graphsane_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class PairedTest:
  """A paired comparison of a with b.

  Attributes:
    mean_difference: mean of a - b over all pairs.
    statistic: Wilcoxon's signed-rank statistic; 0 when no pair differs.
    p_value: two-sided; 1 when no pair differs.
    pairs: number of pairs.
    differing: number of pairs with a != b.
  """
  mean_difference: float
  statistic: float
  p_value: float
  pairs: int
  differing: int


@dataclasses.dataclass(frozen=True)
class Interval:
  """A mean and its confidence limits; the limits are None when there is a single value."""
  mean: float
  low: float | None
  high: float | None
  count: int


def paired_wilcoxon(a: np.ndarray, b: np.ndarray) -> PairedTest:
  """Two-sided Wilcoxon signed-rank test over users.

  Pairs without a difference are left out of the ranking (SciPy's `zero_method='wilcox'`), as in
  Wilcoxon's paper; pairs with a NaN (a user without held-out items) are left out altogether.

  Args:
    a: [n] metric of each user with one method.
    b: [n] metric of the same users with the other.

  Returns:
    The comparison of a with b.
  """
  a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
  if a.shape != b.shape or a.ndim != 1:
    raise UserError('a paired test needs two lists of the same users, got shapes '
                    f'{a.shape} and {b.shape}.')
  difference = a - b
  difference = difference[~np.isnan(difference)]
  if not len(difference):
    raise UserError('a paired test needs at least one pair.')
  differing = int(np.count_nonzero(difference))
  statistic, p_value = 0.0, 1.0
  if differing:
    statistic, p_value = stats.wilcoxon(difference, zero_method='wilcox')
  return PairedTest(float(difference.mean()), float(statistic), float(p_value), len(difference),
                    differing)


def by_user(sides: Iterable[Iterable[Mapping[Tuple[int, int], float]]]) -> Tuple[List[int], List[np.ndarray]]:
  """What a paired test over users takes: one value a user and side, the mean over the blocks and seeds that all have.

  A user who is judged in three blocks, or with three seeds, is still one user: to count each time as another one would
  make p too small.

  Args:
    sides: for each method, the metric of each (block, user), one mapping a seed.

  Returns:
    Users, sorted, and an array [users] for each side.
  """
  sides = [list(side) for side in sides]
  keys = set.intersection(*(set(values) for side in sides for values in side))
  blocks: Dict[int, List[Tuple[int, int]]] = {}
  for key in sorted(keys):
    if not any(np.isnan(values[key]) for side in sides for values in side):
      blocks.setdefault(key[1], []).append(key)
  users = sorted(blocks)
  return users, [np.array([np.mean([values[key] for key in blocks[user] for values in side]) for user in users])
                 for side in sides]


def holm(p_values: npt.ArrayLike) -> np.ndarray:
  """Holm's step-down correction: p-values that can be compared with one level for all of them.

  Args:
    p_values: [m] of the comparisons that are looked at together.

  Returns:
    [m] corrected values, at most 1, in the order given.
  """
  p_values = np.asarray(p_values, np.float64)
  order = np.argsort(p_values, kind='stable')
  steps = p_values[order] * np.arange(len(p_values), 0, -1)
  corrected = np.empty_like(p_values)
  corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.)
  return corrected


def interval(values: npt.ArrayLike, level: float = 0.95) -> Interval:
  """Student's t interval of a mean, for the few values that seeds give.

  Args:
    values: [n], one per seed; for a difference between methods, pass the differences per seed.
    level: the confidence level.

  Returns:
    The mean and its limits.
  """
  values = np.asarray(values, np.float64)
  if values.ndim != 1 or not len(values):
    raise UserError('an interval needs at least one value.')
  mean = float(values.mean())
  if len(values) == 1:
    return Interval(mean, None, None, 1)
  half = stats.t.ppf(0.5 + level / 2, len(values) - 1) * stats.sem(values)
  return Interval(mean, float(mean - half), float(mean + half), len(values))
