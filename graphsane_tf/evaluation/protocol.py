"""How a block is evaluated: known users by the model, new ones apart, and what was left out."""
import dataclasses
from typing import Optional, Tuple

import numpy as np

from graphsane_tf.evaluation import metrics
from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr


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


def evaluate_block(scorer: ranking.Scorer, seen: csr.Csr, held_user: np.ndarray, held_item: np.ndarray,
                   popularity: np.ndarray, options: metrics.Options = metrics.Options(),
                   lists: Optional[ranking.Lists] = None) -> EvaluationResult:
  """Ranks all known items for every user with held-out items and measures the lists.

  Seen items never enter a list. Held-out items that the model does not know stay in the
  denominators. Deterministic: nothing is sampled.

  Args:
    scorer: the model.
    seen: [num_users or more, ...] items seen so far.
    held_user: [m] int, users of the held-out interactions; num_users and above are new.
    held_item: [m] int, their items; num_items and above are unknown. Pairs are unique.
    popularity: [num_items] training counts, which rank the items for new users.
    options: what is measured.
    lists: lists of the same scores that leave out nothing but seen items; they save ranking anew.

  Returns:
    The metrics of known and of new users, with the coverage.
  """
  held_user, held_item = np.asarray(held_user), np.asarray(held_item)
  users, held_out = group(held_user, held_item)
  known = int(np.searchsorted(users, scorer.num_users))  # Users are sorted: the known ones come first.
  rows = np.arange(len(users))
  depth = options.depth

  top_ids, listed = np.full((known, depth), -1, np.int32), np.zeros(known, bool)
  if lists is not None:
    top_ids, listed = ranking.shortened(lists, users[:known], seen, depth, scorer.num_items)
  top_ids[~listed], _ = ranking.top_k(scorer, users[:known][~listed], seen, depth)
  values = metrics.per_user(top_ids, held_out.select(rows[:known]), options)

  most_popular = np.full(depth, -1)
  order = np.argsort(-np.asarray(popularity, np.float64), kind='stable')[:depth]
  most_popular[:len(order)] = order
  new_users = metrics.evaluate(np.broadcast_to(most_popular, (len(users) - known, depth)),
                               held_out.select(rows[known:]), options)
  coverage = {
      'users': len(users), 'users_known': known, 'interactions': len(held_user),
      'interactions_known_users': int(held_out.indptr[known]),
      'items_known': float((held_item < scorer.num_items).mean()) if len(held_item) else 0.0}
  return EvaluationResult(
      metrics.mean(values), new_users, coverage, {'user': users[:known], **values})


def group(user: np.ndarray, item: np.ndarray) -> Tuple[np.ndarray, csr.Csr]:
  """Groups pairs user [m], item [m] by user.

  Returns:
    users [n], the distinct users in ascending order, and the [n, ...] table of their items.
  """
  order = np.argsort(user, kind='stable')
  users, counts = np.unique(user, return_counts=True)
  indptr = np.concatenate([[0], np.cumsum(counts)])
  return users, csr.Csr(indptr, item[order], int(item.max(initial=-1)) + 1)
