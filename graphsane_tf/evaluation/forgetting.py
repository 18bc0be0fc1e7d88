"""What a model keeps of earlier blocks, and what it brings to later ones.

R[t][s] is the Recall@20 of block t's model on the test rows of block s. The task of a column is the
same for every model that can do it: the users and items known at block s are ranked, and what users
had seen by block s is masked. A model from before block s (t < s) ranks the users and items it knows.

With T the last finished block:

    average forgetting   1/T sum_{s < T} ( max_{s <= t < T} R[t][s] - R[T][s] )
    backward transfer    1/T sum_{s < T} ( R[T][s] - R[s][s] )
    forward transfer     1/T sum_{1 <= s <= T} ( R[s - 1][s] - b[s] )

(Chaudhry et al. 2018, Lopez-Paz and Ranzato 2017), b[s] being what a random ranking would reach. The
test rows of block s are the second half of block s + 1's training rows: a model t > s has been
trained on them. R[s][s] is thus a forecast and R[t][s], t > s, a memory; backward transfer is large
where models learn their rows well, and forgetting says how much later blocks have worn away.
"""
from typing import Any, Dict, Optional

import numpy as np

from graphsane_tf.graph import csr


def random_recall(seen: csr.Csr, held_user: np.ndarray, held_item: np.ndarray, num_users: int,
                  num_items: int, k: int) -> float:
  """Expected Recall@k of a random order of each user's unseen items; mean over users with any held.

  Args:
    seen: [num_users or more, ...] seen items; those from num_items on are not ranked.
    held_user: [m] users of the held-out interactions; those from num_users on are left out.
    held_item: [m] their items; those from num_items on cannot be found but count.
    num_users: users known to the model.
    num_items: items that are ranked.
    k: length of the lists.
  """
  known = held_user < num_users
  held_user, held_item = held_user[known], held_item[known]
  held = np.bincount(held_user, minlength=num_users)
  reachable = np.bincount(held_user[held_item < num_items], minlength=num_users)
  row = np.repeat(np.arange(num_users), seen.degree[:num_users])
  passed = np.bincount(row[seen.indices[:len(row)] < num_items], minlength=num_users)
  users = held > 0
  if not users.any():
    return 0.
  chance = np.minimum(k / np.maximum(num_items - passed[users], 1), 1.)
  return float((chance * reachable[users] / held[users]).mean())


def summarise(recall: np.ndarray, chance: np.ndarray) -> Dict[str, Optional[float]]:
  """The three figures of the module's docstring.

  Args:
    recall: [T + 1, T + 1] or wider, R; NaN where there is none (block not run, nobody to rank).
    chance: same shape, the recall of a random ranking.

  Returns:
    average_forgetting, backward_transfer and forward_transfer; None where no block counts.
  """
  finished = np.flatnonzero(np.isfinite(recall).any(axis=1))
  last = int(finished[-1]) if len(finished) else 0
  forgetting, backward, forward = [], [], []
  for s in range(last):
    column = recall[s:last, s]
    if np.isfinite(column).any():
      forgetting.append(np.nanmax(column) - recall[last, s])
    backward.append(recall[last, s] - recall[s, s])
    forward.append(recall[s, s + 1] - chance[s, s + 1])
  def mean(values) -> Optional[float]:
    values = [value for value in values if np.isfinite(value)]
    return float(np.mean(values)) if values else None
  return {'average_forgetting': mean(forgetting), 'backward_transfer': mean(backward),
          'forward_transfer': mean(forward)}


def report(entries: Dict[int, Dict[str, Any]], num_blocks: int, metric: str) -> Dict[str, Any]:
  """What results.json holds under 'forgetting'.

  Args:
    entries: number of each finished block to {'recall': [num_blocks], 'chance': [num_blocks]}, with
      None for a missing value.
    num_blocks: how many blocks there are.
    metric: name of the metric.
  """
  empty = [None] * num_blocks
  def matrix(name):
    return [list(entries[t][name]) if t in entries else empty for t in range(num_blocks)]
  recall, chance = matrix('recall'), matrix('chance')
  return {'metric': metric, 'matrix': recall, 'random': chance,
          **summarise(np.array(recall, float), np.array(chance, float))}
