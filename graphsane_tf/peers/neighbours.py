"""Item neighbours: what resembles what a user has taken."""
from graphsane_tf.peers import neighbourhoods
from graphsane_tf.peers.base import ItemWeights, Peer, profiles


class Neighbours(Peer):
  """Cosine neighbours of items, summed over a user's profile.

  cosine(i, j) = c_ij / (sqrt(c_ii c_jj) + shrinkage), with c the numbers of users who have taken both.
  """

  settings = {'half_age': [0., .1], 'kept': [200], 'shrinkage': [10., 0.]}

  def fit(self, context, half_age=0., kept=200, shrinkage=10.):
    taken = profiles(context)
    near = neighbourhoods.strongest((taken.T @ taken).tocsr(), kept, shrinkage)
    return ItemWeights(profiles(context, half_age), near.matrix(near.cosine))
