"""Recall, precision, MAP and NDCG of ranked lists.

With I the user's held-out items, hit_r = 1 when the item at rank r is one of them (else 0), and
Prec(r) = (hit_1 + ... + hit_r) / r:

  Recall@k    = sum_{r<=k} hit_r / |I|
  Precision@k = sum_{r<=k} hit_r / k
  AP@k        = sum_{r<=k} hit_r Prec(r) / |I|          (MAP@k is its mean over users)
  NDCG@k      = sum_{r<=k} hit_r / log2(1 + r)  /  sum_{r<=k} 1 / log2(1 + r)

Two published variants: `Options(map_denominator='truncated')` divides AP@k by min(|I|, k), and
`ndcg_ideal='relevant'` takes the ideal of NDCG@k over min(|I|, k) ranks, the best that can be had.

All held-out items count in |I|, also those that no list can contain because the model has never
seen them. Means are over the users with at least one held-out item.
"""
import dataclasses
from typing import Sequence

import numpy as np

from graphsane_tf.errors import UserError
from graphsane_tf.graph import csr

METRICS = ('recall', 'precision', 'map', 'ndcg')


@dataclasses.dataclass(frozen=True)
class Options:
  """How lists are measured.

  Attributes:
    cutoffs: the values of k.
    map_denominator: 'relevant' or 'truncated'.
    ndcg_ideal: 'k' or 'relevant'.
  """
  cutoffs: Sequence[int] = (5, 10, 15, 20)
  map_denominator: str = 'relevant'
  ndcg_ideal: str = 'k'

  def __post_init__(self):
    if self.map_denominator not in ('relevant', 'truncated'):
      raise UserError(f"map_denominator {self.map_denominator!r}: choose 'relevant' or 'truncated'.")
    if self.ndcg_ideal not in ('k', 'relevant'):
      raise UserError(f"ndcg_ideal {self.ndcg_ideal!r}: choose 'k' or 'relevant'.")
    if not self.cutoffs or min(self.cutoffs) < 1:
      raise UserError(f'cutoffs {tuple(self.cutoffs)}: give at least one, and none below 1.')

  @property
  def depth(self) -> int:
    """Length of the lists that are needed."""
    return max(self.cutoffs)


def per_user(top_ids: np.ndarray, held_out: csr.Csr, options: Options = Options()) -> dict[str, np.ndarray]:
  """Every metric of every user.

  Args:
    top_ids: [n, k_max] int, ranked items of each user; -1 marks an empty slot.
    held_out: [n, ...] held-out items of the same users, in any order.
    options: which metrics; no cut-off is above k_max.

  Returns:
    [n] float64 for each of 'recall@5', 'precision@5', 'map@5', 'ndcg@5', ...; NaN for a user
    without held-out items.
  """
  top_ids = np.asarray(top_ids)
  if options.depth > top_ids.shape[1]:
    raise UserError(f'cutoffs {tuple(options.cutoffs)} must lie between 1 and {top_ids.shape[1]}, the '
                    'length of the ranked lists.')
  indptr, indices = (np.asarray(part, np.int64) for part in (held_out.indptr, held_out.indices))
  relevant = np.diff(indptr)
  count = np.where(relevant > 0, relevant, np.nan)

  hit = _hits(top_ids, indptr, indices)
  rank = np.arange(1, hit.shape[1] + 1)
  num_hits = np.cumsum(hit, axis=1)
  precision_sum = np.cumsum(hit * num_hits / rank, axis=1)
  gain = np.cumsum(hit / np.log2(1 + rank), axis=1)
  ideal = np.cumsum(1 / np.log2(1 + rank))

  values = {}
  for k in options.cutoffs:
    reachable = np.clip(relevant, 1, k)
    values[f'recall@{k}'] = num_hits[:, k - 1] / count
    values[f'precision@{k}'] = np.where(relevant > 0, num_hits[:, k - 1] / k, np.nan)
    values[f'map@{k}'] = precision_sum[:, k - 1] / (
        count if options.map_denominator == 'relevant' else np.minimum(count, k))
    values[f'ndcg@{k}'] = np.where(relevant > 0, gain[:, k - 1], np.nan) / (
        ideal[k - 1] if options.ndcg_ideal == 'k' else ideal[reachable - 1])
  return values


def evaluate(top_ids: np.ndarray, held_out: csr.Csr, options: Options = Options()) -> dict[str, float]:
  """The means of `per_user` over the users with held-out items; {} when there is none."""
  return mean(per_user(top_ids, held_out, options))


def mean(values: dict[str, np.ndarray]) -> dict[str, float]:
  """Means of per-user metrics [n], leaving NaN out; {} when nothing is left."""
  return {name: float(np.nanmean(value)) for name, value in values.items()
          if np.isfinite(value).any()}


def _hits(top_ids: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
  """Looks the (user, item) pairs of the lists up among the held-out ones.

  Args:
    top_ids: [n, k_max].
    indptr: [n + 1].
    indices: [num_pairs].

  Returns:
    [n, k_max] bool.
  """
  if not len(indices) or not top_ids.size:
    return np.zeros(top_ids.shape, bool)
  span = max(int(indices.max()), int(top_ids.max())) + 1
  rows = np.arange(len(top_ids), dtype=np.int64)
  known = np.sort(np.repeat(rows, np.diff(indptr)) * span + indices)
  asked = rows[:, None] * span + top_ids
  place = np.minimum(np.searchsorted(known, asked), len(known) - 1)
  return (known[place] == asked) & (top_ids >= 0)
