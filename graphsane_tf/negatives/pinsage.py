"""PinSage's hard negatives: items in a band of the user's personalised PageRank."""
import sys
from typing import Tuple

import numpy as np
import scipy.sparse

from graphsane_tf import parallel
from graphsane_tf.graph import csr
from graphsane_tf.negatives import ranked
from graphsane_tf.negatives.base import Draw, NegativeSampler

# Users whose vectors are iterated at once; a chunk takes num_items x this many floats, thrice.
_CHUNK = 128


class PageRank:
  """Personalised PageRank of items on the user-item graph, for a restart at one user.

  A walk restarts at user u with probability 1 - d and otherwise goes to a random neighbour. With
  x the mass on items, R = D_u^-1 A and C = D_i^-1 A^T the transition matrices, the fixed point is
      x = d (1 - d) R_u + d^2 (x C) R,
  of total mass d / (1 + d); an iteration shrinks the error by d^2.
  """

  def __init__(self, edges: csr.Csr, damping: float, tolerance: float, max_iterations: int):
    """Takes [num_users, num_items] edges; stops by mean change of the mass, or after iterations."""
    matrix = edges.matrix()
    by_user = scipy.sparse.diags(1. / np.maximum(edges.degree, 1).astype(np.float32)) @ matrix
    degree = np.maximum(np.bincount(edges.indices, minlength=edges.num_columns), 1)
    self._to_items = by_user.T.tocsr()
    self._to_users = (matrix @ scipy.sparse.diags(1. / degree.astype(np.float32))).tocsr()
    self._restart = by_user.tocsr()
    self._damping = damping
    self._tolerance = tolerance
    self._max_iterations = max_iterations
    self.mass = damping / (1. + damping)

  def of(self, users: np.ndarray) -> Tuple[np.ndarray, int]:
    """Iterates the vectors of some users [n].

    Returns:
      [n, num_items] float32, and the number of iterations.
    """
    damping = np.float32(self._damping)
    source = np.ascontiguousarray(self._restart[users].toarray().T)
    current = source * np.float32(self.mass)
    source *= damping * (1. - damping)
    iteration = 0
    for iteration in range(1, self._max_iterations + 1):  # noqa: B007
      after = self._to_items @ (self._to_users @ current)
      after *= damping * damping
      after += source
      change = np.abs(after - current).sum(axis=0).mean()
      current = after
      if change < self._tolerance * self.mass:
        break
    return np.ascontiguousarray(current.T), iteration


class PinSageNegatives(NegativeSampler):
  """A uniform draw from the items at PageRanks `start_rank` to `start_rank + size - 1` of the user.

  Publication: Ying, He, Chen et al., "Graph convolutional neural networks for web-scale recommender
  systems", KDD 2018. Hard negatives of a query are items that rank between 2,000 and 5,000 by
  personalised PageRank from it, out of some billions: related, but less than the positives.

  Adaptation: the query is the user, the graph all interactions up to the block, and the band that
  of SANE's reservoir, so that a comparison of the two compares rankings. Current positives are left
  out. The graph does not change within a block, so vectors are computed once, by power iteration in
  chunks of users. Items that no walk reaches have no rank; users without enough others get uniform
  negatives.
  """

  loss_name = 'pinsage'
  refresh_epochs = sys.maxsize
  host = ('context', 'seed', 'iterations')

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    self._options = options = config.pinsage
    users = np.unique(context.users)
    self._first = ranked.start_rank(options, context.num_items) - 1
    self._last = min(self._first + options.size, context.num_items)
    self.table = ranked.ItemTable(users, self._last - self._first, context.positives)
    self._excluded = context.positives.select(users)
    # Most iterations that a chunk took at the last refresh.
    self.iterations = 0

  def refresh(self, user_vectors, item_vectors, epoch):
    options, users = self._options, self.table.users
    pagerank = PageRank(self.context.history, options.damping, options.tolerance,
                        options.max_iterations)
    band = np.full((len(users), self.table.width), -1, np.int32)

    def rank(start):
      rows = slice(start, min(start + _CHUNK, len(users)))
      vectors, iterations = pagerank.of(users[rows])
      table = self._excluded.select(np.arange(rows.start, rows.stop))
      columns, values = ranked.top_keys(vectors, (table.rows(), table.indices), self._last)
      band[rows] = np.where(values > 0., columns, -1)[:, self._first:]
      return iterations

    # Sparse products run on one core each and leave the interpreter free; chunks are independent.
    self.iterations = max(
        parallel.side_by_side(rank, range(0, len(users), _CHUNK)), default=0)
    self.table.assign(band)

  def draw(self, users, positives, seeds):
    return Draw(*self.table.draw(
        users, self.num_slots, seeds, ranked.uniform_place, ranked.uniform_log_probability))

  def probabilities(self, user, positive, scores):
    return self.table.probabilities(user, ranked.uniform_by_place)
