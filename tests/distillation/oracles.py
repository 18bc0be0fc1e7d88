"""A hand-sized teacher and student, and what the losses are made of, in plain NumPy loops."""
import numpy as np
import tensorflow as tf

from graphsane_tf.backbones.base import Encoding
from graphsane_tf.backbones.lightgcn import LightGCN
from graphsane_tf.config import default_config, resolved
from graphsane_tf.blocks.stream import Block
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.distillation.base import Teacher
from graphsane_tf.graph import views
from graphsane_tf.random import Seeds
from graphsane_tf.blocks.batch import Batch
from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.context import BlockContext

# Users 0 to 3 and items 0 to 4 are old; user 4 and item 5 come with the block.
OLD = [(0, 0), (1, 0), (0, 1), (1, 2), (2, 1), (2, 3), (3, 4), (0, 2), (3, 3)]
NEW = [(0, 3), (2, 0), (4, 1), (3, 5), (4, 5), (1, 4)]


def log() -> Interactions:
  user, item = np.array(OLD + NEW + [(0, 4), (1, 1)], np.int32).T
  return Interactions(user, item, np.arange(len(user)), np.array(list('abcde'), object),
                      np.array(list('uvwxyz'), object))


def context() -> BlockContext:
  stop = len(OLD) + len(NEW)
  first = Block(0, slice(0, len(OLD)), slice(0, 0), slice(0, 0), 4, 5)
  second = Block(1, slice(len(OLD), stop), slice(0, 0), slice(0, 0), 5, 6)
  return contexts.cut(log(), second, first)


def neighbours(kind: str, node: int):
  """Old neighbours of a user or item."""
  return sorted(b if kind == 'user' else a for a, b in OLD if (a if kind == 'user' else b) == node)


def config(**changes):
  c = default_config()
  c.model.embedding_dim = 3
  c.model.num_layers = 1
  c.model.num_knn = 2
  c.update_from_flattened_dict(changes)
  return resolved(c)


class Case:
  """A teacher, a student that has moved away from it (unless `shift` is 0) and a batch of pairs.

  Attributes:
    rows: 'user' and 'item' to the student's [n, d] embeddings.
    old_rows: the same of the teacher.
  """

  def __init__(self, options, shift: float = 1., scale: float = 1.5):
    rng = np.random.default_rng(3)
    self.config = options
    self.context = context()
    graph = views.Graph(contexts.cut(log(), Block(
        0, slice(0, len(OLD)), slice(0, 0), slice(0, 0), 4, 5), None).history, 0)
    old = LightGCN(4, 5, options.model, (0, 0))
    self.student = LightGCN(5, 6, options.model, (0, 1))
    self.rows, self.old_rows = {}, {}
    for kind, number in (('user', 4), ('item', 5)):
      before = rng.normal(size=(number, 3)).astype(np.float32) * scale
      after = rng.normal(size=(number + 1, 3)).astype(np.float32) * scale
      after[:number] = before + shift * after[:number]
      getattr(old, f'{kind}_table').assign(before)
      getattr(self.student, f'{kind}_table').assign(after)
      self.rows[kind], self.old_rows[kind] = after, before
    self.old_backbone = old
    self.teacher = Teacher(old, graph)
    self.graph = views.Graph(self.context.history, 0)

  def batch(self) -> Batch:
    """All pairs of the block with two negatives each; some of either are new nodes."""
    users, items = (tf.constant(part, tf.int32) for part in np.array(NEW).T)
    negatives = tf.constant([[1, 5], [2, 4], [0, 2], [0, 1], [3, 4], [3, 5]], tf.int32)
    distinct = tf.unique(users)[0], tf.unique(items)[0]
    asked = tf.unique(tf.concat([items, tf.reshape(negatives, [-1])], axis=0))[0]
    encoding: Encoding = self.student.encode(
        self.graph.whole(), distinct[0], asked, Seeds(tf.constant([0, 0])), training=False)
    return Batch(users, items, negatives, *distinct, encoding, self.student,
                 Seeds(tf.constant([1, 2])))

  def losses(self, kind):
    """The distiller's losses of the batch, as floats."""
    distiller = kind(self.config, self.context, self.teacher, (0, 1))
    return {name: float(value) for name, value in distiller.losses(self.batch()).items()}


def softmax(logits):
  shares = np.exp(np.asarray(logits, np.float64) - np.max(logits))
  return shares / shares.sum()


def kl(p, q):
  return float(np.sum(p * np.log(p / q)))
