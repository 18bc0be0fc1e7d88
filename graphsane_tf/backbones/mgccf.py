"""MGCCF: two-layer bipartite graph convolution, nearest-neighbour graphs and a skip part."""
from typing import Dict, Optional

import tensorflow as tf

from graphsane_tf.backbones.base import Backbone, Encoding, dropout
from graphsane_tf.graph import views
from graphsane_tf.random import Seeds


class MGCCF(Backbone):
  """Multi-graph convolution collaborative filtering.

  For a user u (items are symmetric, with weights of their own), [a ; b] a concatenation and S a draw of
  neighbours (all of them in a whole view):

      h1_v = tanh([e_v ; drop(mean_{w in S(v)} e_w)] W1)        for the items v in S(u)
      h2_u = tanh([e_u ; drop(mean_{v in S(u)} h1_v)] W2)
      m_u  = tanh([e_u ; drop(mean of the nearest users' e)] Wm)
      z_u  = [tanh(h2_u) ; tanh(m_u) ; e_u]                     of size 3 d

  Layers: 0 the embedding e, 1 the first convolution h1 at the node itself, 2 the final z.
  """

  uses_knn = True

  def __init__(self, num_users, num_items, config, seed):
    super().__init__(num_users, num_items, config, seed)
    size = config.embedding_dim
    for tower in ('user', 'item'):
      for layer in ('inner', 'outer', 'knn'):
        name = f'{tower}_{layer}'
        setattr(self, name, self.matrix(name, 2 * size, size))

  @property
  def num_layers(self) -> int:
    return 3

  @classmethod
  def size_of(cls, config) -> int:
    return 3 * config.embedding_dim

  def encode(self, view: views.View, users: Optional[tf.Tensor], items: Optional[tf.Tensor],
             seeds: Seeds, training: bool) -> Encoding:
    rate = self.config.dropout if training else 0.
    hop1, hop2 = self.config.fanout
    embedding = {'u': views.Table(self.user_table), 'i': views.Table(self.item_table)}

    def combine(own, neighbourhood, weight):
      top, bottom = tf.split(weight, 2)
      if rate:
        neighbourhood, scale = dropout(neighbourhood, rate, seeds.next())
        bottom *= scale
      return tf.tanh(own @ top + neighbourhood @ bottom)

    def inner(kind, other, weight):
      """Layer 1 at nodes of `kind`, whose neighbours are of kind `other`."""
      def rows(nodes):
        mean = view.mean(kind + other, nodes, embedding[other], hop2)
        return combine(embedding[kind](nodes), mean, weight)
      return view.share(rows)

    # Layer 1 at users belongs to the items' tower, and the other way round.
    layer1 = {'u': inner('u', 'i', self.item_inner), 'i': inner('i', 'u', self.user_inner)}

    def tower(kind, other, nodes, outer_weight, knn_weight):
      own = embedding[kind](nodes)
      mean = view.mean(kind + other, nodes, layer1[other], hop1)
      outer = combine(own, mean, outer_weight)
      near = view.mean(kind + kind, nodes, embedding[kind], self.config.num_knn)
      final = tf.concat([tf.tanh(outer), tf.tanh(combine(own, near, knn_weight)), own], axis=1)
      # Where nobody asks for a layer, TensorFlow drops its computation from the graph.
      return [own, layer1[kind](nodes), final]

    return Encoding(user=tower('u', 'i', users, self.user_outer, self.user_knn),
                    item=tower('i', 'u', items, self.item_outer, self.item_knn))

  def partners(self, view: views.View, users: tf.Tensor, items: tf.Tensor, seeds: Seeds):
    if not self.config.proximity:
      return None
    return tuple(
        tuple(tf.squeeze(part, 1) for part in views.draw_neighbours(
            view.relations[relation], nodes, 1, seeds.next()))
        for relation, nodes in (('uu', users), ('ii', items)))

  def regularisers(self, user_gaps: tf.Tensor, item_gaps: tf.Tensor) -> Dict[str, tf.Tensor]:
    """The multi-graph proximity term: each node near one of its nearest neighbours.

    The squared distance of the final representations plus that of the embeddings, which are their last
    part and so count twice.
    """
    size = self.config.embedding_dim
    times = tf.constant([1.] * (2 * size) + [2. ** .5] * size)
    distance = 2. * sum(tf.nn.l2_loss(times * gaps) for gaps in (user_gaps, item_gaps))
    return {'proximity': self.config.proximity * distance}
