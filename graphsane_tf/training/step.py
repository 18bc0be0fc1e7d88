"""The one train step of every method."""
import copy
import dataclasses
from typing import Callable, Dict, List, Optional, Tuple

import tensorflow as tf

from graphsane_tf import traced
from graphsane_tf.backbones.base import Backbone
from graphsane_tf.distillation.base import Distiller, NoDistiller
from graphsane_tf.graph import products, views
from graphsane_tf.memory.offsets import PairOffsets
from graphsane_tf.negatives.base import NegativeSampler
from graphsane_tf.graph.draws import Complement
from graphsane_tf.random import Seeds
from graphsane_tf.blocks.batch import Batch, Encoding
from graphsane_tf.graph.scores import gathered_l2_loss, pair_scores
from graphsane_tf.training import strategies
from graphsane_tf.training.softmax import Softmax

# Room for the losses of a step while they are added up; more is an error at the first trace.
_MAX_LOSSES = 24
# Order of the pairs, seed, first step and number of steps.
_STRETCH = (tf.TensorSpec([None], tf.int32), tf.TensorSpec([2], tf.int32), tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.int32))


class TrainStep:
  """Draws negatives, computes every named loss, updates the weights.

  All losses are on one scale whatever the batch size: sums over a pair's negatives, means over the
  batch's pairs.

  It is traced once for all blocks that are alike (`graphsane_tf.traced`): what differs from block to block is held in
  tensors and variables.

  Attributes:
    loss_names: names of the losses; known once it has been traced.
    num_traces: 1 once it has been traced, or a trace has been found for it.
  """

  host = ('loss_names', 'num_traces', '_distilled', '_named')

  def __init__(self, config, context, graph: views.Graph, backbone: Backbone,
               sampler: NegativeSampler, distiller: Distiller, optimizer, propagation: str,
               offsets: Optional[PairOffsets] = None, strategy: Optional[tf.distribute.Strategy] = None):
    """Joins the parts of a block.

    Args:
      config: the whole configuration.
      context: the block's `BlockContext`, for the positives that are never negatives.
      graph: message-passing graph.
      backbone: the student.
      sampler: fills the last negatives.
      distiller: adds its losses.
      optimizer: an `optimizers.Update` of all variables, or what wraps one.
      propagation: 'whole' or 'sampled'.
      offsets: added to the scores of pairs in the triplet losses; None adds nothing.
      strategy: splits the step over replicas; None does not.
    """
    self.split = strategies.of(strategy)
    self._config = config
    self._graph = graph
    self._backbone = backbone
    self._sampler = sampler
    self._distiller = distiller
    self._optimizer = optimizer
    self._offsets = offsets
    self._whole = propagation == 'whole'
    self._uniform = Complement(context.positives)
    self._num_uniform = config.train.num_negatives - sampler.num_slots
    self._softmax = None
    if config.train.loss == 'softmax':
      self._softmax = Softmax(context, config.train.softmax_temperature, self._num_uniform)
    self._users = tf.constant(context.users, tf.int32)
    self._items = tf.constant(context.items, tf.int32)
    # Whether the sampler has losses of the items; only then has it weights.
    self._learns_items = bool(sampler.trainable_variables)
    self.variables = list(backbone.trainable_variables) + list(sampler.trainable_variables)
    self.loss_names: List[str] = []
    self.num_traces = 0
    # What the distiller's losses are multiplied by, if that is to be found out.
    self.kd_scale: Optional[tf.Variable] = None
    if config.kd_strength and not isinstance(distiller, NoDistiller):
      self.kd_scale = tf.Variable(1., trainable=False, name='kd_scale')
    # Set while it is traced: names of the distiller's losses, and of all.
    self._distilled: List[str] = []
    self._named: List[str] = []

  def _encode(self, view, users, positives, negatives, seeds):
    """Encodes each distinct node that the losses need, once.

    Returns:
      A `Batch`, places [B] of the users and [B, 1 + N] of the items in its encoding, and the partners'
      (places [B], present [B]) for users and items, or None.
    """
    partners = self._backbone.partners(view, users, positives, seeds)
    distinct_users, _ = tf.unique(users)
    distinct_items, _ = tf.unique(positives)
    # The pairs' own nodes come first, so their distinct ones are the first distinct nodes.
    asked_users, asked_items = [users], [positives, tf.reshape(negatives, [-1])]
    if partners is not None:
      asked_users.append(partners[0][0])
      asked_items.append(partners[1][0])
    all_users, user_places = tf.unique(tf.concat(asked_users, axis=0))
    all_items, item_places = tf.unique(tf.concat(asked_items, axis=0))
    encoding = self.split.encode(
        self._backbone, view, all_users, all_items,
        lambda: self._most_distinct(len(asked_users), negatives.shape[1]), seeds)
    final_items = None
    if self._learns_items:
      # Losses of the distinct items; their gradient then costs no more than these rows.
      *layers, final = encoding.item
      final, final_items = products.parted(final, tf.size(distinct_items))
      encoding = Encoding(encoding.user, [*layers, final])
    size, count = tf.size(users), tf.size(negatives)
    negative_places = tf.reshape(
        item_places[size:size + count], [-1, negatives.shape[1]])
    if partners is not None:
      partners = ((user_places[size:], partners[0][1]),
                  (item_places[size + count:], partners[1][1]))
    batch = Batch(users, positives, negatives, distinct_users, distinct_items, encoding,
                  self._backbone, seeds, final_items)
    return (batch, user_places[:size],
            tf.concat([item_places[:size, None], negative_places], axis=1), partners)

  def _most_distinct(self, lists: int, num_negatives: int) -> Tuple[int, int]:
    """The most distinct users and items of a step that asks for so many lists of the pairs' own and further nodes."""
    size = self._config.train.batch_size
    return (min(lists * size, self._graph.num_users), min((lists + num_negatives) * size, self._graph.num_items))

  def losses(self, view: views.View, users: tf.Tensor, positives: tf.Tensor,
             seeds: Seeds) -> Dict[str, tf.Tensor]:
    """Every loss of a batch of [B] users and [B] positives, by name; their sum is minimised."""
    uniform, valid = self._uniform.draw(users, self._num_uniform, seeds.next())
    draw = self._sampler.draw(users, positives, seeds)
    negatives = tf.concat([uniform, draw.items], axis=1)
    batch, user_places, item_places, partners = self._encode(
        view, users, positives, negatives, seeds)
    final_user, final_item = batch.encoding.user[-1], batch.encoding.item[-1]
    user_rows = products.rows_at(final_user, user_places)
    num_uniform = self._num_uniform
    offset = None
    if self._offsets is not None:
      offset = self._offsets.of_batch(users, tf.concat([positives[:, None], negatives], axis=1))
    if self._sampler.chooses:
      draw, item_places, batch, offset = self._choose(draw, user_rows, item_places, batch, offset)
    own = self.split.own
    user_places, user_rows, item_places, offset, valid, draw = map(
        own, (user_places, user_rows, item_places, offset, valid, draw))
    scores = pair_scores(user_rows, final_item, item_places)
    if offset is not None:
      scores += offset
    positive, uniform, drawn = scores[:, 0], scores[:, 1:1 + num_uniform], scores[:, 1 + num_uniform:]
    has_slots = bool(self._sampler.num_slots)
    losses = {}
    if self._softmax is not None:
      slots = (*self._sampler.slots(positive, drawn, draw), draw.log_probability) if has_slots else None
      losses['softmax'] = self.split.mean(self._softmax.loss(
          batch, own(batch.negatives), user_places, positive, uniform, valid, slots), batch.size)
    else:
      losses['bpr'] = tf.reduce_sum(valid * tf.nn.softplus(uniform - positive[:, None])) / batch.size
      if has_slots:
        losses[self._sampler.loss_name] = tf.reduce_sum(self._sampler.loss(positive, drawn, draw)) / batch.size
    if self._config.model.l2:
      norm = tf.nn.l2_loss(user_rows) + gathered_l2_loss(final_item, item_places)
      losses['l2'] = self._config.model.l2 * norm / batch.size
    if partners is not None:
      terms = self._backbone.regularisers(
          products.row_gaps(final_user, user_places, *own(partners[0])),
          products.row_gaps(final_item, item_places[:, 0], *own(partners[1])))
      losses.update({name: value / batch.size for name, value in terms.items()})
    losses.update(self.split.part_of(self._sampler.losses(batch)))
    distilled = self.split.part_of(self._distiller.losses(batch))
    self._distilled = list(distilled)
    if self.kd_scale is not None:
      distilled = {name: self.kd_scale * value for name, value in distilled.items()}
    losses.update(distilled)
    return losses

  def _choose(self, draw, user_rows, item_places, batch: Batch, offset: Optional[tf.Tensor]):
    """Lets the sampler choose among its candidates by their current scores, without gradient.

    Returns:
      Its `Choice`, the places [B, 1 + N], the batch and the offsets [B, 1 + N] (or None) without the candidates that it
      left out.
    """
    first = 1 + self._num_uniform
    candidates = lambda table: tf.concat([table[:, :1], table[:, first:]], axis=1)
    scores = pair_scores(
        tf.stop_gradient(user_rows), tf.stop_gradient(batch.encoding.item[-1]), candidates(item_places))
    if offset is not None:
      scores += candidates(offset)
    choice = self._sampler.choose(scores[:, 0], scores[:, 1:], draw, batch.seeds)

    def keep(table, begin):
      chosen = tf.gather(table[:, begin:], choice.columns, batch_dims=1)
      return tf.concat([table[:, :begin], chosen], axis=1)

    negatives = keep(batch.negatives, self._num_uniform)
    offset = None if offset is None else keep(offset, first)
    return choice, keep(item_places, first), dataclasses.replace(batch, negatives=negatives), offset

  def _update(self, view, users, positives, seeds):
    lazy = self._config.train.optimizer == 'lazy_adam'
    with tf.GradientTape() as tape, views.row_gradients(lazy):
      losses = self.losses(view, users, positives, seeds)
      # Not tf.add_n: graph optimisation may turn it into a sum in order of arrival.
      total = sum(losses.values())
    gradients = tape.gradient(total, self.variables)
    # Unless tables are large, a batch touches most rows of them, and Adam's dense update is one fused pass.
    pairs = [(gradient if lazy else tf.convert_to_tensor(gradient), variable)
             for gradient, variable in zip(gradients, self.variables) if gradient is not None]
    gradients, values = self.split.total(([gradient for gradient, _ in pairs], dict(losses, loss=total)))
    self._optimizer.apply_gradients(list(zip(gradients, (variable for _, variable in pairs))))
    return values

  def _norms(self, view, users, positives, seeds):
    """Norms of two gradients on the embedding tables: of the ranking losses, and of the distiller's."""
    tables = [self._backbone.user_table, self._backbone.item_table]

    def norm(chosen):
      # A tape each, and the losses twice: TensorFlow cannot differentiate sparse products on a persistent one.
      with tf.GradientTape() as tape:
        losses = self.losses(view, users, positives, copy.copy(seeds))
        total = sum((losses[name] for name in chosen() if name in losses), tf.zeros([]))
      gradients = tape.gradient(total, tables, unconnected_gradients='zero')
      # Dense: a row may occur more than once in a sparse one.
      return tf.linalg.global_norm(self.split.total([tf.convert_to_tensor(gradient) for gradient in gradients]))

    return {'ranking': norm(lambda: ('softmax', 'bpr', self._sampler.loss_name)),
            'distilled': norm(lambda: self._distilled)}

  def compile_norms(self) -> Callable[..., tf.Tensor]:
    """Like `compile`, for the [2] sums of both gradients' norms over steps that update nothing."""
    return traced.Method(self, 'norms_of_stretch', _STRETCH)

  def compile(self) -> Callable[..., tf.Tensor]:
    """The traced function that runs a stretch of an epoch.

    Returns:
      A function of (order [num_pairs] int32, seed [2] int32, first, count) that runs steps first to
      first + count - 1 of the epoch in that order and returns the [num_losses] float64 sums over steps of the
      losses named in `self.loss_names`. It traces once.
    """
    run = traced.Method(self, 'updates_of_stretch', _STRETCH, updates=True)

    def stretch(*arguments):
      run.bind()
      self.loss_names, self.num_traces = list(run.owner._named), 1  # pylint: disable=protected-access
      return run(*arguments)

    return stretch

  def updates_of_stretch(self, order, seed, first, count) -> tf.Tensor:
    """What `compile` gives, untraced."""
    return self._stretch(self._update, order, seed, first, count)

  def norms_of_stretch(self, order, seed, first, count) -> tf.Tensor:
    """What `compile_norms` gives, untraced."""
    return self._stretch(self._norms, order, seed, first, count)

  def _stretch(self, values_of: Callable[..., Dict[str, tf.Tensor]], order, seed, first, count) -> tf.Tensor:
    """Adds up named values of a step over a stretch."""
    size = self._config.train.batch_size
    whole = self._graph.whole() if self._whole else None

    def step(index, totals):
      rows = order[index * size:(index + 1) * size]
      users, items = tf.gather(self._users, rows), tf.gather(self._items, rows)

      def on_replica():
        seeds = Seeds(tf.random.experimental.stateless_fold_in(seed, index))
        return values_of(whole or self.split.view(self._graph, seeds), users, items, seeds)

      named = self.split.run(on_replica)
      self._named = list(named)
      values = tf.stack(list(named.values()))
      return index + 1, totals + tf.pad(tf.cast(values, tf.float64), [[0, _MAX_LOSSES - len(named)]])

    _, totals = tf.while_loop(
        lambda index, _: index < first + count, step, (first, tf.zeros([_MAX_LOSSES], tf.float64)))
    return totals[:len(self._named)]
