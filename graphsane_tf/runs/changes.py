"""What has changed in the world since the last version: users, items, popularity, interests, scores."""
from typing import Any, Dict, Optional

import numpy as np

from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.evaluation import ranking
from graphsane_tf.negatives.sane import evidence
from graphsane_tf.negatives.sane.interests import count

# Users whose lists tell how scores are distributed.
_SAMPLE = 1000
_QUANTILES = (.1, .5, .9)
_DEPTH = 20


def facts(log: Interactions, context: BlockContext, scorer: ranking.Scorer,
          before: Optional[ranking.Scorer]) -> Dict[str, Any]:
  """The part 'drift' of a manifest.

  Args:
    log: the log.
    context: the block of the new version.
    scorer: how it ranks.
    before: how the version before ranks; None for the first.
  """
  found: Dict[str, Any] = {
      'new_users': context.num_users - context.num_old_users, 'new_items': context.num_items - context.num_old_items,
      'popularity_change': None, 'shifted_users': None, 'compared_users': None,
      'scores': {'after': _scores(scorer, context)}}
  if before is not None:
    found['popularity_change'] = popularity_change(context)
    found['scores']['before'] = _scores(before, context)
    if context.item_category is not None and log.category_names is not None:
      found['shifted_users'], found['compared_users'] = shifted_users(context, len(log.category_names))
  return found


def popularity_change(context: BlockContext) -> float:
  """Half the summed differences of the items' shares in the block and in as many rows before it: 0 to 1."""
  start, stop = context.own.start, context.own.stop
  now, before = (np.bincount(context.log_items[rows], minlength=context.num_items)
                 for rows in (slice(start, stop), slice(max(2 * start - stop, 0), start)))
  return float(np.abs(now / max(now.sum(), 1) - before / max(before.sum(), 1)).sum() / 2)


def shifted_users(context: BlockContext, num_categories: int):
  """How many users the block shows to have other interests than before, and how many could be compared.

  A user's counts by category must be three times as likely with moving interests as with constant ones (see
  `negatives.sane.evidence`).
  """
  def counts(rows: slice) -> np.ndarray:
    users, items = context.rows(rows)
    assert context.item_category is not None  # The caller has asked.
    return count(users.astype(np.int64), context.item_category[items], None, context.num_users, num_categories)

  start = context.own.start
  middle = max(start - context.block_rows, start // 2)
  long_ago, recent, own = counts(slice(0, middle)), counts(slice(middle, start)), counts(context.own)
  both = np.flatnonzero((long_ago.sum(axis=1) > 0) & (recent.sum(axis=1) > 0))[:evidence.MAX_USERS]
  concentration = evidence.fit_concentration(
      recent[both], evidence.smoothed_shares(long_ago[both], long_ago.sum(axis=0)))
  before = long_ago + recent
  compared = (own.sum(axis=1) > 0) & (before.sum(axis=1) > 0)
  if not compared.any():
    return 0, 0
  _, real = evidence.evidence_shift(
      own[compared], evidence.smoothed_shares(before[compared], before.sum(axis=0)), concentration)
  return int(real.sum()), int(compared.sum())


def _scores(scorer: ranking.Scorer, context: BlockContext) -> Dict[str, float]:
  """Quantiles of the scores of the best items of some users."""
  users = np.unique(np.linspace(0, scorer.num_users - 1, min(_SAMPLE, scorer.num_users)).astype(np.int64))
  _, scores = ranking.top_k(scorer, users, context.history, _DEPTH)
  scores = scores[np.isfinite(scores)]
  if not len(scores):
    return {}
  return {f'p{int(100 * share)}': float(value) for share, value in zip(_QUANTILES, np.quantile(scores, _QUANTILES))}
