"""A GraphSAGE model with PinSage's convolution (Ying et al., KDD 2018)."""
from typing import Optional

import tensorflow as tf

from graphsane_tf.backbones.base import Backbone, Encoding, dropout, recursive_layers
from graphsane_tf.graph import views
from graphsane_tf.random import Seeds


class PinSage(Backbone):
  """Two convolutions over the user-item graph, with weights of their own for users and items.

  For a user u (items are symmetric), [a ; b] a concatenation, n(x) = x / |x| and S a draw of
  neighbours (all of them in a whole view):

      a_u       = drop(mean_{i in S(u)} ReLU(h_i^(l) Q + q))
      h_u^(l+1) = n(ReLU([h_u^(l) ; a_u] W + w)),    h^(0) = e,    l = 0, 1
      z_u       = sqrt(scale) n(ReLU(h_u^(2) G2 + g) G1)

  PinSage pools the nodes that short random walks visit, by their visit counts; here neighbourhoods
  are plain means over the graph's own edges. Scores lie between -scale and scale: dot products of
  vectors of length one would leave BPR's sigmoid almost flat.
  Layers: 0 the embedding e, 1 and 2 the convolutions, 3 the final z.
  """

  def __init__(self, num_users, num_items, config, seed):
    super().__init__(num_users, num_items, config, seed)
    size = config.embedding_dim
    for kind in ('u', 'i'):
      for layer in (1, 2):
        self._dense(f'{kind}_neighbour{layer}', size, size)
        self._dense(f'{kind}_merge{layer}', 2 * size, size)
      self._dense(f'{kind}_hidden', size, size)
      setattr(self, f'{kind}_output', self.matrix(f'{kind}_output', size, size))

  def _dense(self, name: str, rows: int, columns: int) -> None:
    setattr(self, name, self.matrix(name, rows, columns))
    setattr(self, f'{name}_bias', self.vector(f'{name}_bias', columns))

  def _apply(self, name: str, rows: tf.Tensor) -> tf.Tensor:
    return tf.nn.relu(rows @ getattr(self, name) + getattr(self, f'{name}_bias'))

  @property
  def num_layers(self) -> int:
    return 4

  @classmethod
  def size_of(cls, config) -> int:
    return config.embedding_dim

  def encode(self, view: views.View, users: Optional[tf.Tensor], items: Optional[tf.Tensor],
             seeds: Seeds, training: bool) -> Encoding:
    rate = self.config.dropout if training else 0.
    tables = {'u': self.user_table, 'i': self.item_table}

    def convolve(kind, level, nodes, hop, layer):
      other = 'i' if kind == 'u' else 'u'

      def messages(neighbours):
        rows = layer(other, level - 1, neighbours, hop + 1)
        return self._apply(f'{kind}_neighbour{level}', rows)

      mean = view.mean(kind + other, nodes, messages, self.config.fanout[hop])
      if rate:
        mean, scale = dropout(mean, rate, seeds.next(), view.rows_of(nodes))
        mean *= scale
      own = layer(kind, level - 1, nodes, hop)
      return tf.math.l2_normalize(
          self._apply(f'{kind}_merge{level}', tf.concat([own, mean], axis=1)), axis=1)

    layer = recursive_layers(view, tables, 2, convolve)

    def tower(kind, nodes):
      layers = [layer(kind, level, nodes) for level in range(3)]
      final = self._apply(f'{kind}_hidden', layers[-1]) @ getattr(self, f'{kind}_output')
      scale = self.config.pinsage_scale ** .5
      return [*layers, scale * tf.math.l2_normalize(final, axis=1)]

    return Encoding(user=tower('u', users), item=tower('i', items))
