"""What block t and the rows before it tell about risk and interest shift; nothing later is read."""
import dataclasses
from typing import Callable, Tuple

import numpy as np
import scipy.optimize
import scipy.special
import tensorflow as tf

from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr

# Entries of the score matrix held at once.
_CHUNK_FLOATS = 1 << 23
# Pairs whose ranks are measured, and users whose counts are fitted, at most.
MAX_PAIRS = 8192
MAX_USERS = 4096
# What a user is shown: the ranks whose risk the others' is compared with.
SHOWN = 20
# How much likelier a shift must be than none.
MIN_ODDS = 3.
# Bounds of the concentration: a share that means nothing, and one that never moves.
_CONCENTRATIONS = (.1, 1e4)


def pair_ranks(user_vectors, item_vectors, users: np.ndarray, items: np.ndarray,
               excluded: csr.Csr, scorer: Callable[..., ranking.Scorer] = ranking.DotProduct) -> np.ndarray:
  """Rank, from 1, of each pair's item among the items that are not excluded for its user.

  Args:
    user_vectors: [num_users, D] float32.
    item_vectors: [num_items, D] float32.
    users: [m] users of the pairs.
    items: [m] their items.
    excluded: [num_users, num_items] items that are not ranked.
    scorer: makes the scorer of the representations.

  Returns:
    [m] int64; of equal scores the lower item number comes first.
  """
  num_items = len(item_vectors)
  write = None if scorer is ranking.DotProduct else scorer(user_vectors, item_vectors).tile(0, num_items)
  result = np.zeros(len(users), np.int64)
  chunk = max(1, _CHUNK_FLOATS // max(num_items, 1))
  for start in range(0, len(users), chunk):
    rows = slice(start, start + chunk)
    if write is None:
      scores = tf.matmul(tf.gather(user_vectors, users[rows]), item_vectors, transpose_b=True).numpy()
    else:
      scores = np.empty((len(users[rows]), num_items), np.float32)
      write(users[rows], scores)
    own = scores[np.arange(len(scores)), items[rows]][:, None]
    taken = excluded.select(users[rows])
    scores[taken.rows(), taken.indices] = -np.inf
    above = scores > own
    above |= (scores == own) & (np.arange(num_items) < items[rows, None])
    result[rows] = 1 + above.sum(axis=1)
  return result


@dataclasses.dataclass(frozen=True)
class RiskCurve:
  """How likely an unobserved item is to be taken in a block, by its rank.

  Attributes:
    first: [n] int64, first rank of each bin.
    rate: [n] float64, chance that a user takes a given item of the bin; never rises with the rank.
    passed: [n] float64, share of the taken items that are ranked before the bin.
    uniform: mean rate over all ranks.
    length: number of ranks.
  """
  first: np.ndarray
  rate: np.ndarray
  passed: np.ndarray
  uniform: float
  length: int

  def first_rank(self, max_risk: float) -> int:
    """The first rank whose risk is at most `max_risk` times the mean risk of ranks 1 to `SHOWN`.

    It is the last bin's if there is none.
    """
    ends = np.minimum(np.append(self.first[1:], self.length + 1), SHOWN + 1)
    ranks = np.clip(ends - self.first, 0., None)
    low = np.flatnonzero(self.rate <= max_risk * (ranks @ self.rate) / ranks.sum())
    return int(self.first[low[0] if len(low) else -1])


def risk_curve(ranks: np.ndarray, num_users: int, num_items: int) -> RiskCurve:
  """Fits the take rate by rank.

  Bins grow by the square root of two. A bin's rate is its number of taken items over the number of
  items that were there to take, made non-increasing by isotonic regression.

  Args:
    ranks: [m] ranks of the taken items.
    num_users: users whose takings they are.
    num_items: length of a ranking.
  """
  import sklearn.isotonic  # pylint: disable=g-import-not-at-top
  steps = np.arange(2 * np.ceil(np.log2(max(num_items, 2))) + 1)
  edges = np.unique(np.round(np.sqrt(2.) ** steps).astype(np.int64))
  edges = np.append(edges[edges <= num_items], num_items + 1)
  taken, _ = np.histogram(ranks, edges)
  room = np.diff(edges) * max(num_users, 1)
  rate = sklearn.isotonic.IsotonicRegression(increasing=False).fit_transform(
      np.arange(len(taken)), taken / room, sample_weight=room)
  passed = np.cumsum(taken) - taken
  return RiskCurve(edges[:-1], rate, passed / max(taken.sum(), 1), taken.sum() / room.sum(),
                   num_items)


def sampled_pairs(rng: np.random.Generator, users: np.ndarray,
                  items: np.ndarray) -> Tuple[np.ndarray, np.ndarray, int]:
  """All pairs of as many random users as `MAX_PAIRS` allows.

  Returns:
    users [m], items [m] and how many users they are.
  """
  distinct, place, count = np.unique(users, return_inverse=True, return_counts=True)
  order = rng.permutation(len(distinct))
  chosen = order[np.cumsum(count[order]) <= MAX_PAIRS]
  if not len(chosen):
    chosen = order[:1]
  keep = np.isin(place, chosen)
  return users[keep], items[keep], len(chosen)


def smoothed_shares(counts: np.ndarray, total: np.ndarray) -> np.ndarray:
  """[n, K] long-run shares: one interaction of the average user is added to each row's counts.

  Args:
    counts: [n, K].
    total: [K] counts of all users together.
  """
  average = total + 1e-3
  counts = counts + average / average.sum()
  return counts / counts.sum(axis=1, keepdims=True)


def log_evidence(counts: np.ndarray, shares: np.ndarray, concentration: float) -> np.ndarray:
  """log of the Dirichlet-multinomial likelihood of [n, K] counts, without the count's coefficient.

  A user's shares in a block are drawn from a Dirichlet distribution around their long-run shares;
  a large concentration means that they stay there.
  """
  lgamma = scipy.special.gammaln
  alpha = concentration * shares
  total = counts.sum(axis=1)
  terms = (lgamma(alpha + counts) - lgamma(alpha)).sum(axis=1)
  return terms + lgamma(concentration) - lgamma(concentration + total)


def fit_concentration(counts: np.ndarray, shares: np.ndarray) -> float:
  """The concentration under which the counts [n, K] around the shares [n, K] are most likely."""
  def loss(log_concentration):
    return -log_evidence(counts, shares, np.exp(log_concentration)).sum()
  if not counts.sum():
    return _CONCENTRATIONS[1]
  optimum = scipy.optimize.minimize_scalar(
      loss, bounds=tuple(np.log(_CONCENTRATIONS)), method='bounded', options={'xatol': 1e-2})
  return float(np.exp(optimum.x))


def evidence_shift(counts: np.ndarray, shares: np.ndarray,
                   concentration: float) -> Tuple[np.ndarray, np.ndarray]:
  """How far each user's recent shares have moved, as far as their data supports it.

  Args:
    counts: [n, K] interactions in the block.
    shares: [n, K] long-run shares before it.
    concentration: fitted on the blocks before.

  Returns:
    shift [n, K], posterior mean of the recent shares minus the long-run shares, and real [n] bool,
    whether the counts are three times as likely with a moving interest as with a constant one.
  """
  total = counts.sum(axis=1, keepdims=True)
  shift = (counts - total * shares) / (total + concentration)
  still = (counts * np.log(np.maximum(shares, 1e-12))).sum(axis=1)
  return shift, log_evidence(counts, shares, concentration) - still > np.log(MIN_ODDS)
