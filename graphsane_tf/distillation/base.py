"""What a distiller is, and the teacher it learns from."""
import abc
from typing import Any, Callable, Dict, List, Optional, Tuple

import tensorflow as tf

from graphsane_tf.backbones.base import Backbone, Encoding
from graphsane_tf.graph import views


class Teacher(tf.keras.Model):
  """The frozen model of the block before, with the graph it was trained on.

  A Keras model with a copy of that model's weights, none of which is trainable; called with pairs, it gives their
  scores. What it was copied from may change without it.

  Attributes:
    backbone: the copy.
    graph: the teacher's training graph, over the users and items it knew.
    num_users, num_items: how many those are; their numbers come first in the student.
    num_nodes: the same as int32 scalars by kind ('user' or 'item'), for the train step.
  """

  host = ('num_users', 'num_items')

  def __init__(self, backbone: Backbone, graph: views.Graph):
    super().__init__()
    self.graph = graph
    self.num_users = backbone.num_users
    self.num_items = backbone.num_items
    self.num_nodes = {'user': tf.constant(backbone.num_users), 'item': tf.constant(backbone.num_items)}
    self.backbone = type(backbone).from_config(backbone.get_config()).connect(graph)
    self.backbone.set_weights(backbone.get_weights())
    self.trainable = False
    self.built = True
    self._outputs: Optional[Encoding] = None

  @tf.autograph.experimental.do_not_convert
  def call(self, inputs: Tuple[tf.Tensor, tf.Tensor], training: bool = False) -> tf.Tensor:
    """[n] scores of pairs, from [n] users and [n] items; the same in training as elsewhere."""
    del training
    return tf.stop_gradient(self.backbone(inputs, training=False))

  def embedding(self, kind: str) -> tf.Tensor:
    """[n, d] embeddings of all nodes of a kind ('user' or 'item'); no gradient can reach them."""
    return tf.stop_gradient(getattr(self.backbone, f'{kind}_table'))

  def layers_of(self, kind: str) -> List[tf.Tensor]:
    """True outputs of every layer for all nodes of a kind ('user' or 'item'), deterministic.

    Computed once, outside of any traced function, and held as constants: no gradient can reach
    them.
    """
    if self._outputs is None:
      with tf.init_scope():
        self._outputs = self.backbone.layers_of_all(self.graph)
    return [tf.stop_gradient(layer) for layer in getattr(self._outputs, kind)]

  def relation(self, name: str) -> views.Relation:
    """'ui', 'iu', 'uu' or 'ii' of the teacher's graph.

    Nearest neighbours are the ones the teacher was trained with; for a backbone that has none they
    are built from the same edges.
    """
    if name in self.graph.relations:
      return self.graph.relations[name]
    with tf.init_scope():
      return self.graph.nearest(name, self.backbone.config.num_knn)


class Distiller(tf.Module, abc.ABC):
  """Adds losses that keep the student close to what the teacher knew.

  To add one: subclass, implement `losses`, and register it (`graphsane_tf.registry`); docs/extending.md
  has a whole example. `losses` runs inside the train step's `tf.function`.
  """

  # What the train step must not ask for: it changes from block to block (see `graphsane_tf.traced`).
  host: Tuple[str, ...] = ('context', 'seed')
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

  host = ('context', 'seed', 'teacher')

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
