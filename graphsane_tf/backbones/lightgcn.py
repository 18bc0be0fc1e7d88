"""LightGCN: embeddings smoothed over the graph, and nothing else (He et al., SIGIR 2020)."""
from typing import Optional

import tensorflow as tf

from graphsane_tf.backbones.base import Backbone, Encoding, recursive_layers
from graphsane_tf.graph import views
from graphsane_tf.random import Seeds


class LightGCN(Backbone):
  """Linear propagation without weights.

  With N the neighbours in the user-item graph (items are symmetric):

      h_u^(l+1) = sum_{i in N(u)} h_i^(l) / sqrt(|N(u)| |N(i)|),   h^(0) = e
      z_u       = mean of h_u^(0), ..., h_u^(L)

  Layers: h^(0), ..., h^(L), then the final z.
  """

  multiplies = False

  @property
  def num_layers(self) -> int:
    return self.config.num_layers + 2

  @classmethod
  def size_of(cls, config) -> int:
    return config.embedding_dim

  @classmethod
  def draws(cls, config):
    # Every layer is asked for, and has draws of its own for each layer below it.
    return tuple(range(config.num_layers, 0, -1))

  def encode(self, view: views.View, users: Optional[tf.Tensor], items: Optional[tf.Tensor],
             seeds: Seeds, training: bool) -> Encoding:
    del seeds, training  # No dropout.
    depth, fanout = self.config.num_layers, self.config.fanout
    tables = {'u': self.user_table, 'i': self.item_table}

    def convolve(kind, level, nodes, hop, layer):
      other = 'i' if kind == 'u' else 'u'
      return view.smooth(kind + other, nodes, lambda at: layer(other, level - 1, at, hop + 1),
                         fanout[min(hop, len(fanout) - 1)])

    layer = recursive_layers(view, tables, depth, convolve)

    def tower(kind, nodes):
      layers = [layer(kind, level, nodes) for level in range(depth + 1)]
      # Not tf.add_n: graph optimisation may turn it into a sum in order of arrival.
      return [*layers, sum(layers) / (depth + 1.)]

    return Encoding(user=tower('u', users), item=tower('i', items))
