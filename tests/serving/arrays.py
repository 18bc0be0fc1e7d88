"""A small catalogue to export, with exact scores and many ties, and what NumPy makes of it."""
import numpy as np
import scipy.sparse

from graphsane_tf.graph import csr

NUM_USERS, NUM_ITEMS, DIMENSION = 37, 101, 6
USER_IDS = [f'usér-{number}' for number in range(NUM_USERS - 1)] + ['用户 "x",\n']
ITEM_IDS = [f'item-{number}' for number in range(NUM_ITEMS - 1)] + ['商品 ☕']
PROFILE_SCALE = 2.


def arrays(seed=0):
  """Small integer vectors: exact scores, many ties. User 3 saw all items, user 4 none."""
  rng = np.random.default_rng(seed)
  seen = rng.random((NUM_USERS, NUM_ITEMS)) < 0.2
  seen[3], seen[4] = True, False
  indptr = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
  return {
      'user_vectors': rng.integers(-2, 3, (NUM_USERS, DIMENSION)).astype(np.float32),
      'item_vectors': rng.integers(-2, 3, (NUM_ITEMS, DIMENSION)).astype(np.float32),
      'user_ids': USER_IDS, 'item_ids': ITEM_IDS, 'seen': csr.Csr(indptr, np.nonzero(seen)[1], NUM_ITEMS),
      'popularity': rng.integers(0, 20, NUM_ITEMS)}


def memory(seed=1):
  """Profiles and weights of small integers; user 5 has an empty profile, item 7 no weight in its row or column."""
  rng = np.random.default_rng(seed)
  profile = scipy.sparse.random(NUM_USERS, NUM_ITEMS, .1, 'csr', np.float32, rng, lambda n: rng.integers(1, 4, n))
  weights = scipy.sparse.random(NUM_ITEMS, NUM_ITEMS, .15, 'lil', np.float32, rng, lambda n: rng.integers(-3, 4, n))
  weights[7], weights[:, 7] = 0., 0.
  keep = np.ones(NUM_USERS, np.float32)
  keep[5] = 0.
  profile = scipy.sparse.diags(keep) @ profile
  profile.eliminate_zeros()
  return {'profile': profile.tocsr(), 'weights': weights.tocsr(), 'profile_scale': PROFILE_SCALE}


def dense_scores(given):
  """[num_users, num_items] float64."""
  scores = given['user_vectors'].astype(np.float64) @ given['item_vectors'].T
  if 'profile' in given:
    scores += (given['profile'] @ given['weights']).toarray()
  return scores


def best(scores, left_out, k):
  """[(item id, score)] of scores [num_items], without some items."""
  scores = np.array(scores, np.float64)
  scores[list(left_out)] = -np.inf
  order = np.argsort(-scores, kind='stable')[:k]
  return [(ITEM_IDS[item], scores[item]) for item in order if scores[item] > -np.inf]


def seen_by(given, user):
  """Numbers of the items that a user has seen."""
  return given['seen'].indices[given['seen'].indptr[user]:given['seen'].indptr[user + 1]]
