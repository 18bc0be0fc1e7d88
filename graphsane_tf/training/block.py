"""Trains one block: from the model before it to the best model on its validation rows."""
import dataclasses
import math
import pathlib
import time
from typing import Any, Callable, Dict, Optional

import numpy as np
import tensorflow as tf
import tqdm

from graphsane_tf import backbones, distillation, negatives, workers
from graphsane_tf.backbones.base import Backbone
from graphsane_tf.distillation.base import Teacher
from graphsane_tf.errors import UserError
from graphsane_tf.graph import views
from graphsane_tf.random import host_generator, host_seed
from graphsane_tf.training import optimizers, strategies
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.training.propagation import choose_propagation
from graphsane_tf.training.scoring import Scoring
from graphsane_tf.training.step import TrainStep
from graphsane_tf.training.store import BlockStore, fresh_state

# Validation metric that stops training and picks the epoch.
SELECTION_METRIC = 'recall@20'
# What the log says when a block's step has been traced.
FIRST_STEP = 'first step after'
# A loss this many times that of the block's first step, or a representation with such a value, has
# exploded. Sound training moves both by a factor of a few.
_MAX_GROWTH = 100.
_MAX_VALUE = 1e4
# Steps that a block with `kd_strength` makes on trial at most, and how many of the last are measured.
_TRIAL_STEPS = 32
_MEASURED_STEPS = 8


@dataclasses.dataclass
class Model:
  """A trained (or growing) model with what belongs to it."""
  backbone: Backbone
  graph: views.Graph
  optimizer: Any

  def checkpoint(self, **parts) -> tf.train.Checkpoint:
    return tf.train.Checkpoint(backbone=self.backbone, optimizer=self.optimizer, **parts)


def _message_edges(config, context: BlockContext):
  return context.history if config.model.graph_scope == 'accumulated' else context.block


@strategies.scoped
def new_model(config, context: BlockContext, learning_rate: float) -> Model:
  """A model with fresh weights for the nodes that `context` knows."""
  kind = backbones.REGISTRY[config.backbone]
  graph = views.Graph(_message_edges(config, context), config.model.num_knn if kind.uses_knn else 0)
  backbone = kind(context.num_users, context.num_items, config.model, (config.seed, context.index)).connect(graph)
  return Model(backbone, graph, optimizers.adam(learning_rate, backbone.trainable_variables))


class Diverged(UserError):
  """Training has left the rails: what comes of it is worth nothing."""


