"""EASE: the item-item weights that rebuild every user's profile best, in closed form (Steck, WWW 2019)."""
import numpy as np
import scipy.linalg
import scipy.sparse

from graphsane_tf.errors import UserError
from graphsane_tf.peers import local
from graphsane_tf.peers.base import ItemWeights, Peer, Weights, profiles

# Items up to which the dense inverse is taken: a float32 matrix of this size has 4 GiB.
MAX_ITEMS = 1 << 15
_STRETCH = 1024
_NEIGHBOURS = 200


def ease_weights(gram: np.ndarray, regularisation: float) -> np.ndarray:
  """The weights B with zero diagonal that minimise |X - X B|^2 + lambda |B|^2.

  With P = (X^T X + lambda I)^-1, B_ij = -P_ij / P_jj outside of the diagonal.

  Args:
    gram: [n, n] float32, X^T X; overwritten.
    regularisation: lambda, positive.

  Returns:
    [n, n] float32.
  """
  places = np.diag_indices(len(gram))
  gram[places] += np.float32(regularisation)
  factor, info = scipy.linalg.lapack.spotrf(gram.T, lower=True, overwrite_a=True)
  if info:
    raise UserError(f'EASE cannot invert its item-item matrix with a regularisation of {regularisation:g}: '
                    'raise it.')
  inverse, _ = scipy.linalg.lapack.spotri(factor, lower=True, overwrite_c=True)
  # LAPACK's matrix is the transpose of ours, in the same memory. The other triangle is not computed, and is
  # filled a stretch at a time: a second matrix may not fit.
  weights = inverse.T
  for start in range(0, len(weights), _STRETCH):
    stop = min(start + _STRETCH, len(weights))
    own = weights[start:stop, start:stop]
    own[:] = np.triu(own) + np.triu(own, 1).T
    weights[stop:, start:stop] = weights[start:stop, stop:].T
  weights /= -np.diag(weights).copy()
  weights[places] = 0.
  return weights


def all_weights(profile: scipy.sparse.csr_matrix, regularisation: float) -> Weights:
  """EASE's weights: dense up to `MAX_ITEMS`; above it each item is rebuilt from its strongest neighbours alone."""
  together = profile.T @ profile
  if profile.shape[1] > MAX_ITEMS:
    return local.local_weights(together.tocsr(), _NEIGHBOURS, regularisation)
  return ease_weights(together.toarray().astype(np.float32, copy=False), regularisation)


class Ease(Peer):
  """EASE on all history; profiles may weigh old rows less."""

  settings = {'half_age': [0., .3, .1], 'regularisation': [400.]}

  def __init__(self):
    self._solved = None

  def fit(self, context, half_age=0., regularisation=400.):
    # Profiles do not change the weights, and these take nearly all of the time.
    if self._solved is None or self._solved[:2] != (context.num_rows, regularisation):
      self._solved = (context.num_rows, regularisation,
                      all_weights(profiles(context), regularisation))
    return ItemWeights(profiles(context, half_age), self._solved[2])
