"""The most popular items, the same for everybody."""
import numpy as np

from graphsane_tf.evaluation import ranking
from graphsane_tf.peers.base import Peer


class Popularity(Peer):
  """Items by how often they were taken in all history."""

  def fit(self, context):
    return self._scorer(context, np.ones(context.num_rows))

  def _scorer(self, context, weights: np.ndarray) -> ranking.Scorer:
    """Scores of all rows so far with weights [num_rows]."""
    _, items = context.rows(slice(0, context.num_rows))
    counts = np.bincount(items, weights, context.num_items)
    return ranking.DotProduct(np.ones((context.num_users, 1), np.float32), counts[:, None])


class RecentPopularity(Popularity):
  """The same with rows that count less the older they are.

  The half-life is a share of all rows so far.
  """

  settings = {'half_life': [.1, .03, .01, .3]}

  def fit(self, context, half_life=.1):
    age = np.arange(context.num_rows)[::-1]
    return self._scorer(context, np.exp2(-age / (half_life * context.num_rows)))


class LastPopularity(Popularity):
  """Items by how often they were taken in the newest block alone."""

  def fit(self, context):
    return self._scorer(context, np.arange(context.num_rows) >= context.own.start)
