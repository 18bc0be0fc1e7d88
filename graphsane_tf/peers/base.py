"""What a peer is: a simple model that is fitted at once, to all rows so far."""
import abc
from typing import Any, Callable, Dict, List, Sequence, Union

import numpy as np
import scipy.sparse

from graphsane_tf.evaluation import ranking

Weights = Union[np.ndarray, scipy.sparse.csr_matrix]


class Peer(abc.ABC):
  """A model without gradient steps, refitted on all rows of every block.

  To add one: subclass, implement `fit`, name its few settings in `settings`, and register it
  (`graphsane_tf.registry`). It is ranked and measured like every other model, with the settings that rank
  the validation rows of the blocks so far best (`best`).
  """

  # Whether there is anything to fit: not for 'none', where the graph model is trained.
  fitted = True
  # Values to choose from for each setting; the first of each is the default.
  settings: Dict[str, List[Any]] = {}

  @abc.abstractmethod
  def fit(self, context, **settings) -> ranking.Scorer:
    """A model of all rows of a `BlockContext`, with one value of each setting."""


class NoPeer(Peer):
  """No peer: the graph model is trained."""

  fitted = False

  def fit(self, context, **settings):
    return ranking.DotProduct(np.zeros((context.num_users, 1)), np.zeros((context.num_items, 1)))


def choices(settings: Dict[str, List[Any]]) -> List[Dict[str, Any]]:
  """Every combination of settings."""
  combinations: List[Dict[str, Any]] = [{}]
  for name, values in settings.items():
    combinations = [{**chosen, name: value} for chosen in combinations for value in values]
  return combinations


def best(tried: Sequence[Sequence[float]]) -> int:
  """The place of the settings that were best on average over blocks, each block on the scale of its best.

  Args:
    tried: [num_blocks][num_choices], how well each of the settings ranked the block's validation rows.
  """
  blocks = np.array(tried, float)
  return int(np.argmax((blocks / np.maximum(blocks.max(axis=1, keepdims=True), 1e-12)).mean(axis=0)))


def profiles(context, half_age: float = 0.) -> scipy.sparse.csr_matrix:
  """[num_users, num_items] float32 what each user has taken, with 1 / (1 + age / half_age).

  Args:
    context: what the model knows.
    half_age: what was taken this share of all rows ago counts half as much as what is taken now; 0 weighs all equally.
  """
  users, items = context.rows(slice(0, context.num_rows))
  age = np.arange(context.num_rows)[::-1] / max(context.num_rows, 1)
  weight = 1 / (1 + age / half_age) if half_age else np.ones(context.num_rows)
  return scipy.sparse.csr_matrix((weight.astype(np.float32), (users, items)),
                                 shape=(context.num_users, context.num_items))


class ItemWeights(ranking.Scorer):
  """Scores of profiles times item-item weights."""

  def __init__(self, profile: scipy.sparse.csr_matrix, weights: Weights):
    """Takes [num_users, num_items] profiles and [num_items, num_items] weights, dense or sparse."""
    self.profile = profile
    self.weights = weights
    self.num_users, self.num_items = profile.shape

  def tile(self, start: int, stop: int) -> Callable[[np.ndarray, np.ndarray], None]:
    whole = start == 0 and stop == self.num_items
    weights = self.weights if whole else self.weights[:, start:stop]

    def write(users, out):
      scores = self.profile[users] @ weights
      out[:] = scores.toarray() if scipy.sparse.issparse(scores) else scores

    return write
