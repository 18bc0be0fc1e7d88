"""One step's pairs with the student's representations of their nodes."""
import dataclasses
from typing import Tuple

import tensorflow as tf

from graphsane_tf.backbones.base import Backbone, Encoding
from graphsane_tf.random import Seeds


@dataclasses.dataclass(frozen=True)
class Batch:
  """What losses are computed from.

  Attributes:
    users: [B] int32 users of the pairs.
    positives: [B] int32 items of the pairs.
    negatives: [B, N] int32, uniform ones first.
    distinct_users: [n] int32 the users, each once.
    distinct_items: [m] int32 the positives, each once.
    user_places: [n] rows of `distinct_users` in the encoding.
    item_places: [m] rows of `distinct_items` in the encoding.
    encoding: the student's layers; in whole-graph propagation, of all nodes.
    backbone: the student.
    seeds: for further random draws.
  """
  users: tf.Tensor
  positives: tf.Tensor
  negatives: tf.Tensor
  distinct_users: tf.Tensor
  distinct_items: tf.Tensor
  user_places: tf.Tensor
  item_places: tf.Tensor
  encoding: Encoding
  backbone: Backbone
  seeds: Seeds

  @property
  def size(self) -> tf.Tensor:
    """Number of pairs, as float32."""
    return tf.cast(tf.size(self.users), tf.float32)

  def user_rows(self, layer: int) -> tf.Tensor:
    """[n, d_l] a layer of the distinct users."""
    return tf.gather(self.encoding.user[layer], self.user_places)

  def item_rows(self, layer: int) -> tf.Tensor:
    """[m, d_l] a layer of the distinct positive items."""
    return tf.gather(self.encoding.item[layer], self.item_places)

  def old(self, kind: str, layer: int, teacher) -> Tuple[tf.Tensor, tf.Tensor]:
    """Distinct nodes of a kind ('user' or 'item') that the teacher knows: numbers and a layer."""
    if kind == 'user':
      nodes, places, known = self.distinct_users, self.user_places, teacher.num_users
    else:
      nodes, places, known = self.distinct_items, self.item_places, teacher.num_items
    keep = nodes < known
    table = getattr(self.encoding, kind)[layer]
    return nodes[keep], tf.gather(table, places[keep])
