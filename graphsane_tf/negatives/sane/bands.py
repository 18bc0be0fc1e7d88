"""Where the reservoirs begin: at a fixed rank, or at one learned from each block."""
from typing import Any, Callable, Dict

import tensorflow as tf

from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr
from graphsane_tf.negatives.ranked import start_rank
from graphsane_tf.negatives.sane import evidence
from graphsane_tf.random import host_generator

# A learned band begins in this share of the catalogue, or where a fixed one does.
_DEEPEST_SHARE = .1


class FixedBand(tf.Module):
  """Ranks from `start_rank` on; a small catalogue moves it up.

  Attributes:
    size: ranks in the band, |Q|.
  """

  def __init__(self, config, context, seed):
    """See `NegativeSampler`."""
    super().__init__()
    self._options = config.sane
    self._context = context
    self._seed = seed
    self._fixed = start_rank(config.sane, context.num_items)
    self.size = max(min(config.sane.size, context.num_items - self._before()), 1)

  def _before(self) -> int:
    """Ranks that are certain to be left out."""
    return self._fixed - 1

  @property
  def first_rank(self) -> int:
    """First rank of the reservoirs, from 1."""
    return self._fixed

  def study(self, before, scorer: Callable[..., ranking.Scorer] = ranking.DotProduct) -> None:
    """See `NegativeSampler.study`; `scorer` makes the scorer of what `before` gives."""

  def report(self) -> Dict[str, Any]:
    return {'first_rank': self.first_rank, 'size': self.size}


class LearnedBand(FixedBand):
  """Begins where the risk has fallen to `max_risk` times that of ranks 1 to 20.

  The risk of a rank is the rate at which the block's own items are found there by the model before the
  block.

  Attributes:
    first: int32 variable, the first rank.
    risk: the `evidence.RiskCurve`; None until `study`.
  """

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    self.first = tf.Variable(self._fixed, trainable=False, name='first_rank')
    self.risk = None

  def _before(self):
    return 0

  @property
  def first_rank(self):
    return int(self.first.numpy())

  def study(self, before, scorer=ranking.DotProduct):
    """Learns the band from the old model's ranks of the block's items among those that were not taken before."""
    context = self._context
    user_vectors, item_vectors = before()
    num_users, num_items = len(user_vectors), len(item_vectors)
    users, items = context.block.rows(), context.block.indices
    known = (users < num_users) & (items < num_items) & ~context.before.contains(users, items)
    if not known.any():
      return
    users, items, counted = evidence.sampled_pairs(
        host_generator(*self._seed, name='risk'), users[known], items[known])
    # Ranks are counted among the items that a reservoir may hold.
    left_out = context.before.cut(num_users, num_items) if self._options.exclude_history else csr.from_pairs(
        users[:0], items[:0], num_users, num_items)
    ranks = evidence.pair_ranks(user_vectors, item_vectors, users, items, left_out, scorer)
    self.risk = evidence.risk_curve(ranks, counted, num_items)
    first = self.risk.first_rank(self._options.max_risk)
    # A risk that does not fall earlier than that belongs to a model that knows nothing of the block.
    if first <= max(_DEEPEST_SHARE * context.num_items, 1.):
      self.first.assign(max(1, min(first, context.num_items - self.size + 1)))

  def report(self):
    facts = super().report()
    if self.risk is not None:
      facts['risk'] = {
          'first_rank': self.risk.first.tolist(), 'rate': self.risk.rate.tolist(),
          'passed': self.risk.passed.tolist(), 'uniform': self.risk.uniform}
    return facts


BANDS = {'fixed': FixedBand, 'learned': LearnedBand}
