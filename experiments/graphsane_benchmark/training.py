"""Sections of the benchmark about training."""
import math
import pathlib
import re
import tempfile
import time
from typing import Any, Dict, Iterator, Optional

import numpy as np
import tensorflow as tf

from graphsane_benchmark import bare, plain
from graphsane_benchmark.figures import Figure, compare, of_rounds, seconds
from graphsane_tf import negatives, traced
from graphsane_tf.blocks.stream import BlockStream
from graphsane_tf.config import default_config, resolved
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.random import host_generator
from graphsane_tf.runs import incremental
from graphsane_tf.training import assembly
from graphsane_tf.training.block import (
    BlockTrainer, Model, fresh_state, new_model)


# Changes of `config_of`: the default's distiller and reservoir, and what `--recipe=strong` is.
_RECIPES: Dict[str, Dict[str, Any]] = {
    'SGCT + SANE': {}, 'LightGCN, softmax and memory': {
        'backbone': 'lightgcn', 'kd': 'none', 'sampler': 'uniform', 'train__loss': 'softmax',
        'model__embedding_dim': 64, 'model__l2': .001, 'memory': 'ease'}}


def config_of(**changes):
  """The default configuration with SGCT and SANE; `a__b` names the field b of section a."""
  config = default_config()
  changes = {'kd': 'sgct', 'sampler': 'sane', **changes}
  config.update_from_flattened_dict(
      {name.replace('__', '.'): value for name, value in changes.items()})
  return resolved(config)


def previous_of(log: Interactions, index: int, config) -> Optional[Model]:
  """An untrained model of the block before block `index`; None for the base block."""
  return new_model(config, assembly.context_of(config, log, index - 1), 1e-3) if index else None


def trainer_of(log: Interactions, index: int, config, folder) -> BlockTrainer:
  """A trainer of block `index` after an untrained model, whose checkpoints go to `folder`."""
  return assembly.trainer_for(config, log, index, folder, previous_of(log, index, config))


def validation_of(log: Interactions, index: int, config):
  """What a trainer of block `index` validates with."""
  return assembly.validator(config, log, BlockStream(log).block(index), assembly.context_of(config, log, index))


def stepper(run, num_pairs: int, batch_size: int, count: int):
  """An action that runs `count` steps of a compiled `TrainStep`."""
  # As many whole batches as are needed: pairs repeat in a small block.
  order = np.concatenate([host_generator(0, turn).permutation(num_pairs)
                          for turn in range(math.ceil(count * batch_size / num_pairs))])
  order, seed = tf.constant(order.astype(np.int32)), tf.constant([1, 2])
  return lambda: run(order, seed, tf.constant(0), tf.constant(count)).numpy()


def _ready_trainer(log: Interactions, batch: int, folder):
  """A trainer of block 3 with a reservoir, and its configuration."""
  config = config_of(train__batch_size=batch)
  trainer = trainer_of(log, 3, config, folder)
  trainer.sampler.refresh(*trainer.represent(), 0)
  return trainer, config


