"""What a distiller is, and the teacher it learns from."""
import abc
from typing import Any, Callable, Dict, List, Optional, Tuple

import tensorflow as tf

from graphsane_tf.backbones.base import Backbone, Encoding
from graphsane_tf.graph import knn, views


class Teacher:
  """The frozen model of the block before, with the graph it was trained on.

  Attributes:
    graph: the teacher's training graph, over the users and items it knew.
    num_users, num_items: how many those are; their numbers come first in the student.
  """

  def __init__(self, backbone: Backbone, graph: views.Graph):
    self.graph = graph
    self.num_users = backbone.num_users
    self.num_items = backbone.num_items
    self._backbone = backbone
    self._embedding: Dict[str, tf.Tensor] = {}
    self._layers: Optional[Encoding] = None
    self._nearest: Dict[str, views.Relation] = {}

  def embedding(self, kind: str) -> tf.Tensor:
    """[n, d] embeddings of all nodes of a kind ('user' or 'item'), a constant."""
    if kind not in self._embedding:
      # Also when first asked for while a function is traced, so that it is not part of every step.
      with tf.init_scope():
        table = getattr(self._backbone, f'{kind}_table')
        self._embedding[kind] = tf.constant(table.numpy())
    return self._embedding[kind]

  def layers(self, kind: str) -> List[tf.Tensor]:
    """True outputs of every layer for all nodes of a kind ('user' or 'item'), deterministic.

    Computed once, outside of any traced function, and held as constants: no gradient can reach
    them.
    """
    if self._layers is None:
      with tf.init_scope():
        self._layers = self._backbone.layers_of_all(self.graph)
    return [tf.stop_gradient(layer) for layer in getattr(self._layers, kind)]

  def relation(self, name: str) -> views.Relation:
    """'ui', 'iu', 'uu' or 'ii' of the teacher's graph.

    Nearest neighbours are the ones the teacher was trained with; for a backbone that has none they
    are built from the same edges.
    """
    relation = self.graph.relations.get(name) or self._nearest.get(name)
    if relation is None:
      ends = {'uu': 'ui', 'ii': 'iu'}[name]
      with tf.init_scope():
        relation = views.Relation(knn.cosine_neighbours(
            self.graph.relations[ends].table, self._backbone.config.num_knn))
      self._nearest[name] = relation
    return relation


class Distiller(tf.Module, abc.ABC):
  """Adds losses that keep the student close to what the teacher knew.

  To add one: subclass, implement `losses`, and register it (`graphsane_tf.registry`); docs/extending.md
  has a whole example. `losses` runs inside the train step's `tf.function`.
  """

  # Configuration fields that weigh its losses; with all of them 0, training equals fine-tuning.
  weight_fields: Tuple[str, ...] = ()

  def __init__(self, config, context, teacher: Teacher, seed):
    """Prepares for a block: the whole configuration, its `BlockContext`, (seed, block)."""
    super().__init__()
    self.config = config
    self.context = context
    self.teacher = teacher
    self.seed = seed

  @abc.abstractmethod
  def losses(self, batch) -> Dict[str, tf.Tensor]:
    """Named, weighted scalar losses of a `graphsane_tf.blocks.batch.Batch`.

    Random draws come from `batch.seeds.child('distiller')`, so that a distiller changes no other
    draw of the step.
    """


class NoDistiller(Distiller):
  """Fine-tuning: nothing holds the student back."""

  def losses(self, batch):
    return {}


def weighted(weight: float, term: Callable[[], tf.Tensor]) -> tf.Tensor:
  """weight * term(), or a constant 0 without computing the term when its weight is 0.

  A term of weight 0 must leave no trace, and a zero gradient may: it turns a sparse gradient into a
  dense one, which can be summed, hence rounded, in another order.
  """
  return weight * term() if weight else tf.zeros([])


def outside_loops(make: Callable[[], Any]) -> Any:
  """make(), placed outside of every loop of the function that is being traced.

  The train step runs inside a loop in one `tf.function`. What is the same in each of its steps, like
  a graph's sparse matrices, is made once before the loop. Eagerly, this is make().
  """
  if tf.executing_eagerly():
    return make()
  graph = tf.compat.v1.get_default_graph()
  while getattr(graph.outer_graph, 'building_function', False):
    graph = graph.outer_graph
  with graph.as_default():
    return make()
