"""Implicit alternating least squares, by the library `implicit`."""
import importlib.util

import numpy as np
import threadpoolctl

from graphsane_tf import parallel
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import ranking
from graphsane_tf.peers.base import Peer, profiles


class ImplicitAls(Peer):
  """Matrix factorisation of all interactions with confidence weights (Hu et al., ICDM 2008)."""

  settings = {'half_age': [0., .1], 'factors': [128], 'regularisation': [10., .03], 'alpha': [1., 10.]}

  def fit(self, context, half_age=0., factors=128, regularisation=10., alpha=1.):
    if importlib.util.find_spec('implicit') is None:
      raise UserError("--peer=ials needs the library implicit: pip install 'graphsane_tf[peers]'.")
    from implicit.cpu import als  # pylint: disable=g-import-not-at-top
    model = als.AlternatingLeastSquares(
        factors=factors, regularization=regularisation, alpha=alpha, iterations=15, random_state=0,
        num_threads=parallel.cores())
    # It asks for that: its threads take a core each.
    with threadpoolctl.threadpool_limits(1, user_api='blas'):
      model.fit(profiles(context, half_age), show_progress=False)
    return ranking.DotProduct(np.asarray(model.user_factors), np.asarray(model.item_factors))
