"""The most popular items, the same for everybody."""
import numpy as np

from graphsane_tf.evaluation import ranking
from graphsane_tf.peers.base import Peer, decay


class Popularity(Peer):
  """Items by how often they were taken: in all history, lately, or in the last block.

  `half_life` is in blocks; 0 counts all history equally, and a small one little more than the last rows.
  """

  settings = {'half_life': [0., .1, .3, 1., 3.]}

  def fit(self, context, half_life=0.):
    _, items = context.rows(slice(0, context.num_rows))
    counts = np.bincount(items, decay(context, half_life), context.num_items)
    return ranking.DotProduct(np.ones((context.num_users, 1), np.float32), counts[:, None])
