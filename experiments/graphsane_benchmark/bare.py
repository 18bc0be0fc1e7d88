"""What a train step cannot do without: products, sparse products and gathers. For comparison."""
from typing import Callable

import tensorflow as tf

from graphsane_tf.graph import products, views
from graphsane_tf.random import Seeds
from graphsane_tf.training.block import BlockTrainer
from graphsane_tf.graph.scores import pair_scores


class _DrawnView(views.SampledView):
  """A sampled view whose draws are made in a first, eager pass and used again in later ones."""

  def __init__(self, graph: views.Graph, seeds: Seeds):
    super().__init__(graph, seeds)
    self._known = []
    self._used = None

  def again(self, shift: tf.Tensor) -> '_DrawnView':
    """Begins a pass with the same draws; adds `shift`, 0, to all numbers."""
    self._used = iter([(needed if needed is None else needed + shift, place + shift, share)
                       for needed, place, share in self._known])
    return self

  def mean(self, relation, nodes, rows, fanout):
    if self._used is None:
      self._known.append(self.draw(relation, nodes, rows, fanout))
    needed, place, share = self._known[-1] if self._used is None else next(self._used)
    return products.weighted_sums(rows(needed), place, share)


def _encode(backbone, view: views.View, nodes):
  """MGCCF's layers without dropout and tanh: embedding and final representation of each kind."""
  embedding = {'u': views.Table(backbone.user_table), 'i': views.Table(backbone.item_table)}

  def combine(own, neighbourhood, weight):
    top, bottom = tf.split(weight, 2)
    return own @ top + neighbourhood @ bottom

  def inner(kind, other, weight):
    def rows(at):
      mean = view.mean(kind + other, at, embedding[other], backbone.config.fanout[1])
      return combine(embedding[kind](at), mean, weight)
    return view.share(rows)

  inner_rows = {'u': inner('u', 'i', backbone.item_inner),
                'i': inner('i', 'u', backbone.user_inner)}

  def tower(kind, other, outer_weight, knn_weight):
    own = embedding[kind](nodes[kind])
    mean = view.mean(kind + other, nodes[kind], inner_rows[other], backbone.config.fanout[0])
    near = view.mean(kind + kind, nodes[kind], embedding[kind], backbone.config.num_knn)
    final = tf.concat([combine(own, mean, outer_weight), combine(own, near, knn_weight), own], 1)
    return own, final

  return {'u': tower('u', 'i', backbone.user_outer, backbone.user_knn),
          'i': tower('i', 'u', backbone.item_outer, backbone.item_knn)}


def bare_steps(trainer: BlockTrainer, users: tf.Tensor, positives: tf.Tensor) -> Callable:
  """A function of a count that runs so many bare steps of MGCCF with SGCT and SANE.

  Nodes, negatives and neighbours, also those of a sampled view, are those of one real batch, drawn
  beforehand. A step makes the products, sparse products and gathers of the real one and their
  gradients; it draws nothing, and has no dropout, activations, losses or optimiser.

  Args:
    trainer: its model, sampler and distiller give the sizes.
    users: [B] int32.
    positives: [B] int32.
  """
  step, backbone = trainer.step, trainer.model.backbone
  graph, whole = trainer.model.graph, trainer.propagation == 'whole'
  seeds = Seeds(tf.constant([1, 2]))
  # pylint: disable=protected-access
  uniform, _ = step._uniform.draw(users, step._num_uniform, seeds.next())
  negatives = tf.concat([uniform, trainer.sampler.draw(users, positives, seeds).items], axis=1)
  # Eager sampled views give the places of the real step; a whole one is made inside the function.
  partners = backbone.partners(graph.sampled(seeds), users, positives, seeds)
  all_users, user_places = tf.unique(tf.concat([users, partners[0][0]], axis=0))
  all_items, item_places = tf.unique(
      tf.concat([positives, tf.reshape(negatives, [-1]), partners[1][0]], axis=0))
  size, count = len(users), int(tf.size(negatives))
  pair_items = tf.concat([item_places[:size, None], tf.reshape(
      item_places[size:size + count], [size, -1])], axis=1)
  distinct = {'u': tf.size(tf.unique(users)[0]), 'i': tf.size(tf.unique(positives)[0])}
  anchors = {}
  for relation in ('ui', 'iu'):
    teacher = trainer.distiller.teacher
    known = teacher.num_users if relation == 'ui' else teacher.num_items
    nodes = (all_users if relation == 'ui' else all_items)[:distinct[relation[0]]]
    places = tf.where(nodes < known)[:, 0]
    nodes = tf.gather(nodes, places)
    near, _ = views.draw_neighbours(
        teacher.relation(relation), nodes, trainer.distiller.options.num_positives, seeds.next())
    far, _ = trainer.distiller._complements[relation].draw(
        nodes, trainer.distiller.options.num_negatives, seeds.next())
    anchors[relation] = (tf.cast(places, tf.int32), near, far)
  sampled = _DrawnView(graph, seeds)
  if not whole:
    _encode(backbone, sampled, {'u': all_users, 'i': all_items})
  centres = trainer.sampler.clusters.centres
  variables = step.variables

  def run(view, shift):
    """The gradients; `shift` is 0, but known only when it runs, so nothing is done once for all."""
    with tf.GradientTape() as tape:
      found = _encode(backbone, view, {'u': all_users + shift, 'i': all_items + shift})
      user_rows = products.rows_at(found['u'][1], user_places[:size])
      outputs = [pair_scores(user_rows, found['i'][1], pair_items)]
      for kind, places, (_, present) in zip(
          'ui', ((user_places[:size], user_places[size:]),
                 (item_places[:size], item_places[size + count:])), partners):
        outputs.append(products.row_gaps(found[kind][1], *places, present))
      for relation, (places, near, far) in anchors.items():
        rows = products.rows_at(found[relation[0]][0], places)
        table = trainer.distiller.teacher.embedding('item' if relation == 'ui' else 'user')
        outputs += [pair_scores(rows, table, near), pair_scores(rows, table, far)]
      outputs.append(tf.matmul(
          products.first_rows(found['i'][1], distinct['i']), centres, transpose_b=True))
    upstream = [tf.ones_like(output) for output in outputs]
    gradients = tape.gradient(outputs, variables, output_gradients=upstream)
    # Something of everything is asked for: TensorFlow leaves out what nobody uses.
    return sum(tf.convert_to_tensor(each)[0, 0] for each in (*outputs, *gradients))

  @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
  def steps(number):
    view = graph.whole() if whole else None
    total = 0.
    for step_number in tf.range(number):
      shift = tf.minimum(step_number, 0)
      total += run(view or sampled.again(shift), shift)
    return total

  return steps
