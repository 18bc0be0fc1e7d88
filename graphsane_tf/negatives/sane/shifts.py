"""What the interest shift of a user is, and the prior that follows from it."""
from typing import Any, Dict, Tuple

import numpy as np
import tensorflow as tf

from graphsane_tf.negatives.sane import evidence, posterior
from graphsane_tf.negatives.sane.interests import Categories
from graphsane_tf.random import host_generator


class PrintedShift(tf.Module):
  """Equations 5 and 6: the difference of the histograms of blocks t and t - 1, whatever its evidence.

  Attributes:
    earlier: [num_users, num_items] table of the interactions that the block's are compared with.
    tells: whether it is known who has really moved.
  """

  tells = False

  def __init__(self, config, context, seed, interests: Categories):
    """See `NegativeSampler`; `interests` are the categories that histograms are made in."""
    super().__init__()
    self._options = config.sane
    self._context = context
    self._seed = seed
    self._interests = interests
    self.earlier = self._earlier(context)

  def _earlier(self, context):
    return context.previous

  def fit(self) -> None:
    """Learns what it needs, once the block's first categories are there."""

  def prior(self, current: np.ndarray, previous: np.ndarray, counts: np.ndarray,
            size: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The shift and the prior of some users.

    Args:
      current: [n, K] interactions in the block.
      previous: [n, K] interactions in `earlier`.
      counts: [n, K] items of the reservoirs by category, c.
      size: [n, 1] items of the reservoirs, |Q| where they are full.

    Returns:
      shift [n, K] and alpha [n, K].
    """
    del counts
    options = self._options
    shift = posterior.interest_shift(current, previous)
    return shift, posterior.prior(shift, options.strength, size, options.temperature,
                                  options.prior_sign)

  def item_theta(self, theta: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[n, K] weight of an item of each category, from the posterior means and c."""
    del counts
    return theta

  def report(self) -> Dict[str, Any]:
    return {}


class EvidenceShift(PrintedShift):
  """A posterior mean, and only a shift that is likelier than none counts.

  alpha_k = lambda c_k tilt_k, with tilt_k proportional to exp(-shift_k / T) and mean 1 over the
  reservoir, and an item's probability is its category's theta over the category's c: without a shift all
  items of the reservoir are equally likely.

  Attributes:
    concentration: float32 variable, how closely users keep to their long-run shares.
  """

  tells = True

  def __init__(self, config, context, seed, interests):
    super().__init__(config, context, seed, interests)
    self._taken_before = np.bincount(self.earlier.indices, minlength=context.num_items)
    self.concentration = tf.Variable(0., trainable=False, name='concentration')

  def _earlier(self, context):
    return context.before

  def _all_counts(self, rows: slice) -> np.ndarray:
    """[num_users, K] interactions of every user in each category, in some rows of the history."""
    users, items = self._context.rows(rows)
    return Categories.histogram(self._interests, users, items, self._context.num_users)

  def fit(self):
    """Fits the concentration to the rows just before the block."""
    stop = self._context.num_history_rows
    cut = max(stop - len(self._context.block.indices), stop // 2)
    recent, long_ago = self._all_counts(slice(cut, stop)), self._all_counts(slice(0, cut))
    both = np.flatnonzero((recent.sum(axis=1) > 0) & (long_ago.sum(axis=1) > 0))
    both = host_generator(*self._seed, name='concentration').permutation(both)[:evidence.MAX_USERS]
    shares_before = evidence.smoothed_shares(long_ago[both], long_ago.sum(axis=0))
    self.concentration.assign(evidence.fit_concentration(recent[both], shares_before))

  def prior(self, current, previous, counts, size):
    options = self._options
    total = np.bincount(self._interests.category.numpy(), self._taken_before, current.shape[1])
    long_run = evidence.smoothed_shares(previous, total)
    shift, real = evidence.evidence_shift(current, long_run, float(self.concentration.numpy()))
    real &= (current.sum(axis=1) > 0) & (previous.sum(axis=1) > 0)
    shift = np.where(real[:, None], shift, 0.).astype(np.float32)
    exponent = np.where(counts > 0., options.prior_sign * shift / options.temperature, -np.inf)
    # The largest is 1: however cold, nothing overflows.
    tilt = np.exp(exponent - np.maximum(exponent.max(axis=1, keepdims=True), np.finfo(np.float32).min))
    return shift, posterior.strengths(options.strength, size) * posterior.shares(counts * tilt)

  def item_theta(self, theta, counts):
    return theta / np.where(counts > 0., counts, np.inf)

  def report(self):
    return {'concentration': float(self.concentration.numpy())}


SHIFTS = {'printed': PrintedShift, 'evidence': EvidenceShift}
