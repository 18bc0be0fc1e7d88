"""A train step of MGCCF with SGCT and SANE as one would first write it, to compare the real one with.

It shares the draws with the real step (neighbours, negatives, partners, anchors) and nothing else: every
occurrence of a node is encoded, every row of a pair is gathered, and TensorFlow derives all gradients.
"""
from typing import Callable, Dict

import tensorflow as tf

from graphsane_tf.graph import views
from graphsane_tf.graph.draws import Complement
from graphsane_tf.random import Seeds


def _mean(relation: views.Relation, nodes: tf.Tensor, rows: Callable, fanout: int, seed) -> tf.Tensor:
  """[n, d] mean over a few random neighbours of each of [n] nodes, of the rows that `rows` gives."""
  found, drawn = views.draw_neighbours(relation, nodes, fanout, seed)
  values = rows(tf.reshape(found, [-1]))
  values = tf.reshape(values, [-1, fanout, values.shape[1]])
  number = tf.maximum(tf.reduce_sum(drawn, axis=1, keepdims=True), 1.)
  return tf.einsum('nf,nfd->nd', drawn / number, values)


def _first_of_each(values: tf.Tensor):
  """Distinct values in order, and the place where each occurs first."""
  distinct, number = tf.unique(values)
  return distinct, tf.math.unsorted_segment_min(
      tf.range(tf.size(values)), number, tf.size(distinct))


def clustering_loss(vectors: tf.Tensor, centres: tf.Tensor, nu: float) -> tf.Tensor:
  """KL(P || Q) over [n, D] vectors and [K, D] centres, equations 11 to 13."""
  distance = tf.reduce_sum((vectors[:, None, :] - centres) ** 2, axis=2)
  kernel = (1. + distance / nu) ** (-(nu + 1.) / 2.)
  q = kernel / tf.reduce_sum(kernel, axis=1, keepdims=True)
  sharp = q ** 2 / tf.reduce_sum(q, axis=0)
  p = tf.stop_gradient(sharp / tf.reduce_sum(sharp, axis=1, keepdims=True))
  return tf.reduce_sum(p * tf.math.log(p / q))


