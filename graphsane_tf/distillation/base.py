"""What a distiller is, and the teacher it learns from."""
import abc
from typing import Dict, List

import tensorflow as tf

from graphsane_tf.backbones.base import Backbone
from graphsane_tf.graph import views


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
    self._layers = None

  def layers(self, kind: str) -> List[tf.Tensor]:
    """True outputs of every layer for all nodes of a kind ('user' or 'item'), deterministic.

    Computed once and held as constants: no gradient can reach them.
    """
    if self._layers is None:
      self._layers = self._backbone.layers_of_all(self.graph)
    return [tf.stop_gradient(layer) for layer in getattr(self._layers, kind)]


class Distiller(tf.Module, abc.ABC):
  """Adds losses that keep the student close to what the teacher knew.

  To add one: subclass, implement `losses`, add a line to the registry in
  `graphsane_tf/distillation/__init__.py`. `losses` runs inside the train step's `tf.function`.
  """

  def __init__(self, config, context, teacher: Teacher, seed):
    """Prepares for a block: the whole configuration, its `BlockContext`, (seed, block)."""
    super().__init__()
    self.config = config
    self.context = context
    self.teacher = teacher
    self.seed = seed

  @abc.abstractmethod
  def losses(self, batch) -> Dict[str, tf.Tensor]:
    """Named, weighted scalar losses of a `graphsane_tf.training.batch.Batch`."""


class NoDistiller(Distiller):
  """Fine-tuning: nothing holds the student back."""

  def losses(self, batch):
    return {}
