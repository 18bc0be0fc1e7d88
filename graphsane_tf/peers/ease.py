"""EASE: the item-item weights that rebuild every user's profile best, in closed form (Steck, WWW 2019)."""
import numpy as np
import scipy.linalg
import scipy.sparse

from graphsane_tf.errors import UserError
from graphsane_tf.peers.base import ItemWeights, Peer, profiles

# Items up to which the dense inverse is taken: two float32 matrices of this size are 5 GB.
MAX_ITEMS = 25_000


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
  # The other triangle is not computed.
  inverse = np.tril(inverse)
  inverse += np.tril(inverse, -1).T
  weights = inverse / -np.diag(inverse)
  weights[places] = 0.
  return weights


def gram_matrix(profile: scipy.sparse.csr_matrix) -> np.ndarray:
  """[n, n] float32 co-occurrences X^T X, dense."""
  items = profile.shape[1]
  if items > MAX_ITEMS:
    raise UserError(f'EASE holds an item x item matrix, and {items:,} items are more than the '
                    f'{MAX_ITEMS:,} that it is made for: use --peer=neighbours, or raise '
                    '--min_item_interactions.')
  return np.asarray((profile.T @ profile).toarray(), np.float32)


class Ease(Peer):
  """EASE on all history; profiles may weigh old rows less."""

  settings = {'half_life': [0., 3.], 'regularisation': [200., 800.]}

  def fit(self, context, half_life=0., regularisation=200.):
    weights = ease_weights(gram_matrix(profiles(context)), regularisation)
    return ItemWeights(profiles(context, half_life), weights)
