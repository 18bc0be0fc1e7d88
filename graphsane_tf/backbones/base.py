"""What a backbone is: node numbers in, representations out."""
import abc
from typing import Any, Dict, Optional, Tuple

from ml_collections import config_dict
import numpy as np
import tensorflow as tf

from graphsane_tf import traced
from graphsane_tf.blocks.batch import Encoding
from graphsane_tf.errors import UserError
from graphsane_tf.graph import products, views
from graphsane_tf.random import Seeds, host_generator


def glorot(rng: np.random.Generator, rows: int, columns: int, fan: Optional[int] = None):
  """[rows, columns] float32 Glorot-uniform values; `fan` replaces `rows` in the limit."""
  limit = np.sqrt(6. / ((fan or rows) + columns))
  return rng.uniform(-limit, limit, (rows, columns)).astype(np.float32)


def dropout(values: tf.Tensor, rate: float, seed: tf.Tensor,
            part: Optional[Tuple[tf.Tensor, tf.Tensor]] = None) -> Tuple[tf.Tensor, float]:
  """Sets about `rate` of the values to zero.

  One random byte a value decides, a quarter of the bits that a float needs: the rate is rounded to a
  multiple of 1/256 and the scale is that of the rounded rate.

  Args:
    values: [n, d] float32.
    rate: in [0, 1).
    seed: [2] int32.
    part: what `View.rows_of` gives for the nodes of the values: they lose what they lose among all nodes.

  Returns:
    [n, d] the values that are left, and the scale by which the caller multiplies them so that the mean
    stays the same: where they meet a matrix, the matrix is smaller.
  """
  level = min(round(256 * rate), 255)
  rows, columns = tf.unstack(tf.shape(values))
  words = tf.random.stateless_uniform(
      [rows if part is None else tf.size(part[0]), (columns + 3) // 4], seed, minval=None, maxval=None, dtype=tf.int32)
  if part is not None:
    words = tf.gather(words, part[1])
  byte = tf.reshape(tf.bitcast(words, tf.uint8), [rows, -1])[:, :columns]
  keep = tf.cast(byte >= tf.constant(level, tf.uint8), values.dtype)
  return values * keep, 256. / (256 - level)


def recursive_layers(view: views.View, tables, depth: int, convolve):
  """Layers of a model whose every layer is a convolution of the one before.

  Args:
    view: the graph.
    tables: the embeddings, by kind 'u' and 'i'.
    depth: number of the last layer.
    convolve: gives rows from (kind, level, nodes, hop, layer), where layer(kind, level, nodes, hop)
      gives rows of earlier layers.

  Returns:
    A function (kind, level, nodes, hop) that gives h^(level) of nodes that are `hop` steps away from
    the ones asked for. A whole view computes a layer that neighbours need once, for all nodes.
  """
  known = {}

  def layer(kind, level, nodes, hop=0):
    if level == 0:
      return views.take(tables[kind], nodes)
    everywhere = view.whole and level < depth
    at = None if everywhere else nodes
    key = (kind, level, None if at is None else at.ref())
    if key not in known:
      known[key] = convolve(kind, level, at, hop, layer)
    return views.take(known[key], nodes) if everywhere else known[key]

  return layer


class _Deterministic:
  """Representations of all nodes from all neighbours, without dropout."""

  host = ()

  def __init__(self, backbone: 'Backbone', graph: views.Graph):
    self._backbone, self._graph = backbone, graph

  def layers(self):
    encoding = self._backbone.encode(self._graph.whole(), None, None, Seeds(tf.constant([0, 0])), training=False)
    return encoding.user, encoding.item

  def final(self):
    users, items = self.layers()
    return users[-1], items[-1]


class Backbone(tf.keras.Model, abc.ABC):
  """A graph model with one trainable row for each user and item.

  To add one: subclass, create weights with `self.matrix`, implement `encode` against the `View` it is
  given, and register it (`graphsane_tf.registry`); docs/extending.md has a whole example. Scores are dot
  products of final representations; losses, samplers and distillers never know which backbone they work with.

  It is a Keras model of pairs: after `connect(graph)`, `model((user_ids, item_ids))` gives their scores, and
  `fit`, `predict`, `summary`, `save_weights` and `get_config` do what they do elsewhere. Blocks are trained by
  `graphsane_tf.training.step`, not by `fit`.
  """

  host: Tuple[str, ...] = ('num_users', 'num_items', '_seed')
  # Whether the graph must have the nearest-neighbour relations 'uu' and 'ii'.
  uses_knn = False
  # Whether rows meet a matrix in each convolution.
  multiplies = True

  def __init__(self, num_users: int, num_items: int, config, seed: Tuple[int, ...]):
    """Makes the tables.

    Args:
      num_users: rows of the user table.
      num_items: rows of the item table.
      config: `config.model`.
      seed: counter of the weights' random start.
    """
    super().__init__()
    self.config = config
    self.num_users = num_users
    self.num_items = num_items
    self._seed = seed
    self._graph: Optional[views.Graph] = None
    # Weights are made here, not when the model is first called: Keras need not wait for that.
    self.built = True
    self.user_table = self.matrix('user_table', num_users, config.embedding_dim)
    self.item_table = self.matrix('item_table', num_items, config.embedding_dim)

  def matrix(self, name: str, rows: int, columns: int) -> tf.Variable:
    """A Glorot-uniform [rows, columns] weight whose start depends on its name and the seed only."""
    start = glorot(host_generator(*self._seed, name=name), rows, columns)
    return self.add_weight(name=name, shape=start.shape, initializer=lambda shape, dtype=None: tf.constant(start))

  def vector(self, name: str, size: int) -> tf.Variable:
    """A [size] weight that starts at zero, such as a bias."""
    return self.add_weight(name=name, shape=[size], initializer='zeros')

  def connect(self, graph: views.Graph) -> 'Backbone':
    """Sets the message-passing graph that `call` uses, and returns the model.

    The graph is no part of the weights or of `get_config`: a model that was loaded is connected again.
    """
    self._graph = graph
    return self

  @tf.autograph.experimental.do_not_convert
  def call(self, inputs: Tuple[tf.Tensor, tf.Tensor], training: bool = False) -> tf.Tensor:
    """Scores of pairs.

    Args:
      inputs: [n] integer numbers of users, and [n] of items.
      training: whether dropout is on; else scores are deterministic, over all neighbours.

    Returns:
      [n] float32 dot products of final representations.

    Raises:
      UserError: if the model is not connected to a graph.
    """
    if self._graph is None:
      raise UserError('the model has no graph to pass messages over: call model.connect(graph) first.')
    users, items = (tf.cast(tf.reshape(nodes, [-1]), tf.int32) for nodes in inputs)
    seed = tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32) if training else tf.constant([0, 0])
    distinct_users, user_places = tf.unique(users)
    distinct_items, item_places = tf.unique(items)
    encoding = self.encode(self._graph.plain(), distinct_users, distinct_items, Seeds(seed), training)
    return tf.reduce_sum(products.rows_at(encoding.user[-1], user_places)
                         * products.rows_at(encoding.item[-1], item_places), axis=1)

  def summary(self, *arguments, print_fn=print, **options) -> None:
    """Keras's summary, which lists layers, after a line for each weight, as a backbone has weights of its own."""
    for weight in self.weights:
      print_fn(f'{weight.name:<30}{tuple(weight.shape)!s:<22}{weight.shape.num_elements():>13,}')
    super().summary(*arguments, print_fn=print_fn, **options)

  def get_config(self) -> Dict[str, Any]:
    """What `from_config` makes the same model of, with its random start; fit for JSON."""
    return {'num_users': self.num_users, 'num_items': self.num_items, 'config': self.config.to_dict(),
            'seed': list(self._seed)}

  @classmethod
  def from_config(cls, config, custom_objects=None) -> 'Backbone':
    del custom_objects
    return cls(**{**config, 'config': config_dict.ConfigDict(config['config']), 'seed': tuple(config['seed'])})

  @property
  @abc.abstractmethod
  def num_layers(self) -> int:
    """Length of the lists that `encode` returns."""

  @classmethod
  @abc.abstractmethod
  def size_of(cls, config) -> int:
    """Size D of the final representations, from `config.model`."""

  @property
  def representation_dim(self) -> int:
    """Size D of the final representations."""
    return self.size_of(self.config)

  @classmethod
  def draws(cls, config) -> Tuple[int, ...]:
    """How often neighbours are drawn for the nodes at each distance from those asked for; costs are estimated by it."""
    del config
    return 1, 1

  @abc.abstractmethod
  def encode(self, view: views.View, users: Optional[tf.Tensor], items: Optional[tf.Tensor],
             seeds: Seeds, training: bool) -> Encoding:
    """Representations of the given nodes.

    Args:
      view: the graph; a sampled view needs the nodes to compute.
      users: [n] int32, distinct, or None for all users in order.
      items: [m] int32, distinct, or None for all items in order.
      seeds: for dropout.
      training: whether dropout is on.
    """

  def partners(self, view: views.View, users: tf.Tensor, items: tf.Tensor, seeds: Seeds):
    """Nodes that `regularisers` compares those of a batch with, or None.

    Args:
      view: the graph.
      users: [B] int32 users of the pairs.
      items: [B] int32 their positives.
      seeds: for draws.

    Returns:
      For the users, and for the items: partners [B] int32 and [B] float32, 1 where there is one, else 0.
    """
    del view, users, items, seeds
    return

  def regularisers(self, user_gaps: tf.Tensor, item_gaps: tf.Tensor) -> Dict[str, tf.Tensor]:
    """Named, weighted sums over the batch for the partners asked for.

    Args:
      user_gaps: [B, D] final representations of the users minus their partners'; 0 without a partner.
      item_gaps: [B, D] likewise of the positives.
    """
    del user_gaps, item_gaps
    return {}

  def representer(self, graph: views.Graph):
    """A function that gives the current final representations of all users and items.

    They are deterministic: all neighbours, no dropout.
    """
    return traced.Method(_Deterministic(self, graph), 'final')

  def layers_of_all(self, graph: views.Graph) -> Encoding:
    """Every layer of all users and items, deterministic."""
    return Encoding(*traced.Method(_Deterministic(self, graph), 'layers')())

  def grow_from(self, old: 'Backbone', graph: views.Graph) -> None:
    """Takes over a smaller model: its weights, and its rows as the first rows of the tables.

    The rows of new nodes keep their random start or, with `new_rows = 'neighbours'`, become the mean
    of their old neighbours' rows in the training graph where they have any.
    """
    for name, variable in self.named_variables().items():
      source = old.named_variables()[name]
      if variable.shape == source.shape:
        variable.assign(source)
    sides = ((self.user_table, old.user_table, old.item_table, 'ui'),
             (self.item_table, old.item_table, old.user_table, 'iu'))
    for table, source, others, relation in sides:
      rows = table.numpy()
      count = source.shape[0]
      rows[:count] = source.numpy()
      if self.config.new_rows == 'neighbours':
        edges = graph.relations[relation].table
        new = edges.select(np.arange(count, len(rows)))
        known = new.matrix()[:, :others.shape[0]]
        degree = np.asarray(known.sum(axis=1)).ravel()
        mean = (known @ others.numpy()) / np.maximum(degree, 1.)[:, None]
        rows[count:][degree > 0] = mean[degree > 0]
      table.assign(rows)

  def named_variables(self) -> Dict[str, tf.Variable]:
    """Trainable variables by their short names, in a fixed order."""
    return {v.name.split(':')[0].split('/')[-1]: v for v in self.trainable_variables}
