"""How a block is evaluated: known users by the model, new ones apart, and what was left out."""
import dataclasses
from typing import Optional, Sequence

import numpy as np

from graphsane_tf.evaluation import metrics
from graphsane_tf.evaluation import ranking


@dataclasses.dataclass(frozen=True)
class EvaluationResult:
  """The result of one evaluation.

  Attributes:
    metrics: means over the known users with held-out items, e.g. {'recall@20': 0.1}; {} if none.
    new_users: the same for users the model has never seen, who all get the most popular items; {}
      if there is none.
    coverage: users, users_known (numbers of users with held-out items), interactions,
      interactions_known_users (numbers of held-out interactions), and items_known (the share of the
      held-out interactions whose item the model knows; 0 if there is no interaction).
    per_user: 'user' [n] the numbers of the known users with held-out items, in ascending order, and
      [n] arrays of every metric.
  """
  metrics: dict[str, float]
  new_users: dict[str, float]
  coverage: dict[str, float]
  per_user: dict[str, np.ndarray]


def evaluate_block(user_vectors: np.ndarray, item_vectors: np.ndarray,
                   seen: tuple[np.ndarray, np.ndarray], held_user: np.ndarray,
                   held_item: np.ndarray, popularity: np.ndarray,
                   cutoffs: Sequence[int] = metrics.CUTOFFS, map_denominator: str = 'relevant',
                   ndcg_ideal: str = 'k', user_chunk: Optional[int] = None,
                   item_tile: int = 65_536,
                   lists: Optional[ranking.Lists] = None) -> EvaluationResult:
  """Ranks all known items for every user with held-out items and measures the lists.

  Seen items never enter a list. Held-out items that the model does not know stay in the
  denominators. Deterministic: nothing is sampled.

  Args:
    user_vectors: [num_users, d] of the known users.
    item_vectors: [num_items, d] of the known items.
    seen: CSR pair (indptr [num_users + 1], indices) of the items seen so far.
    held_user: [m] int, users of the held-out interactions; num_users and above are new.
    held_item: [m] int, their items; num_items and above are unknown. Pairs are unique.
    popularity: [num_items] training counts, which rank the items for new users.
    cutoffs: the values of k.
    map_denominator: 'relevant' or 'truncated', see `metrics`.
    ndcg_ideal: 'k' or 'relevant', see `metrics`.
    user_chunk: users ranked at a time; None fits the items.
    item_tile: items scored at a time.
    lists: lists of the same vectors that leave out nothing but seen items; they save ranking anew.

  Returns:
    The metrics of known and of new users, with the coverage.
  """
  held_user, held_item = np.asarray(held_user), np.asarray(held_item)
  num_users, num_items, depth = len(user_vectors), len(item_vectors), max(cutoffs)
  users, held_out = group(held_user, held_item)
  known = int(np.searchsorted(users, num_users))  # Users are sorted, so the known ones come first.
  indptr, indices = held_out
  cut = indptr[known]

  top_ids, listed = np.full((known, depth), -1, np.int32), np.zeros(known, bool)
  if lists is not None:
    top_ids, listed = ranking.shortened(lists, users[:known], seen, depth, num_items)
  top_ids[~listed], _ = ranking.top_k(
      user_vectors, item_vectors, users[:known][~listed], seen, depth, user_chunk, item_tile)
  measure = {'cutoffs': cutoffs, 'map_denominator': map_denominator, 'ndcg_ideal': ndcg_ideal}
  values = metrics.per_user(top_ids, (indptr[:known + 1], indices[:cut]), **measure)

  most_popular = np.full(depth, -1)
  order = np.argsort(-np.asarray(popularity, np.float64), kind='stable')[:depth]
  most_popular[:len(order)] = order
  new_users = metrics.evaluate(
      np.broadcast_to(most_popular, (len(users) - known, depth)),
      (indptr[known:] - cut, indices[cut:]), **measure)
  coverage = {
      'users': len(users), 'users_known': known, 'interactions': len(held_user),
      'interactions_known_users': int(cut),
      'items_known': float((held_item < num_items).mean()) if len(held_item) else 0.0}
  return EvaluationResult(
      metrics.mean(values), new_users, coverage, {'user': users[:known], **values})


def group(user: np.ndarray, item: np.ndarray):
  """Groups pairs by user.

  Args:
    user: [m].
    item: [m].

  Returns:
    users [n], the distinct users in ascending order, and the CSR pair of their items.
  """
  order = np.argsort(user, kind='stable')
  users, counts = np.unique(user, return_counts=True)
  return users, (np.concatenate([[0], np.cumsum(counts)]), item[order])