class BlockTrainer:
  """The epoch loop of one block, resumable after any epoch."""

  @strategies.scoped
  def __init__(self, config, context: BlockContext, previous: Optional[Model], store: BlockStore,
               log: Callable[[str], None] = print, profile: Optional[pathlib.Path] = None,
               verbose: bool = False, scoring: Optional[Scoring] = None, before: Optional[Scoring] = None):
    """Builds the student from the model before it.

    Args:
      config: the whole resolved configuration.
      context: the block's data.
      previous: the model of the block before; None trains from fresh weights without distillation,
        with the base block's learning rate and epochs. The base block has uniform negatives.
      store: where the block's checkpoints are.
      log: takes a line for the screen.
      profile: folder for a TensorBoard profile of a few steps; None makes none.
      verbose: log every loss and the speed of each epoch.
      scoring: how the block's representations rank, for the sampler; None is by dot product.
      before: how those of `previous` do, for the sampler and for offsets in the loss; None is by dot product.
    """
    self._config = config
    self._verbose = verbose
    self._tracing_seconds = 0.
    self._profile = profile
    self.context = context
    self._store = store
    self._log = log
    base = self._base = previous is None
    train = config.train
    self._max_epochs = train.base_epochs if base else train.epochs
    self._min_epochs = train.base_min_epochs if base else train.min_epochs
    seed = (config.seed, context.index)
    self.model = new_model(config, context, train.base_learning_rate if base else train.learning_rate)
    backbone = self.model.backbone
    teacher = None
    if previous is not None:
      backbone.grow_from(previous.backbone, self.model.graph)
      optimizers.grow_state(
          previous.optimizer, previous.backbone.named_variables(), self.model.optimizer,
          backbone.named_variables())
      teacher = Teacher(previous.backbone, previous.graph)
    self.sampler = negatives.REGISTRY[config.sampler if context.index else 'uniform'](
        config, context, seed)
    if scoring is not None:
      self.sampler.scorer = scoring.of_samplers
    if before is not None:
      self.sampler.scorer_before = before.of_samplers
    if previous is not None:
      self.sampler.study(lambda: previous.backbone.representer(previous.graph)())
    self.distiller = distillation.REGISTRY['none' if base else config.kd](
        config, context, teacher, seed)
    variables = [*backbone.trainable_variables, *self.sampler.trainable_variables]
    self.model.optimizer._create_all_weights(variables)  # pylint: disable=protected-access
    strategy = workers.current().strategy
    update: Any = optimizers.Update(self.model.optimizer, variables)
    if previous is not None and train.new_row_moments == 'corrected':
      update = optimizers.NewRows(update, previous.backbone.named_variables(), backbone.named_variables())
    offsets = None
    if config.memory_options.offset and previous is not None and before is not None:
      user_vectors, item_vectors = previous.backbone.representer(previous.graph)()
      offsets = before.offsets(user_vectors, item_vectors, context, config.memory_options.offset)
    if workers.current().strategy is not None and train.optimizer == 'lazy_adam':
      raise UserError('--config.train.optimizer=lazy_adam runs on one device: leave out --strategy, or set adam.')
    self.propagation = choose_propagation(config, self.model.graph)
    self.step = TrainStep(config, context, self.model.graph, backbone, self.sampler, self.distiller,
                          update, self.propagation, offsets, strategy)
    self.run_steps = self.step.compile()
    self.represent = backbone.representer(self.model.graph)
    self._checkpoint = self.model.checkpoint(sampler=self.sampler)

  def train(self, validate: Optional[Callable[..., Dict[str, float]]],
            on_epoch: Callable[[Dict[str, Any]], None]) -> Dict[str, Any]:
    """Trains until early stopping, then restores the best epoch.

    Args:
      validate: gives the validation metrics of final representations [num_users, D], [num_items, D],
        and of lists that the sampler has made of them (`NegativeSampler.rank`). None trains for the most epochs,
        of which the last one counts as the best.
      on_epoch: called with each new epoch's record.

    Returns:
      The state: epochs, best_epoch, best_metrics, seconds, sampler_seconds and the epochs' records.
    """
    state = self._store.load() or fresh_state()
    state.pop('failed', None)
    vectors = None
    if 'last' in state:
      self._store.restore(self._checkpoint, state['last'])
    elif validate and self._config.train.epoch_zero and not self._base:
      vectors = self.epoch_zero(state, validate)
      on_epoch(state['records'][-1])
    while not state['stopped']:
      try:
        vectors = self.epoch(state, vectors, validate)
      except Diverged as error:
        self._store.save_state({**state, 'failed': str(error)})
        raise
      on_epoch(state['records'][-1])
    if validate and state['best_epoch']:
      waited = f'; no better one in {state["wait"]} more' if state['wait'] else ''
      self._log(f'block {self.context.index} keeps epoch {state["best_epoch"]} (*), the best on validation rows'
                f'{waited}')
    if not state['best_epoch']:
      self._log(f'block {self.context.index}: no epoch of training was better than none, so today only graph and '
                'memory have moved.')
    # The best epoch's weights and optimiser state; the sampler stays as the last epoch left it.
    self._store.restore(self.model.checkpoint(), state['best'])
    return state

  def epoch_zero(self, state, validate):
    """Validates the grown model (old weights, today's graph, new rows as they start) as a candidate.

    Args:
      state: `fresh_state()`, changed in place.
      validate: as in `train`.

    Returns:
      The final representations.
    """
    started = time.perf_counter()
    vectors = self.represent()
    lists, sampler_seconds = self._ranked_ahead(0, vectors)
    metrics = validate(*vectors, lists)
    seconds = time.perf_counter() - started
    self._record(state, 0, {}, metrics, seconds, sampler_seconds, 0.)
    return vectors

  def epoch(self, state, vectors, validate):
    """One epoch: refresh, steps, validation, checkpoint.

    Args:
      state: changed in place; `fresh_state()` before the first epoch.
      vectors: the final representations, if they are known.
      validate: as in `train`.

    Returns:
      The final representations after the epoch.
    """
    epoch = state['epoch']
    started = time.perf_counter()
    sampler_seconds = 0.
    if self._refreshes(epoch):
      vectors = vectors or self.represent()
      refresh_started = time.perf_counter()
      self.sampler.refresh(*vectors, epoch)
      workers.current().settle(self.sampler.variables)
      sampler_seconds = time.perf_counter() - refresh_started
    self._weigh_distiller(epoch, state)
    losses = self._steps(epoch, state)
    steps_seconds = time.perf_counter() - started
    vectors = self.represent()
    self._check_weights(vectors, epoch)
    lists, rank_seconds = self._ranked_ahead(epoch + 1, vectors) if validate else (None, 0.)
    metrics = validate(*vectors, lists) if validate else {}
    seconds = time.perf_counter() - started
    speed = len(self.context.users) / max(steps_seconds, 1e-9)
    self._record(state, epoch + 1, losses, metrics, seconds, sampler_seconds + rank_seconds, speed)
    return vectors

  def _ranked_ahead(self, epoch: int, vectors):
    """Lists of the ranking that the refresh before an epoch needs, None if there is none, and its seconds."""
    if epoch >= self._max_epochs or not self._refreshes(epoch):
      return None, 0.
    started = time.perf_counter()
    lists = self.sampler.rank(*vectors)
    return lists, time.perf_counter() - started

  def _record(self, state, number: int, losses, metrics, seconds: float, sampler_seconds: float, speed: float) -> None:
    """Brings the state up to date with epoch `number` (0: nothing is trained yet), saves and logs it."""
    value = metrics[SELECTION_METRIC] if metrics else float(number)
    improved = value > state['best_value']
    state['epoch'] = number
    state['wait'] = 0 if improved or not number else state['wait'] + 1
    state['stopped'] = number >= self._max_epochs or (
        state['wait'] >= self._config.train.patience and number >= max(self._min_epochs, 1))
    state['train_seconds'] += seconds
    state['sampler_seconds'] += sampler_seconds
    state['last'] = f'epoch-{number}'
    if improved:
      state.update(best_epoch=number, best_value=value, validation=metrics, best=state['last'])
    state['records'].append({
        'block': self.context.index, 'epoch': number, 'losses': losses, 'validation': metrics,
        'seconds': seconds, 'sampler_seconds': sampler_seconds, 'pairs_per_second': speed})
    self._store.save(self._checkpoint, state['last'])
    self._store.save_state(state)
    self._tell(state, seconds - self._tracing_seconds)
    self._tracing_seconds = 0.

  def _tell(self, state, seconds: float) -> None:
    """Logs the last epoch; `seconds` are without tracing, which happens once a block."""
    record = state['records'][-1]
    best = '*' if state['wait'] == 0 else ' '
    trained, validated = bool(record['epoch']), record['validation']
    left = 0 if state['stopped'] or not trained else (self._max_epochs - state['epoch']) * seconds
    loss = f'loss {record["losses"]["loss"]:.4f}' if trained else 'not trained'
    measured = f'recall@20 {validated[SELECTION_METRIC]:.4f}{best} ' if validated else ''
    self._log(f'block {record["block"]} epoch {record["epoch"]:2}/{self._max_epochs}  {loss}  {measured}'
              f'{record["seconds"]:6.1f} s' + (f'  {left:.0f} s left' if left else ''))
    if self._verbose and trained:
      terms = '  '.join(f'{name} {value:.4f}' for name, value in record['losses'].items())
      self._log(f'  {terms}  {record["pairs_per_second"]:,.0f} pairs/s')

  def _refreshes(self, epoch: int) -> bool:
    """Whether the sampler is refreshed before the steps of an epoch."""
    return bool(self.sampler.refresh_epochs) and epoch % self.sampler.refresh_epochs == 0

  def _stretch(self, order, seed, first: int, count: int) -> np.ndarray:
    """Runs `count` steps; the first stretch after tracing is profiled, if that was asked for."""
    traced = self.step.num_traces
    profiled = self._profile and traced
    started = time.perf_counter()
    if profiled:
      tf.profiler.experimental.start(str(self._profile))
    totals = self.run_steps(order, seed, tf.constant(first), tf.constant(count)).numpy()
    if profiled:
      tf.profiler.experimental.stop()
      self._log(f'profile of {count} steps written: tensorboard --logdir={self._profile}')
      self._profile = None
    if not traced:
      self._tracing_seconds = time.perf_counter() - started
      self._log(f'block {self.context.index} {FIRST_STEP} {self._tracing_seconds:.1f} s')
    return totals

  def _diverged(self, epoch: int, what: str) -> Diverged:
    rate = '--config.train.base_learning_rate' if self._base else '--learning_rate'
    return Diverged(f'block {self.context.index} has diverged in epoch {epoch + 1}: {what}; lower {rate} '
                    '(the folder may be used again).')

  def _check_losses(self, sums: np.ndarray, count: int, epoch: int, state) -> None:
    """Raises `Diverged` if the losses of some steps are not finite, or far above the first step's.

    Args:
      sums: [num_losses] sums over the steps.
      count: number of steps.
      epoch: the epoch.
      state: gets the loss of the block's first step.
    """
    losses = dict(zip(self.step.loss_names, (sums / count).tolist()))
    bad = [name for name, value in losses.items() if not math.isfinite(value)]
    if bad:
      raise self._diverged(epoch, f'loss {bad[0]} is no longer a number')
    first = state.setdefault('first_loss', losses['loss'])
    if losses['loss'] > _MAX_GROWTH * max(first, 1e-3):
      raise self._diverged(epoch, f'its loss has grown from {first:.3g} to {losses["loss"]:.3g}')

  def _check_weights(self, vectors, epoch: int) -> None:
    """Raises `Diverged` if weights or Adam's moments, i.e. gradients, or representations are unsound."""
    for variable in [*self.step.variables, *self.model.optimizer.variables()]:
      if variable.dtype.is_floating and not tf.reduce_all(tf.math.is_finite(variable)):
        raise self._diverged(epoch, f'{variable.name.split(":")[0]} holds values that are not finite')
    for values in vectors:
      largest = float(tf.reduce_max(tf.abs(values)))
      # Written so that NaN fails, too.
      if not largest <= _MAX_VALUE:
        raise self._diverged(epoch, f'representations have values of {largest:.3g}')

  def plan(self, epoch: int):
    """Order of the pairs [num_pairs] and seed [2] of an epoch, as tensors, and its number of steps."""
    context, train = self.context, self._config.train
    counter = (self._config.seed, context.index, epoch)
    order = host_generator(*counter, name='order').permutation(len(context.users)).astype(np.int32)
    total_steps = math.ceil(len(context.users) / train.batch_size)
    return (tf.constant(order), tf.constant(host_seed(*counter, name='steps')),
            min(total_steps, train.max_steps) if train.max_steps else total_steps)

  def _weigh_distiller(self, epoch: int, state) -> None:
    """Sets the scale of the distiller's losses, once a block, so that its gradient is `kd_strength` of the ranking's.

    Where a block begins, the student is the teacher, and some distillers have no gradient. So the first steps are run
    on trial, with the weights as they are configured; the last of them are measured, and then all is as before.
    """
    scale = self.step.kd_scale
    if scale is None:
      return
    if 'kd_scale' not in state:
      order, seed, total_steps = self.plan(epoch)
      trial = min(_TRIAL_STEPS, total_steps)
      measured = min(_MEASURED_STEPS, trial)
      variables = [*self.step.variables, *self.model.optimizer.variables()]
      before = [variable.numpy() for variable in variables]
      self._stretch(order, seed, 0, trial)
      ranking, distilled = self.step.compile_norms()(
          order, seed, tf.constant(trial - measured), tf.constant(measured)).numpy()
      for variable, value in zip(variables, before):
        variable.assign(value)
      if not math.isfinite(ranking + distilled):
        raise self._diverged(epoch, 'its first gradients are not finite')
      wanted = self._config.kd_strength
      state['kd_scale'] = float(np.float32(wanted * ranking / distilled)) if distilled else 1.
      told = (f'counts {state["kd_scale"]:.3g} times, so that its gradient is {wanted:g} of the ranking\'s'
              if distilled else 'has no gradient that could be scaled')
      self._log(f'block {self.context.index}: distillation {told}')
    scale.assign(state['kd_scale'])

  def _steps(self, epoch: int, state) -> Dict[str, float]:
    """Runs all steps of an epoch; returns the mean of each loss."""
    context, config = self.context, self._config
    order, seed, total_steps = self.plan(epoch)
    # The block's first step, before any update, is what later losses are compared with.
    first, stretch, totals = 0, 4 if epoch else 1, np.zeros([])
    with tqdm.tqdm(total=len(context.users), unit=' pairs', unit_scale=True, leave=False,
                   disable=None, desc=f'block {context.index} epoch {epoch + 1}') as bar:
      while first < total_steps:
        count = min(stretch, total_steps - first)
        started = time.perf_counter()
        sums = self._stretch(order, seed, first, count)
        self._check_losses(sums, count, epoch, state)
        totals = totals + sums
        first += count
        # Long stretches save overhead, short ones keep the bar alive; results do not depend on it.
        # Workers go side by side, so their clocks decide nothing.
        if time.perf_counter() - started < 2. or workers.current().count > 1:
          stretch *= 2
        bar.update(min(count * config.train.batch_size, bar.total - bar.n))
    # Rounded, because stretches, and so the order of the sums, follow the clock.
    return {name: float(f'{value:.7g}') for name, value in zip(self.step.loss_names, totals / total_steps)}
