"""How a train step is split over the replicas of a `tf.distribute` strategy, so that it stays the same step.

Every replica draws the whole global batch with its negatives, neighbours and dropout: integers and random bytes cost
little, and being functions of (seed, block, epoch, step) they are the same everywhere and those of a step without a
strategy. Then the work is split:

- nodes: where neighbours are sampled, a replica computes the representations of its part of the distinct nodes, and
  the sum over replicas gives all of them to all. Over the whole graph each replica computes everything: two sparse
  products over all edges cost no more than sending their result.
- pairs: a replica has the losses of its part of the pairs, divided by the pairs of all.
- losses of the whole batch (clustering, distillation) are computed by every replica and count 1 / replicas each: means
  over distinct nodes do not fall into sums over parts of the pairs.

The sum of the gradients over replicas is then that of one device, up to rounding.
"""
import dataclasses
import functools
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import tensorflow as tf

from graphsane_tf import workers
from graphsane_tf.backbones.base import Backbone
from graphsane_tf.blocks.batch import Encoding
from graphsane_tf.graph import products, views
from graphsane_tf.random import Seeds

_SUM = tf.distribute.ReduceOp.SUM


class Alone:
  """A step on one device: everything is its own."""

  host: Tuple[str, ...] = ()

  def run(self, step: Callable[[], Any]) -> Any:
    """What `step` gives; it may call the methods below."""
    return step()

  def view(self, graph: views.Graph, seeds: Seeds) -> views.View:
    """A sampled view."""
    return graph.sampled(seeds)

  def encode(self, backbone: Backbone, view: views.View, users: tf.Tensor, items: tf.Tensor,
             most: Callable[[], Tuple[int, int]], seeds: Seeds) -> Encoding:
    """Representations of distinct nodes.

    Args:
      backbone: the student.
      view: of the graph.
      users: [n] distinct users.
      items: [m] distinct items.
      most: gives numbers than which n and m are never larger.
      seeds: for dropout.
    """
    del most
    return backbone.encode(view, users, items, seeds, training=True)

  def own(self, rows: Any) -> Any:
    """The own pairs' rows of a [B, ...] tensor, of each in a structure or dataclass; None stays None."""
    return rows

  def mean(self, losses: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """What the losses of the own pairs add to the mean over all `size` pairs."""
    del size
    return tf.reduce_mean(losses)

  def part_of(self, losses: Dict[str, tf.Tensor]) -> Dict[str, tf.Tensor]:
    """What losses of the whole batch count here."""
    return losses

  def total(self, values: Any) -> Any:
    """Sums over all replicas, of a structure of tensors that all have."""
    return values


class Replicas(Alone):
  """A step that replicas share; all but `run` and `view` are called inside of `run`."""

  # Its trace is its own.
  host = ('_strategy',)

  def __init__(self, strategy: tf.distribute.Strategy):
    self._strategy = strategy

  @property
  def _place(self) -> Tuple[int, int]:
    """Number of this replica, and of all."""
    context = tf.distribute.get_replica_context()
    return context.replica_id_in_sync_group, context.num_replicas_in_sync

  def run(self, step):
    # What all have is in the first.
    return tf.nest.map_structure(
        lambda value: self._strategy.experimental_local_results(value)[0], self._strategy.run(step))

  def view(self, graph, seeds):
    return _PartView(graph, seeds)

  def encode(self, backbone, view, users, items, most, seeds):
    if view.whole:
      return super().encode(backbone, view, users, items, most, seeds)
    ranges = [self._range(tf.size(nodes)) for nodes in (users, items)]
    parts = [view.part(nodes, tf.range(*ends)) for nodes, ends in zip((users, items), ranges)]
    encoding = backbone.encode(view, *parts, seeds, training=True)
    return Encoding(*(_Layers(self, layers, table, nodes, ends[0], bound) for layers, table, nodes, ends, bound in zip(
        (encoding.user, encoding.item), (backbone.user_table, backbone.item_table), (users, items), ranges, most())))

  def _range(self, size: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
    """First of this replica's part of so many rows, and first after it."""
    number, count = self._place
    return size * number // count, size * (number + 1) // count

  def own(self, rows):
    if rows is None:
      return None
    if dataclasses.is_dataclass(rows):
      return dataclasses.replace(
          rows, **{field.name: self.own(getattr(rows, field.name)) for field in dataclasses.fields(rows)})

    def part(tensor):
      start, stop = self._range(tf.shape(tensor)[0])
      return tensor[start:stop]

    return tf.nest.map_structure(part, rows)

  def mean(self, losses, size):
    return tf.reduce_sum(losses) / size

  def part_of(self, losses):
    _, count = self._place
    return {name: value / count for name, value in losses.items()}

  def total(self, values):
    return tf.distribute.get_replica_context().all_reduce(_SUM, values)


class _PartView(views.SampledView):
  """Draws neighbours of all nodes of the batch as `SampledView` does, and computes those of some."""

  def __init__(self, graph: views.Graph, seeds: Seeds):
    super().__init__(graph, seeds)
    self._parts: Dict[Any, Tuple[tf.Tensor, tf.Tensor]] = {}

  def part(self, nodes: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """The nodes at some places, to ask the view for."""
    some = tf.gather(nodes, places)
    self._parts[some.ref()] = nodes, places
    return some

  def rows_of(self, nodes):
    # A backbone's own list of nodes is all that there is to know.
    return self._parts.get(nodes.ref())

  def draw(self, relation, nodes, rows, fanout):
    known = self.rows_of(nodes)
    if known is None:
      return super().draw(relation, nodes, rows, fanout)
    everyone, places = known
    needed, place, share = super().draw(relation, everyone, rows, fanout)
    place, share = tf.gather(place, places), tf.gather(share, places)
    if needed is None:
      return None, place, share
    own, own_place = tf.unique(tf.reshape(place, [-1]))
    return self.part(needed, own), tf.reshape(own_place, tf.shape(place)), share


class _Layers(Sequence):
  """Layers of all nodes of a batch, each brought together when it is first asked for."""

  def __init__(self, replicas: Replicas, parts: List[tf.Tensor], table: tf.Tensor, nodes: tf.Tensor, first: tf.Tensor,
               most: int):
    """Takes this replica's rows of each layer, of [n] nodes from number `first` on; n is at most `most`."""
    self._replicas, self._parts, self._table = replicas, parts, table
    self._nodes, self._first, self._most = nodes, first, most
    self._known: Dict[int, tf.Tensor] = {}

  def __len__(self) -> int:
    return len(self._parts)

  def __getitem__(self, layer):
    layer = range(len(self))[layer]
    if layer not in self._known:
      self._known[layer] = self._gathered(self._parts[layer]) if layer else views.take(self._table, self._nodes)
    return self._known[layer]

  def _gathered(self, part: tf.Tensor) -> tf.Tensor:
    # Of one size in all steps: within one call of a function TensorFlow's replicas agree on sizes but once.
    rest = self._most - self._first - tf.shape(part)[0]
    padded = tf.pad(part, [[self._first, rest], [0, 0]])
    padded.set_shape([self._most, part.shape[1]])
    return products.first_rows(self._replicas.total(padded), tf.size(self._nodes))


def scoped(make: Callable[..., Any]) -> Callable[..., Any]:
  """The same function; variables that it makes are on every replica."""
  @functools.wraps(make)
  def wrapped(*arguments, **named):
    with workers.current().scope():
      return make(*arguments, **named)
  return wrapped


def of(strategy: Optional[tf.distribute.Strategy]) -> Alone:
  """How a step is split by a strategy; None does not split it."""
  return Alone() if strategy is None else Replicas(strategy)
