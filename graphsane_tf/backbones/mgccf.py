"""MGCCF: bipartite graph convolution, nearest-neighbour graphs and a skip part."""
from typing import Dict, Optional

import tensorflow as tf

from graphsane_tf.backbones.base import Backbone, Encoding, dropout
from graphsane_tf.graph import views
from graphsane_tf.random import Seeds

_TOWERS = {'u': 'user', 'i': 'item'}
_OTHER = {'u': 'i', 'i': 'u'}


def _inner(level: int) -> str:
  """Name of a layer below the last, in the names of weights."""
  return 'inner' if level == 1 else f'inner{level}'


class MGCCF(Backbone):
  """Multi-graph convolution collaborative filtering.

  For a user u (items are symmetric, with weights of their own), [a ; b] a concatenation and S a draw of
  neighbours (all of them in a whole view):

      h1_v = tanh([e_v ; drop(mean_{w in S(v)} e_w)] W1)        for the items v in S(u)
      h2_u = tanh([e_u ; drop(mean_{v in S(u)} h1_v)] W2)
      m_u  = tanh([e_u ; drop(mean of the nearest users' e)] Wm)
      z_u  = [tanh(h2_u) ; tanh(m_u) ; e_u]                     of size 3 d

  That is L = 2 (`model.mgccf_layers`). With other L, h of layer l is made of e and the neighbours' h of layer l - 1,
  with a weight of its own, and hL takes the place of h2.

  Layers: 0 the embedding e, 1 to L - 1 the convolutions h at the node itself, L the final z.
  """

  uses_knn = True

  def __init__(self, num_users, num_items, config, seed):
    super().__init__(num_users, num_items, config, seed)
    size = config.embedding_dim
    for tower in ('user', 'item'):
      for layer in (*map(_inner, range(1, config.mgccf_layers)), 'outer', 'knn'):
        name = f'{tower}_{layer}'
        setattr(self, name, self.matrix(name, 2 * size, size))

  @property
  def num_layers(self) -> int:
    return self.config.mgccf_layers + 1

  @classmethod
  def size_of(cls, config) -> int:
    return 3 * config.embedding_dim

  @classmethod
  def draws(cls, config):
    return (1,) * config.mgccf_layers

  def encode(self, view: views.View, users: Optional[tf.Tensor], items: Optional[tf.Tensor],
             seeds: Seeds, training: bool) -> Encoding:
    rate = self.config.dropout if training else 0.
    depth, fanout = self.config.mgccf_layers, self.config.fanout
    embedding = {'u': views.Table(self.user_table), 'i': views.Table(self.item_table)}

    def combine(nodes, own, neighbourhood, weight):
      top, bottom = tf.split(weight, 2)
      if rate:
        neighbourhood, scale = dropout(neighbourhood, rate, seeds.next(), view.rows_of(nodes))
        bottom *= scale
      return tf.tanh(own @ top + neighbourhood @ bottom)

    def neighbourhood(kind, level, nodes):
      """Means of layer level - 1 over the other kind; what is drawn depends on the distance to the last layer."""
      other = _OTHER[kind]
      return view.mean(kind + other, nodes, layers[level - 1][other], fanout[min(depth - level, len(fanout) - 1)])

    def inner(kind, level):
      """A layer below the last at nodes of `kind`."""
      # Every second layer at users belongs to the items' tower, and the other way round.
      tower = kind if (depth - level) % 2 == 0 else _OTHER[kind]
      weight = getattr(self, f'{_TOWERS[tower]}_{_inner(level)}')
      return view.share(lambda nodes: combine(nodes, embedding[kind](nodes), neighbourhood(kind, level, nodes), weight))

    layers = [embedding, *({kind: inner(kind, level) for kind in 'ui'} for level in range(1, depth))]

    def tower(kind, nodes):
      own = embedding[kind](nodes)
      outer = combine(nodes, own, neighbourhood(kind, depth, nodes), getattr(self, f'{_TOWERS[kind]}_outer'))
      near = view.mean(kind + kind, nodes, embedding[kind], self.config.num_knn)
      near = combine(nodes, own, near, getattr(self, f'{_TOWERS[kind]}_knn'))
      final = tf.concat([tf.tanh(outer), tf.tanh(near), own], axis=1)
      # Where nobody asks for a layer, TensorFlow drops its computation from the graph.
      return [own, *(layer[kind](nodes) for layer in layers[1:]), final]

    return Encoding(user=tower('u', users), item=tower('i', items))

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
