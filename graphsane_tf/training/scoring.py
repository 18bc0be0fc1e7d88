"""How a block's representations rank: by dot product, or joined with a memory."""
import dataclasses
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np
import scipy.sparse

from graphsane_tf import memory
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.evaluation import ranking
from graphsane_tf.memory import mixing, statistics
from graphsane_tf.memory.offsets import PairOffsets
from graphsane_tf.random import host_generator

Evidence = Dict[mixing.Mixture, float]


class Scoring:
  """Makes a scorer of final representations.

  Attributes:
    context: the block whose rows the memory has seen.
    recollection: what the memory says; None without one.
    mixture: how much each part counts; None without a memory.
  """

  def __init__(self, config, context: BlockContext, evidences: Sequence[Evidence] = (),
               before: Optional['Scoring'] = None, weights: Optional[scipy.sparse.csr_matrix] = None):
    """Brings the memory up to date with a block's rows.

    Args:
      config: the whole configuration.
      context: the block.
      evidences: what the blocks up to this one have shown about mixtures.
      before: of the block before, whose statistics need not be counted again.
      weights: item-item weights that are known already, of the first items; None computes them.
    """
    self.context = context
    self.recollection: Optional[mixing.Recollection] = None
    self.mixture: Optional[mixing.Mixture] = None
    self._profile: Optional[scipy.sparse.csr_matrix] = None
    self._half_age = 0.
    self._joint_ranks = config.memory_options.joint_ranks
    kind = memory.REGISTRY[config.memory](config)
    if not kind.counts:
      return
    start = statistics.empty()
    if before is not None and before.recollection is not None and before.context.num_rows <= context.num_rows:
      start = before.recollection.statistics
    counted = statistics.added(start, context)
    if weights is not None:
      # Items that came later have none.
      weights = scipy.sparse.csr_matrix(weights, copy=True)
      weights.resize(context.num_items, context.num_items)
    options = config.memory_options
    self.recollection = mixing.Recollection(counted, kind.weights(counted) if weights is None else weights,
                                            tuple(options.half_ages), options.taste, options.taste_half_age)
    self._evidences = list(evidences)
    self.learn({})

  def learn(self, evidence: Evidence) -> None:
    """Chooses the mixture anew, with evidence that has come since: of validation rows, by the trained model."""
    if self.recollection is not None:
      self.mixture = mixing.choose([*self._evidences, evidence], self.recollection.weights is not None,
                                   self.recollection.half_ages)

  @property
  def of_samplers(self) -> Callable[..., ranking.DotProduct]:
    """Makes the scorer by which samplers rank: this, or dot products alone."""
    return self if self.recollection is not None and self._joint_ranks else ranking.DotProduct

  def __call__(self, user_vectors, item_vectors) -> ranking.DotProduct:
    """The scorer of final representations [num_users, D], [num_items, D] of the block."""
    if self.mixture is None:
      return ranking.DotProduct(user_vectors, item_vectors)
    return self._mixed(user_vectors, item_vectors, self.mixture)

  def _mixed(self, user_vectors, item_vectors, mixture: mixing.Mixture) -> mixing.Mixed:
    """The same with another mixture."""
    assert self.recollection is not None  # There is no mixture without it.
    return mixing.mix(mixture, user_vectors, item_vectors, self.recollection,
                      self._profile_of(mixture) if mixture.memory else None)

  def _profile_of(self, mixture: mixing.Mixture) -> Optional[scipy.sparse.csr_matrix]:
    """The memory's profiles with a mixture's half age, kept for the next call; None without item-item weights."""
    assert self.recollection is not None  # There is no mixture without it.
    if self.recollection.weights is None:
      return None
    if self._profile is None or self._half_age != mixture.half_age:
      self._profile, self._half_age = self.recollection.profile(mixture.half_age), mixture.half_age
    return self._profile

  def parts(self, user_vectors, item_vectors) -> Dict[str, ranking.DotProduct]:
    """Scorers of the graph model alone and of the memory alone, by name; {} without a memory."""
    if self.recollection is None:
      return {}
    named = {'graph': mixing.GRAPH_ALONE}
    if self.recollection.weights is not None:
      assert self.mixture is not None  # There is one with every memory.
      named['memory'] = dataclasses.replace(mixing.MEMORY_ALONE, half_age=self.mixture.half_age)
    return {name: self._mixed(user_vectors, item_vectors, mixture) for name, mixture in named.items()}

  def offsets(self, user_vectors, item_vectors, context: BlockContext, share: float) -> Optional[PairOffsets]:
    """What the memory adds to the scores of the next block's pairs while that is trained.

    Its own rows are not in it: with them the memory would know the answers.

    Args:
      user_vectors: [num_users, D] of this block's model.
      item_vectors: [num_items, D].
      context: the next block.
      share: standard deviation of a user's offsets over that of their dot products.

    Returns:
      None if the memory has no item-item weights.
    """
    if self.recollection is None or self.recollection.weights is None or self.mixture is None:
      return None
    deviation = mixing.user_deviation(*(np.asarray(part, np.float32) for part in (user_vectors, item_vectors)))
    profile = mixing.scaled(self._profile_of(self.mixture), (share * deviation).astype(np.float32))
    return PairOffsets(profile, self.recollection.weights, context.num_users, context.num_items)

  def evidence(self, user_vectors, item_vectors, users: np.ndarray, items: np.ndarray, seed) -> Evidence:
    """What later rows say about mixtures, by this block's state.

    These are the next block's own rows when that is trained (a mixture that is right for the next hour may be wrong for
    the next week, so they should be as far ahead as what the model is for), and validation rows.

    Args:
      user_vectors: [num_users, D] of this block's model.
      item_vectors: [num_items, D].
      users: [n] users of the rows.
      items: [n] their items.
      seed: counter of the draw of users.

    Returns:
      Recall of each mixture; {} without a memory.
    """
    if self.recollection is None:
      return {}
    return mixing.evidence(user_vectors, item_vectors, self.recollection, self.context.history, users, items,
                           host_generator(*seed, name='mixing'))


def to_json(evidence: Evidence) -> List[Dict[str, Any]]:
  """Evidence as JSON has it."""
  return [{**dataclasses.asdict(mixture), 'recall': recall} for mixture, recall in evidence.items()]


def from_json(saved: Sequence[Dict[str, Any]]) -> Evidence:
  """What `to_json` was given."""
  return {mixing.Mixture(**{name: value for name, value in one.items() if name != 'recall'}): one['recall']
          for one in saved}
