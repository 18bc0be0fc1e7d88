"""Equations 5 to 10 as functions of arrays."""
import numpy as np
import scipy.special


def shares(weight: np.ndarray) -> np.ndarray:
  """[n, K] non-negative weights over their row sums, as H / |H|; rows of zeros stay zero."""
  total = weight.sum(axis=1, keepdims=True)
  return weight / np.where(total > 0., total, 1.)


def interest_shift(current: np.ndarray, previous: np.ndarray) -> np.ndarray:
  """shift(u, t-1, t): difference of the normalised histograms, [n, K].

  A user without interactions in one of the two blocks shows no shift: their row is zero.
  """
  known = (current > 0.).any(axis=1, keepdims=True) & (previous > 0.).any(axis=1, keepdims=True)
  return np.where(known, shares(current) - shares(previous), np.float32(0.))


def strengths(strength: float, size: np.ndarray) -> np.ndarray:
  """lambda Q, float32 as `size`."""
  return np.asarray(strength * np.asarray(size, np.float64), np.float32)


def prior(shift: np.ndarray, strength: float, size: np.ndarray, temperature: float = 1.,
          sign: int = -1) -> np.ndarray:
  """alpha = lambda Q softmax(-shift), equation 6, [n, K]; `size` [n, 1] or a number is Q.

  The equations of the posterior in the paper drop the minus; it belongs everywhere.
  """
  return strengths(strength, size) * scipy.special.softmax(sign * shift / temperature, axis=1)


def posterior_mean(alpha: np.ndarray, counts: np.ndarray) -> np.ndarray:
  """theta = (alpha + c) / sum(alpha + c), equation 9, [n, K]."""
  return shares(alpha + counts)


def item_probabilities(theta: np.ndarray, weight: np.ndarray) -> np.ndarray:
  """p(j) = theta_g(j) / sum over the reservoir, equation 10.

  Args:
    theta: [n, Q] posterior mean of the category g(j) of each reservoir item.
    weight: [n, Q] float32, 0 where the slot holds no item; other values weigh the items.

  Returns:
    [n, Q] probabilities, a row of zeros where the reservoir is empty.
  """
  return shares(weight * theta)


def balancing_weights(items: np.ndarray, pairs: np.ndarray, num_items: int,
                      balance: float) -> np.ndarray:
  """n_j^-balance, with n_j the pairs whose users have item j in their reservoirs.

  Args:
    items: [n, Q] reservoirs, -1 where there is no item.
    pairs: [n] pairs of each user.
    num_items: size of the catalogue.
    balance: 0 weighs all items equally.

  Returns:
    [num_items] float64; 1 for items that are in no reservoir.
  """
  held = items >= 0
  rows = np.broadcast_to(pairs[:, None], items.shape)[held]
  return np.maximum(np.bincount(items[held], rows, num_items), 1.) ** -balance
