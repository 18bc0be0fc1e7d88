"""The train step as one would first write it: nothing is shared. Only for comparison."""
import tensorflow as tf

from graphsane_tf.distillation.contrastive import Sgct, contrastive_loss
from graphsane_tf.graph import views
from graphsane_tf.training.batch import Batch
from graphsane_tf.training.step import TrainStep


def plain_pair_scores(user_rows: tf.Tensor, item_table: tf.Tensor, items: tf.Tensor) -> tf.Tensor:
  """`scores.pair_scores` with a row gathered for each pair."""
  return tf.linalg.matvec(tf.gather(item_table, items), user_rows)


def plain_l2_loss(table: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
  """`scores.gathered_l2_loss` with a row gathered for each place."""
  return tf.nn.l2_loss(tf.gather(table, places))


def plain_gaps(table: tf.Tensor, places: tf.Tensor, others: tf.Tensor,
               present: tf.Tensor) -> tf.Tensor:
  """`products.row_gaps` with both rows gathered."""
  return present[:, None] * (tf.gather(table, places) - tf.gather(table, others))


class PlainView(views.SampledView):
  """A few random neighbours of each node; a node that occurs twice is computed twice."""

  def mean(self, relation, nodes, rows, fanout):
    found, drawn = views.draw_neighbours(
        self.relations[relation], nodes, fanout, self._seeds.next())
    values = rows(tf.reshape(found, [-1]))
    values = tf.reshape(values, [-1, fanout, values.shape[1]])
    share = drawn / tf.maximum(tf.reduce_sum(drawn, axis=1, keepdims=True), 1.)
    return tf.einsum('nf,nfd->nd', share, values)


class PlainSgct(Sgct):
  """SGCT with a row gathered for each (anchor, neighbour)."""

  def _layer_loss(self, layer, batch, drawn):
    total = 0.
    for relation, ((positives, positive_mask), (negatives, negative_mask)) in drawn.items():
      kind, other = ('user', 'item') if relation == 'ui' else ('item', 'user')
      _, anchors = self._anchors(kind, layer, batch)
      rows = self.teacher.embedding(other)
      total += contrastive_loss(
          plain_pair_scores(anchors, rows, positives), positive_mask,
          plain_pair_scores(anchors, rows, negatives), negative_mask, self.options.temperature)
    return total


def _first_places(values: tf.Tensor):
  """Distinct values, and the place of each one's first occurrence."""
  distinct, number = tf.unique(values)
  return distinct, tf.math.unsorted_segment_min(
      tf.range(tf.size(values)), number, tf.size(distinct))


def _in_front(first: tf.Tensor, size: tf.Tensor):
  """An order of `size` places that begins with `first`, and where each place went."""
  others = tf.scatter_nd(first[:, None], tf.ones_like(first), [size])
  order = tf.concat([first, tf.cast(tf.where(others == 0)[:, 0], tf.int32)], axis=0)
  return order, tf.math.invert_permutation(order)


class PlainStep(TrainStep):
  """The same losses; each occurrence of a node is encoded, each pair's row gathered."""

  pair_scores = staticmethod(plain_pair_scores)
  gathered_l2_loss = staticmethod(plain_l2_loss)
  rows_at = staticmethod(tf.gather)
  row_gaps = staticmethod(plain_gaps)

  def view(self, seeds):
    return PlainView(self._graph, seeds)

  def _encode(self, view, users, positives, negatives, seeds):
    partners = self._backbone.partners(view, users, positives, seeds)
    asked_users, asked_items = [users], [positives, tf.reshape(negatives, [-1])]
    if partners is not None:
      asked_users.append(partners[0][0])
      asked_items.append(partners[1][0])
    asked_users, asked_items = tf.concat(asked_users, axis=0), tf.concat(asked_items, axis=0)
    # The losses of distinct nodes want one occurrence of each in front.
    distinct_users, first_users = _first_places(users)
    distinct_items, first_items = _first_places(positives)
    user_order, user_places = _in_front(first_users, tf.size(asked_users))
    item_order, item_places = _in_front(first_items, tf.size(asked_items))
    encoding = self._backbone.encode(
        view, tf.gather(asked_users, user_order), tf.gather(asked_items, item_order), seeds,
        training=True)
    size, count = tf.size(users), tf.size(negatives)
    if partners is not None:
      partners = ((user_places[size:], partners[0][1]),
                  (item_places[size + count:], partners[1][1]))
    batch = Batch(users, positives, negatives, distinct_users, distinct_items, encoding,
                  self._backbone, seeds)
    negative_places = tf.reshape(item_places[size:size + count], [-1, negatives.shape[1]])
    return (batch, user_places[:size],
            tf.concat([item_places[:size, None], negative_places], axis=1), partners)
