"""Contrastive distillation: student anchors against the teacher's neighbours (SGCT)."""
import abc
import functools
from typing import Dict, Optional, Tuple

import numpy as np
import tensorflow as tf

from graphsane_tf.distillation import personal
from graphsane_tf.distillation.base import Distiller, weighted
from graphsane_tf.graph import csr, products, views
from graphsane_tf.graph.draws import Complement
from graphsane_tf.graph.scores import pair_scores

_KINDS = {'u': 'user', 'i': 'item'}


def contrastive_loss(near: tf.Tensor, positive_mask: tf.Tensor, far: tf.Tensor,
                     negative_mask: tf.Tensor, temperature: float,
                     anchor_weight: Optional[tf.Tensor] = None) -> tf.Tensor:
  """Mean over anchors of -1/|N| sum_{i in N} log softmax of h.e_i / tau, over all that was drawn.

  The denominator is each anchor's own, over its positives and its negatives (equation SGCT of the
  appendix). Anchors without positives are left out of the mean.

  Args:
    near: [n, p] dot products of anchors (student) with their neighbours (teacher).
    positive_mask: [n, p], 0 where a slot is empty.
    far: [n, m] dot products of anchors with non-neighbours.
    negative_mask: [n, m].
    temperature: tau.
    anchor_weight: [n] weight of each anchor in the mean; None weighs them equally.
  """
  near, far = near / temperature, far / temperature
  logits = tf.concat([near, far], axis=1)
  mask = tf.concat([positive_mask, negative_mask], axis=1)
  log_total = tf.reduce_logsumexp(
      tf.where(mask > 0, logits, logits.dtype.min), axis=1, keepdims=True)
  log_share = positive_mask * (near - log_total)
  count = tf.reduce_sum(positive_mask, axis=1)
  anchor_loss = -tf.math.divide_no_nan(tf.reduce_sum(log_share, axis=1), count)
  weight = tf.cast(count > 0, near.dtype)
  if anchor_weight is not None:
    weight *= anchor_weight
  return tf.math.divide_no_nan(tf.reduce_sum(weight * anchor_loss), tf.reduce_sum(weight))


def _with_itself(table: csr.Csr) -> csr.Csr:
  """A [n, n] neighbour table in which each node is also its own neighbour."""
  own = np.arange(table.num_rows, dtype=np.int32)
  return csr.from_pairs(np.concatenate([table.rows(), own]),
                        np.concatenate([table.indices, own]), table.num_rows, table.num_columns)


def random_places(size: tf.Tensor, count: int, seed: tf.Tensor) -> tf.Tensor:
  """[min(size, count)] int32 distinct places below `size`, ascending, every set of them equally likely.

  The first distinct nodes of a batch would not do: whoever has many pairs in it comes early.
  """
  _, places = tf.math.top_k(tf.random.stateless_uniform([size], seed), tf.minimum(size, count), sorted=False)
  return tf.sort(places)


class Contrastive(Distiller):
  """What contrastive distillers share; a subclass names relations, layers and their weights.

  Anchors are the batch's distinct old users (and old positive items), or `num_anchors` random ones
  of them, each equally likely, with the student's outputs; positives are
  neighbours in the teacher's graph, negatives uniform non-neighbours there, both with the
  teacher's outputs. Neighbours are drawn anew in each step, once for all layers.
  """

  relations: Tuple[str, ...] = ('ui', 'iu')

  def __init__(self, config, context, teacher, seed):
    super().__init__(config, context, teacher, seed)
    self._complements = {}
    for name in self.relations:
      table = teacher.relation(name).table
      self._complements[name] = Complement(
          table if name in ('ui', 'iu') else _with_itself(table))
    if any(layer and weight for layer, weight in self.layer_weights().values()):
      # Known before the step is traced.
      teacher.layers_of('user')
    self._user_weight = None
    if config.personal.strength:
      self._user_weight = tf.constant(
          personal.user_weights(config.personal, context, teacher, seed))

  @property
  @abc.abstractmethod
  def options(self):
    """The distiller's own section of the configuration."""

  @abc.abstractmethod
  def draws(self, relation: str) -> Tuple[int, int]:
    """Positives and negatives drawn for an anchor."""

  @abc.abstractmethod
  def layer_weights(self) -> Dict[str, Tuple[int, float]]:
    """Name of each loss to its layer and its weight."""

  def losses(self, batch) -> Dict[str, tf.Tensor]:
    seeds = batch.seeds.child('distiller')
    weights = self.layer_weights()
    drawn = {}
    if any(weight for _, weight in weights.values()):
      drawn = {name: self._draw(name, batch, seeds) for name in self.relations}
    return {name: weighted(weight, functools.partial(self._layer_loss, layer, batch, drawn))
            for name, (layer, weight) in weights.items()}

  def _anchors(self, kind: str, layer: int, batch) -> Tuple[tf.Tensor, tf.Tensor]:
    """Numbers [n] and rows [n, d] of the anchors, the same ones for every layer and relation."""
    nodes, rows = batch.old(kind, layer, self.teacher)
    if not self.options.num_anchors:
      return nodes, rows
    places = random_places(tf.size(nodes), self.options.num_anchors, batch.seeds.child(f'anchors_{kind}').next())
    return tf.gather(nodes, places), products.rows_at(rows, places)

  def _draw(self, relation: str, batch, seeds):
    """Neighbours and others of the anchors: two pairs of numbers [n, k] and masks [n, k]."""
    nodes, _ = self._anchors(_KINDS[relation[0]], 0, batch)
    num_positives, num_negatives = self.draws(relation)
    return (views.draw_neighbours(
        self.teacher.relation(relation), nodes, num_positives, seeds.next()),
            self._complements[relation].draw(nodes, num_negatives, seeds.next()))

  def _layer_loss(self, layer: int, batch, drawn) -> tf.Tensor:
    total = 0.
    for relation, ((positives, positive_mask), (negatives, negative_mask)) in drawn.items():
      kind, other = (_KINDS[end] for end in relation)
      nodes, anchors = self._anchors(kind, layer, batch)
      rows = self.teacher.layers_of(other)[layer] if layer else self.teacher.embedding(other)
      weight = None
      if self._user_weight is not None and kind == 'user':
        weight = tf.gather(self._user_weight, nodes)
      total += contrastive_loss(
          pair_scores(anchors, rows, positives), positive_mask,
          pair_scores(anchors, rows, negatives), negative_mask, self.options.temperature, weight)
    return total


class Sgct(Contrastive):
  """Single-layer graph contrastive distillation: embeddings, user-item and item-user."""

  weight_fields = ('sgct.weight',)

  @property
  def options(self):
    return self.config.sgct

  def draws(self, relation):
    return self.options.num_positives, self.options.num_negatives

  def layer_weights(self):
    return {'sgct': (0, self.options.weight)}