class PlainStep:
  """Draws, encodes, computes the losses and updates the weights, all in the plainest way."""

  def __init__(self, config, context, graph: views.Graph, backbone, sampler, teacher, optimizer):
    """Takes the parts of a block.

    Args:
      config: the whole configuration.
      context: the block's `BlockContext`.
      graph: message-passing graph; it is always sampled.
      backbone: an MGCCF, for its weights.
      sampler: a SANE with structural clusters, for its draws and centres.
      teacher: the model before the block.
      optimizer: a Keras optimizer whose slots exist.
    """
    self._config = config
    self._graph = graph
    self._weights = backbone
    self._sampler = sampler
    self._teacher = teacher
    self._optimizer = optimizer
    self._uniform = Complement(context.positives)
    self._others = {name: Complement(teacher.relation(name).table) for name in ('ui', 'iu')}
    self._users = tf.constant(context.users, tf.int32)
    self._items = tf.constant(context.items, tf.int32)
    self.variables = list(backbone.trainable_variables) + list(sampler.trainable_variables)

  def _encode(self, kind: str, nodes: tf.Tensor, seeds: Seeds) -> tf.Tensor:
    """[n, 3 d] final representations of [n] nodes of kind 'u' or 'i'."""
    weights, model, relations = self._weights, self._config.model, self._graph.relations
    tables = {'u': weights.user_table, 'i': weights.item_table}
    inner, outer, near = {
        'u': (weights.user_inner, weights.user_outer, weights.user_knn),
        'i': (weights.item_inner, weights.item_outer, weights.item_knn)}[kind]
    other = 'i' if kind == 'u' else 'u'

    def combine(own, neighbourhood, weight):
      if model.dropout:
        neighbourhood = tf.nn.experimental.stateless_dropout(
            neighbourhood, model.dropout, seeds.next())
      return tf.tanh(tf.concat([own, neighbourhood], axis=1) @ weight)

    def first_layer(neighbours):
      mean = _mean(relations[other + kind], neighbours, lambda at: tf.gather(tables[kind], at),
                   model.fanout[1], seeds.next())
      return combine(tf.gather(tables[other], neighbours), mean, inner)

    own = tf.gather(tables[kind], nodes)
    mean = _mean(relations[kind + other], nodes, first_layer, model.fanout[0], seeds.next())
    like = _mean(relations[kind + kind], nodes, lambda at: tf.gather(tables[kind], at), model.num_knn,
                 seeds.next())
    return tf.concat([tf.tanh(combine(own, mean, outer)), tf.tanh(combine(own, like, near)), own],
                     axis=1)

  def losses(self, users: tf.Tensor, positives: tf.Tensor, seeds: Seeds) -> Dict[str, tf.Tensor]:
    """Every loss of a batch of [B] users and [B] positives, by name."""
    config, size = self._config, tf.cast(tf.size(users), tf.float32)
    num_uniform = config.train.num_negatives - config.train.num_sampler_negatives
    uniform, valid = self._uniform.draw(users, num_uniform, seeds.next())
    draw = self._sampler.draw(users, positives, seeds)
    mates = [views.draw_neighbours(self._graph.relations[relation], nodes, 1, seeds.next())
             for relation, nodes in (('uu', users), ('ii', positives))]
    negatives = tf.concat([uniform, draw.items], axis=1)

    user = self._encode('u', users, seeds)
    positive = self._encode('i', positives, seeds)
    negative = self._encode('i', tf.reshape(negatives, [-1]), seeds)
    negative = tf.reshape(negative, [-1, negatives.shape[1], negative.shape[1]])

    gap = tf.reduce_sum(user * positive, axis=1)[:, None] - tf.linalg.matvec(negative, user)
    # The logistic loss of a triplet is -log sigmoid of its gap.
    triplet = -tf.math.log_sigmoid(gap) * tf.concat([valid, draw.weight], axis=1)
    squares = sum(tf.reduce_sum(rows ** 2) for rows in (user, positive, negative))
    proximity = 0.
    for kind, nodes, rows, (mate, present) in zip(
        'ui', (users, positives), (user, positive), mates):
      table = self._weights.user_table if kind == 'u' else self._weights.item_table
      mate = mate[:, 0]
      far = tf.reduce_sum((rows - self._encode(kind, mate, seeds)) ** 2, axis=1)
      far += tf.reduce_sum((tf.gather(table, nodes) - tf.gather(table, mate)) ** 2, axis=1)
      proximity += tf.reduce_sum(present[:, 0] * far)
    _, first = _first_of_each(positives)
    clusters = config.clustering
    return {
        'bpr': tf.reduce_sum(triplet[:, :num_uniform]) / size,
        'sane': tf.reduce_sum(triplet[:, num_uniform:]) / size,
        'l2': config.model.l2 * squares / 2. / size,
        'proximity': config.model.proximity * proximity / size,
        'kl': clusters.beta / size * clustering_loss(
            tf.gather(positive, first), self._sampler.clusters.centres, clusters.nu),
        'sgct': config.sgct.weight * self._distillation(users, positives, seeds.child('distiller'))}

  def _distillation(self, users, positives, seeds: Seeds) -> tf.Tensor:
    """The contrastive term: student's embeddings of old nodes against the teacher's neighbours."""
    options, teacher, total = self._config.sgct, self._teacher, 0.
    draws = {}
    for relation, nodes, known in (('ui', users, teacher.num_users),
                                   ('iu', positives, teacher.num_items)):
      nodes, _ = _first_of_each(nodes)
      nodes = tf.boolean_mask(nodes, nodes < known)
      near = views.draw_neighbours(
          teacher.relation(relation), nodes, options.num_positives, seeds.next())
      draws[relation] = nodes, near, self._others[relation].draw(
          nodes, options.num_negatives, seeds.next())
    tables = {'ui': (self._weights.user_table, teacher.embedding('item')),
              'iu': (self._weights.item_table, teacher.embedding('user'))}
    for relation, (nodes, (near, is_near), (far, is_far)) in draws.items():
      table, old = tables[relation]
      rows = tf.gather(old, tf.concat([near, far], axis=1))
      share = tf.exp(tf.linalg.matvec(rows, tf.gather(table, nodes)) / options.temperature)
      share *= tf.concat([is_near, is_far], axis=1)
      share /= tf.reduce_sum(share, axis=1, keepdims=True)
      log_share = is_near * tf.math.log(tf.where(is_near > 0, share[:, :near.shape[1]], 1.))
      # Every node that the teacher knows has a neighbour there.
      total -= tf.reduce_mean(tf.reduce_sum(log_share, axis=1) / tf.reduce_sum(is_near, axis=1))
    return total

  def compile(self) -> Callable[..., tf.Tensor]:
    """A `tf.function` of (order, seed, first, count), like `TrainStep.compile`'s: the summed loss."""
    size = self._config.train.batch_size

    @tf.function(autograph=False, input_signature=[
        tf.TensorSpec([None], tf.int32), tf.TensorSpec([2], tf.int32),
        tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)])
    def run(order, seed, first, count):

      def step(number, total):
        rows = order[number * size:(number + 1) * size]
        seeds = Seeds(tf.random.experimental.stateless_fold_in(seed, number))
        with tf.GradientTape() as tape:
          loss = sum(self.losses(
              tf.gather(self._users, rows), tf.gather(self._items, rows), seeds).values())
        gradients = tape.gradient(loss, self.variables)
        # TensorFlow adds up the rows of a gathered table's gradient here.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        self._optimizer.apply_gradients(list(zip(gradients, self.variables)))
        return number + 1, total + loss

      return tf.while_loop(lambda number, _: number < first + count, step, (first, 0.))[1]

    return run