def step_section(log: Interactions, repeats: int, batches=(5000, 64)) -> Iterator[Figure]:
  """The train step against the straightforward one."""
  targets = {5000: 5., 64: 1.5}
  for batch in batches:
    with tempfile.TemporaryDirectory() as folder:
      trainer, config = _ready_trainer(log, batch, folder)
      context = trainer.context
      other = plain.PlainStep(
          config, context, trainer.model.graph, trainer.model.backbone, trainer.sampler,
          trainer.distiller.teacher, trainer.model.optimizer)
      pairs, counts = len(context.users), ((4, 1) if batch > 500 else (20, 10))
      # One plain step of a large batch takes many seconds.
      rounds = repeats if batch <= 500 else max(1, repeats // 2)
      yield compare(
          stepper(trainer.run_steps, pairs, batch, counts[0]),
          stepper(other.compile(), pairs, batch, counts[1]), rounds, calls=counts, faster=True,
          section='step', name=f'step against straightforward, batch {batch}', shape=log.name,
          target=('>=', targets[batch]) if batch in targets else None,
          note=f'{trainer.propagation} propagation')


def bare_section(log: Interactions, repeats: int, batches=(5000, 2048)) -> Iterator[Figure]:
  """The train step against its own products and gathers."""
  for batch in batches:
    with tempfile.TemporaryDirectory() as folder:
      trainer, _ = _ready_trainer(log, batch, folder)
      context = trainer.context
      rows = host_generator(0).permutation(len(context.users))[:batch]
      other = bare.bare_steps(trainer, tf.constant(context.users[rows], tf.int32),
                              tf.constant(context.items[rows], tf.int32))
      count = 5
      yield compare(
          stepper(trainer.run_steps, len(context.users), batch, count),
          lambda: other(tf.constant(count)).numpy(), repeats, calls=(count, count),
          section='bare', name=f'step against its products and gathers, batch {batch}',
          shape=log.name, target=('<=', 1.3), note=f'{trainer.propagation} propagation')


class _Epochs:
  """Whole epochs of block 3 with the uniform sampler, to compare others with."""

  def __init__(self, log: Interactions, folder, **changes):
    self._log = log
    self._folder = pathlib.Path(folder)
    self._changes = {'train__epochs': 10_000, 'train__patience': 10_000, 'train__min_epochs': 1,
                     **changes}
    self._validate = validation_of(log, 3, config_of())
    self._uniform = self._action(sampler='uniform')

  def _action(self, **changes):
    """An action that trains one further epoch."""
    config = config_of(**self._changes, **changes)
    trainer = trainer_of(self._log, 3, config, self._folder / '-'.join(changes.values()))
    # Traces everything that is not the rebuild's own.
    stepper(trainer.run_steps, len(trainer.context.users), config.train.batch_size, 1)()
    self._validate(*trainer.represent())
    state, vectors = fresh_state(), [None]

    def action():
      vectors[0] = trainer.epoch(state, vectors[0], self._validate)

    return action

  def figures(self, name: str, target: float, repeats: int, beginning: Optional[float] = None,
              **changes) -> Iterator[Figure]:
    """Compares a sampler, over later epochs and over a block's first ones, whose target is `beginning`."""
    actions = self._action(**changes), self._uniform
    # A round has whole periods between two of SANE's rebuilds.
    common = {'section': 'epoch', 'shape': self._log.name, 'turns': config_of().sane.refresh_epochs,
              'warm': False}
    first = compare(*actions, 1, name="the same, a block's first epochs", **common,
                    target=('<=', beginning) if beginning else None)
    yield compare(*actions, repeats, target=('<=', target),
                  name=f'epoch with {name} against uniform, refresh and validation included',
                  **common)
    yield first


def epoch_section(log: Interactions, repeats: int, **changes) -> Iterator[Figure]:
  """SANE against uniform negatives over whole epochs."""
  with tempfile.TemporaryDirectory() as folder:
    yield from _Epochs(log, folder, **changes).figures('SANE', 1.05, repeats, 1.15, sampler='sane')


def adaptive_section(log: Interactions, repeats: int, **changes) -> Iterator[Figure]:
  """The adaptive reservoir, likewise."""
  with tempfile.TemporaryDirectory() as folder:
    yield from _Epochs(log, folder, **changes).figures(
        'adaptive SANE', 1.08, repeats, 1.15, sampler='sane', sane_variant='adaptive')


def samplers_section(log: Interactions, repeats: int, **changes) -> Iterator[Figure]:
  """Every other sampler, likewise."""
  with tempfile.TemporaryDirectory() as folder:
    epochs = _Epochs(log, folder, **changes)
    for name in sorted(set(negatives.REGISTRY) - {'uniform', 'sane'}):
      yield from epochs.figures(name, 1.2, repeats, sampler=name)


def _beyond_steps(log: Interactions, config, folder) -> float:
  """Mean seconds of the blocks 2 and later of a run, without those of their steps.

  Two epochs are trained. The second one traces nothing and rebuilds no reservoir: it tells how long steps take.
  """
  begun = []

  def said(line):
    if re.match(r'block \d+: ', line):
      begun.append(time.perf_counter())

  run = incremental.IncrementalRun(config, log, folder, log=said)
  run.run()
  seconds = np.diff([*begun, time.perf_counter()])
  for index in range(run.stream.num_blocks):
    records = run.folder.store(index).saved()['records']
    seconds[index] -= len(records) * len(run.context(index).users) / records[-1]['pairs_per_second']
  return float(np.mean(seconds[2:]))


def _always(epochs: int) -> Dict[str, int]:
  """Changes with which every block is trained for so many epochs."""
  return {f'train__{name}': epochs for name in ('base_epochs', 'base_min_epochs', 'epochs', 'min_epochs', 'patience')}


def update_section(log: Interactions, epochs: int, **changes) -> Iterator[Figure]:
  """A whole incremental block of a run, memory, mixture, validation and test included, against full retraining."""
  common = {'section': 'update', 'shape': log.name}
  taken: Dict[str, float] = {}
  for name, recipe in _RECIPES.items():
    spent = []
    for retrained in (False, True):
      alone = {'full_retrain': True, 'kd': 'none', 'sampler': 'uniform'} if retrained else {}
      settings = {**_always(epochs), **recipe, **changes, **alone}
      with tempfile.TemporaryDirectory() as folder:
        run = incremental.IncrementalRun(config_of(**settings), log, folder, log=lambda line: None, exports=False)
        run.run([0])
        spent.append(seconds(lambda: run.run([1])))  # pylint: disable=cell-var-from-loop
    taken[name] = spent[0]
    yield of_rounds([tuple(spent)], name=f'update against its own retraining, {name}', target=('<=', .2),
                    note=f'block 1, {epochs} epochs each, with its validation and tests, without its export', **common)
  ours, other = (taken[name] for name in reversed(_RECIPES))
  yield of_rounds([(ours, other)], name='update of the strong recipe against SGCT + SANE', target=('<=', 1.3), **common)


def tracing_section(log: Interactions, repeats: int, **changes) -> Iterator[Figure]:
  """What a small block of a run costs beyond its steps, with traces shared by all blocks and without."""
  for name, recipe in _RECIPES.items():
    config = config_of(**{**_always(2), **recipe, **changes})
    rounds = []
    for _ in range(repeats):
      with tempfile.TemporaryDirectory() as folder:
        # As in a process that has just begun.
        traced.forget()
        ours = _beyond_steps(log, config, pathlib.Path(folder) / 'shared')
        with traced.alone():
          rounds.append((ours, _beyond_steps(log, config, pathlib.Path(folder) / 'alone')))
    yield of_rounds(rounds, section='tracing', shape=log.name, target=('<=', 2.), absolute=True,
                    name=f'block beyond its steps, {name}, against traces of its own',
                    note='with its export, test and tables; mean of the blocks after the first incremental one')


def block_section(log: Interactions, index: int, epochs: int) -> Iterator[Figure]:
  """An incremental block (SGCT + SANE) against full retraining with as many epochs.

  Both include building graph and model, tracing, and validation and checkpoint after each epoch.
  The model before the block is untrained, which changes no time.
  """
  with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    config = config_of(
        train__epochs=epochs, train__min_epochs=epochs, train__patience=epochs)
    previous = previous_of(log, index, config)
    started = time.perf_counter()
    trainer = assembly.trainer_for(config, log, index, folder / 'incremental', previous)
    trainer.train(validation_of(log, index, config), lambda record: None)
    ours = time.perf_counter() - started
    other = _retraining_seconds(log, index, folder / 'full', epochs)
  yield of_rounds([(ours, other)], section='block', shape=log.name, target=('<=', .2),
                  name='incremental block against full retraining',
                  note=f'block {index}, {epochs} epochs each')


def _retraining_seconds(log: Interactions, index: int, folder, epochs: int) -> float:
  """Time to train a block from fresh weights on all rows so far."""
  started = time.perf_counter()
  config = config_of(kd='none', sampler='uniform', full_retrain=True, train__base_epochs=epochs,
                     train__base_min_epochs=epochs, train__patience=epochs)
  trainer = assembly.trainer_for(config, log, index, folder, None)
  trainer.train(validation_of(log, index, config), lambda record: None)
  return time.perf_counter() - started
