"""The model itself in a SavedModel: weights and graph of a backbone, to be trained further in plain TensorFlow."""
from typing import Dict, Optional, Tuple

import numpy as np
import tensorflow as tf

from graphsane_tf.backbones.base import Backbone
from graphsane_tf.graph import products, views
from graphsane_tf.memory import mixing
from graphsane_tf.random import Seeds
from graphsane_tf.serving.tables import Table, row_numbers

_PAIRS = tf.TensorSpec([None], tf.int64)


class _Relation(views.Relation):
  """A neighbour table in variables: as constants, its edges would be in the program's file, which has a limit."""

  def __init__(self, relation: views.Relation):
    # Not those of the table that it is made of.
    # pylint: disable=super-init-not-called
    table = self.table = relation.table
    self.num_rows, self.num_columns, self.num_edges = table.num_rows, table.num_columns, len(table.indices)
    self.indptr = tf.Variable(table.indptr.astype(np.int64), trainable=False)
    self.indices = tf.Variable(np.asarray(table.indices, np.int32), trainable=False)

  @property
  def degree(self) -> tf.Tensor:
    return tf.cast(self.indptr[1:] - self.indptr[:-1], tf.float32)

  @property
  def inverse_degree(self) -> tf.Tensor:
    return (1. / tf.maximum(self.degree, 1.))[:, None]


class _Back(_Relation):
  """The same edges the other way round."""

  def __init__(self, forward: _Relation, relation: views.Relation):
    # pylint: disable=super-init-not-called
    self._forward, self.table = forward, relation.table
    self.num_rows, self.num_columns, self.num_edges = forward.num_columns, forward.num_rows, forward.num_edges

  def entries(self, nodes=None, column_degree=None) -> products.Entries:
    entries = self._forward.entries(nodes, column_degree)
    return products.Entries(tf.cast(entries.column, tf.int64), tf.cast(entries.row, tf.int32), entries.value)

  @property
  def degree(self) -> tf.Tensor:
    column = self._forward.entries().column
    return tf.math.unsorted_segment_sum(tf.ones_like(column, tf.float32), column, self.num_rows)


class _Graph:
  """What a plain view needs of a graph."""

  def __init__(self, graph: views.Graph):
    self.relations = {name: _Relation(relation) for name, relation in graph.relations.items() if name != 'iu'}
    self.variables = [[relation.indptr, relation.indices] for relation in self.relations.values()]
    self.relations['iu'] = _Back(self.relations['ui'], graph.relations['iu'])


class Blend(tf.Module):
  """How final representations become the vectors that are served beside a memory: `mixing.mix` in TensorFlow."""

  def __init__(self, mixture: mixing.Mixture, recollection: mixing.Recollection):
    super().__init__()
    self._mixture, self._taste = mixture, recollection.taste
    self._recent = tf.Variable(recollection.recent(), trainable=False)
    self._profile = Table(recollection.statistics.profile(recollection.taste_half_age)) if self._taste else None

  def __call__(self, users: tf.Tensor, items: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
    """Vectors [num_users, d + 1] and [num_items, d + 1] of final representations [num_users, d] and [num_items, d]."""
    served = users * _scale(users, items)
    if self._profile is not None:
      splits, columns, values = self._profile.rows(tf.range(self._profile.none, dtype=tf.int64))
      profile = tf.sparse.SparseTensor(
          tf.stack([row_numbers(splits), tf.cast(columns, tf.int64)], axis=1), values,
          tf.stack([tf.shape(users, tf.int64)[0], tf.shape(items, tf.int64)[0]]))
      recent = tf.sparse.sparse_dense_matmul(profile, items)
      served = (served + self._taste * recent * _scale(recent, items)) / (1. + self._taste)
    length = 1e-3 * tf.maximum(tf.reduce_mean(tf.norm(items, axis=1)), 1e-6)
    popularity = tf.fill(tf.stack([tf.shape(users)[0], 1]), self._mixture.recent / length)
    return (tf.concat([served * self._mixture.graph, popularity], axis=1),
            tf.concat([items, length * self._recent[:, None]], axis=1))


def _scale(users, items) -> tf.Tensor:
  """[num_users, 1]: one over the standard deviation of each user's dot products with all items, 0 for 0."""
  centred = items - tf.reduce_mean(items, axis=0)
  spread = tf.matmul(centred, centred, transpose_a=True) / tf.cast(tf.shape(items)[0], tf.float32)
  variance = tf.reduce_sum(tf.matmul(users, spread) * users, axis=1, keepdims=True)
  there = variance > 1e-18
  return tf.where(there, tf.math.rsqrt(tf.where(there, variance, 1.)), 0.)


class Trainable(tf.Module):
  """A backbone with its graph.

  Attributes:
    weights: its trainable variables by name: embedding tables, and matrices if it has any.
  """

  def __init__(self, backbone: Backbone, graph: views.Graph, blend: Optional[Blend]):
    """Copies weights and graph; `blend` makes what is served of representations, None takes them as they are."""
    super().__init__()
    # A copy, because a strategy may have spread the variables over replicas or servers.
    copy = type(backbone).from_config(backbone.get_config())
    copy.set_weights(backbone.get_weights())
    self.weights: Dict[str, tf.Variable] = copy.named_variables()
    connected = _Graph(graph)
    self._graph, self._blend = connected.variables, blend

    def represent():
      encoding = copy.encode(views.PlainView(connected), None, None, Seeds(tf.constant([0, 0])), training=False)
      return encoding.user[-1], encoding.item[-1]

    self._represent = tf.function(represent, input_signature=[], autograph=False)

  @tf.function(input_signature=[], autograph=False)
  def represent(self):
    """Final representations of all users and items: all neighbours, no dropout; with gradients for the weights."""
    users, items = self._represent()
    return {'users': users, 'items': items}

  @tf.function(input_signature=[_PAIRS, _PAIRS], autograph=False)
  def __call__(self, user_number, item_number):
    """[n] float32 dot products of representations of pairs of numbers, with gradients for the weights."""
    users, items = self._represent()
    return tf.reduce_sum(tf.gather(users, user_number) * tf.gather(items, item_number), axis=1)

  def served(self) -> Tuple[tf.Tensor, tf.Tensor]:
    """The vectors that are served with these weights."""
    users, items = self._represent()
    return self._blend(users, items) if self._blend else (users, items)
