"""One step's pairs with the student's representations of their nodes."""
import dataclasses
from typing import Any, ClassVar, List, Optional, Tuple

import tensorflow as tf

from graphsane_tf.graph import products
from graphsane_tf.random import Seeds


@dataclasses.dataclass(frozen=True)
class Encoding:
  """Representations of some users and items, layer by layer.

  Attributes:
    user: one [n, d_l] tensor a layer; the first is the embedding, the last the final representation.
    item: one [m, d_l] tensor a layer.
  """
  host: ClassVar[Tuple[str, ...]] = ()
  user: List[tf.Tensor]
  item: List[tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Batch:
  """What losses are computed from.

  Attributes:
    users: [B] int32 users of the pairs.
    positives: [B] int32 items of the pairs.
    negatives: [B, N] int32, uniform ones first.
    distinct_users: [n] int32 the users, each once.
    distinct_items: [m] int32 the positives, each once.
    encoding: the student's layers; its first rows are the distinct users, and the distinct items.
    backbone: the student, a `Backbone`.
    seeds: for further random draws.
    final_items: [m, D] final representations of the distinct items, or None if `item_rows` is to find them.
  """
  users: tf.Tensor
  positives: tf.Tensor
  negatives: tf.Tensor
  distinct_users: tf.Tensor
  distinct_items: tf.Tensor
  encoding: Encoding
  backbone: Any
  seeds: Seeds
  final_items: Optional[tf.Tensor] = None

  @property
  def size(self) -> tf.Tensor:
    """Number of pairs, as float32."""
    return tf.cast(tf.size(self.users), tf.float32)

  def user_rows(self, layer: int) -> tf.Tensor:
    """[n, d_l] a layer of the distinct users."""
    return products.first_rows(self.encoding.user[layer], tf.size(self.distinct_users))

  def item_rows(self, layer: int) -> tf.Tensor:
    """[m, d_l] a layer of the distinct positive items."""
    if layer == -1 and self.final_items is not None:
      return self.final_items
    return products.first_rows(self.encoding.item[layer], tf.size(self.distinct_items))

  def old(self, kind: str, layer: int, teacher) -> Tuple[tf.Tensor, tf.Tensor]:
    """Distinct nodes of a kind ('user' or 'item') that the teacher knows: numbers and a layer."""
    nodes = self.distinct_users if kind == 'user' else self.distinct_items
    known = teacher.num_nodes[kind]
    places = tf.cast(tf.squeeze(tf.where(nodes < known), axis=1), tf.int32)
    return (tf.gather(nodes, places),
            products.rows_at(getattr(self.encoding, kind)[layer], places))
