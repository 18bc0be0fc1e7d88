"""The whole job: every block in turn, each evaluated, exported and safe on disk."""
import json
import pathlib
import shutil
from typing import Any, Callable, Dict, List, Optional

import numpy as np
import tensorflow as tf

from graphsane_tf import config as config_lib
from graphsane_tf import backbones, clustering, distillation, files, negatives, replay
from graphsane_tf.data.blocks import Block, BlockStream
from graphsane_tf.data import prepare
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import forgetting, protocol
from graphsane_tf.serving import export
from graphsane_tf.training import screen
from graphsane_tf.training import workdir as workdir_lib
from graphsane_tf.training.block import SELECTION_METRIC, BlockTrainer, Model, new_model
from graphsane_tf.training.context import BlockContext
from graphsane_tf.training.store import BlockStore


def run(config, interactions: Interactions, workdir=None, *, choices: Optional[Dict[str, Any]] = None,
        blocks: Optional[List[int]] = None, overwrite: bool = False, profile: bool = False,
        log: Callable[[str], None] = print) -> Dict[str, Any]:
  """Trains, evaluates and exports the blocks of a log; resumes what was cut off.

  Args:
    config: a configuration, e.g. `graphsane_tf.config.default_config()` with changes.
    interactions: the log.
    workdir: folder of the run; None names it by its choices below `runs`.
    choices: how the log was made (`workdir.data_choices`), for the folder's name and config.json.
    blocks: numbers of the blocks to run, in order; None runs all. Each needs the one before it, here or
      already in the folder.
    overwrite: start anew if the folder holds a run.
    profile: write a TensorBoard profile of a few steps of each block.
    log: takes a line for the screen.

  Returns:
    What `results.json` holds.
  """
  return IncrementalRun(
      config, interactions, workdir, choices, overwrite, log, profile).run(blocks)


def _check_names(config) -> None:
  """Raises a `UserError` if the configuration names a method that does not exist."""
  registries = {'backbone': backbones, 'kd': distillation, 'replay': replay, 'sampler': negatives,
                'clusters': clustering}
  for field, module in registries.items():
    if config[field] not in module.REGISTRY:
      raise UserError(f'config.{field} is {config[field]!r}; it must be one of '
                      f'{", ".join(module.REGISTRY)}.')


def open_run(workdir, data_dir='data') -> 'IncrementalRun':
  """Opens the folder of a run with the log that its config.json names.

  Args:
    workdir: the folder.
    data_dir: where the log's raw files or prepared copies are.

  Raises:
    UserError: if the folder holds no run, or the log is not the one that it was made with.
  """
  saved = files.read_json(pathlib.Path(workdir) / 'config.json')
  quiet = lambda line: None
  interactions = prepare.load(**workdir_lib.data_arguments(saved['data'], data_dir), log=quiet)
  choices = {k: v for k, v in saved['data'].items() if k != 'fingerprint'}
  return IncrementalRun(config_lib.restored(saved['config']), interactions, workdir, choices,
                        log=quiet)


class IncrementalRun:
  """One run's folder, and the models of its blocks."""

  def __init__(self, config, interactions: Interactions, workdir=None,
               choices: Optional[Dict[str, Any]] = None, overwrite: bool = False,
               log: Callable[[str], None] = print, profile: bool = False):
    """Opens (or creates) the folder; see `run` for the arguments."""
    choices = choices or {'dataset': interactions.name}
    self.config = config_lib.resolved(config)
    self.stream = BlockStream(interactions, self.config.blocks.base_fraction,
                              self.config.blocks.num_incremental)
    self.interactions = interactions
    self._log = log
    self._profile = profile
    _check_names(self.config)
    negatives.REGISTRY[self.config.sampler].check(self.config, interactions)
    self._identity = json.loads(json.dumps({
        'data': {**choices, 'fingerprint': interactions.fingerprint},
        'config': self.config.to_dict()}))
    folder = workdir or workdir_lib.default_workdir(config, choices)
    base = pathlib.Path(self.config.base_from) if self.config.base_from else None
    if base and (overwrite or BlockStore(folder, 0).load() is None):
      self._check_base(base)
    self.workdir = workdir_lib.open_workdir(folder, self._identity, overwrite)
    changes = [f'{name}={value}' for name, value in workdir_lib.changed_fields(config).items()]
    log(f'run       {self.workdir}')
    log(f'config    {", ".join(changes) or "all defaults"}')
    if base:
      self._take_base(base)

  def run(self, blocks: Optional[List[int]] = None) -> Dict[str, Any]:
    """Runs the given blocks (all by default) and returns the results so far."""
    previous = None
    for index in blocks if blocks is not None else range(self.stream.num_blocks):
      if not 0 <= index < self.stream.num_blocks:
        raise UserError(f'--block={index} does not exist: this log has blocks 0 to '
                        f'{self.stream.num_blocks - 1}.')
      previous = self._run_block(index, previous)
    results = self.results()
    self._log(screen.results_table(results))
    self._log(screen.forgetting_table(results))
    self._log(f'results   {self.workdir / "results.json"}')
    for entry in results['blocks']:
      self._log(f'SavedModel of block {entry["block"]}   {self.workdir / "export" / str(entry["block"])}')
    return results

  def context(self, index: int) -> BlockContext:
    """The training data of block `index`."""
    return BlockContext(self.interactions, self.stream.block(index),
                        self.stream.block(index - 1) if index else None)

  def training_context(self, index: int) -> BlockContext:
    """The same with the old rows that are trained on again."""
    context = self.context(index)
    self._replay(context)
    return context

  def load_model(self, index: int) -> Model:
    """The finished model of block `index`, from the folder."""
    store = BlockStore(self.workdir, index)
    state = store.load()
    if not state or not state.get('result'):
      raise UserError(f'block {index} is not finished in {self.workdir}: run it first, with '
                      f'--block={index} or --block=all.')
    model = new_model(self.config, self.context(index), self.config.train.learning_rate)
    store.restore(model.checkpoint(), state['best'])
    return model

  def _run_block(self, index: int, previous: Optional[Model]) -> Optional[Model]:
    """Trains (or finishes) one block; returns its model if it is in memory."""
    store = BlockStore(self.workdir, index)
    state = store.load()
    if state and state.get('result'):
      self._log(f'block {index} is finished already.')
      return None
    if self.config.full_retrain:
      previous = None
    elif index and previous is None:
      previous = self.load_model(index - 1)
    block = self.stream.block(index)
    context = self.training_context(index)
    self._log(f'block {index}: {len(context.users):,} pairs, {block.num_users:,} users '
              f'({block.num_users - context.num_old_users:,} new), {block.num_items:,} items '
              f'({block.num_items - context.num_old_items:,} new)')
    trainer = BlockTrainer(self.config, context, previous, store, self._log,
                           self.workdir / 'tensorboard' if self._profile else None)

    def validate(user_vectors, item_vectors, lists):
      found = self.evaluate(context, block.validation, user_vectors, item_vectors, lists)
      return {SELECTION_METRIC: 0., **found.metrics}

    earlier = self._records(index)
    writer = tf.summary.create_file_writer(str(self.workdir / 'tensorboard'))
    def on_epoch(record):
      earlier.append(record)
      self._write_records(earlier)
      with writer.as_default(step=record['epoch']):
        for name, value in {**record['losses'], **record['validation']}.items():
          tf.summary.scalar(f'block_{index}/{name}', value)
      writer.flush()

    state = trainer.train(validate, on_epoch)
    vectors = trainer.represent()
    self._finish(context, block, store, state, vectors, trainer)
    return trainer.model

  def _replay(self, context: BlockContext) -> None:
    """Adds the old rows that the block trains on again; before anything is built from its pairs."""
    if self.config.full_retrain:
      rows = np.arange(context.num_history_rows)
    else:
      policy = replay.REGISTRY[self.config.replay](self.config, (self.config.seed, context.index))
      rows = policy.rows(context)
    context.replay(rows)

  def _finish(self, context: BlockContext, block: Block, store: BlockStore, state, vectors,
              trainer: BlockTrainer) -> None:
    """Tests the block's model, exports it and marks the block as done."""
    index = block.index
    user_vectors, item_vectors = (np.asarray(v) for v in vectors)
    found = self.evaluate(context, block.test, user_vectors, item_vectors)
    export.export_block(
        self.workdir / 'export' / str(index), user_vectors, item_vectors,
        self.interactions.user_ids[:block.num_users], self.interactions.item_ids[:block.num_items],
        (context.history.indptr, context.history.indices), context.popularity)
    folder = files.make_directory(self.workdir / 'per_user')
    temporary = folder / f'.block_{index}.npz'
    shifted = trainer.sampler.shifted_users()
    more = {} if shifted is None else {'shifted': np.isin(found.per_user['user'], shifted)}
    np.savez(temporary, **found.per_user, **more)
    temporary.replace(folder / f'block_{index}.npz')
    state['result'] = {
        'block': index, 'train_pairs': len(context.users), 'num_users': block.num_users,
        'num_items': block.num_items, 'epochs': state['epoch'], 'best_epoch': state['best_epoch'],
        'train_seconds': round(state['train_seconds'], 3),
        'reservoir_seconds': round(state['reservoir_seconds'], 3),
        'validation': state['validation'], 'test': found.metrics,
        'test_new_users': found.new_users, 'coverage': found.coverage, 'propagation': trainer.propagation,
        'sampler': trainer.sampler.report(),
        'on_blocks': self._on_blocks(block, found.metrics, user_vectors, item_vectors)}
    store.save_state(state)
    self._write_records(self._records(self.stream.num_blocks))
    self.results()

  def evaluate(self, context: BlockContext, rows: slice, user_vectors, item_vectors, lists=None):
    """Metrics of final representations [num_users, D], [num_items, D] on later rows of the log.

    Args:
      context: the block that they were trained on.
      rows: the rows of the log.
      user_vectors: [num_users, D].
      item_vectors: [num_items, D].
      lists: see `protocol.evaluate_block`.
    """
    options = self.config.evaluation
    return protocol.evaluate_block(
        np.asarray(user_vectors), np.asarray(item_vectors),
        (context.history.indptr, context.history.indices), self.interactions.user[rows],
        self.interactions.item[rows], context.popularity,
        cutoffs=sorted({*options.cutoffs, 20}), map_denominator=options.map_denominator,
        ndcg_ideal=options.ndcg_ideal, lists=lists)

  def _on_blocks(self, block: Block, own: Dict[str, float], user_vectors,
                 item_vectors) -> Dict[str, List[Optional[float]]]:
    """A row of the matrix in `evaluation.forgetting`: the block's model on each block's test rows."""
    recall, chance = [], []
    for index in range(self.stream.num_blocks):
      other = self.stream.block(index)
      context = self.context(index)
      users, items = min(block.num_users, other.num_users), min(block.num_items, other.num_items)
      metrics = own if index == block.index else self.evaluate(
          context, other.test, user_vectors[:users], item_vectors[:items]).metrics
      recall.append(metrics.get(SELECTION_METRIC))
      chance.append(forgetting.random_recall(
          context.history.indptr, context.history.indices, self.interactions.user[other.test],
          self.interactions.item[other.test], users, items, int(SELECTION_METRIC.split('@')[1])))
    return {'recall': recall, 'chance': chance}

  def _states(self, stop: int):
    """Saved states of the blocks before `stop`."""
    states = (BlockStore(self.workdir, index).load() for index in range(stop))
    return [state for state in states if state]

  def _records(self, stop: int) -> List[Dict[str, Any]]:
    return [record for state in self._states(stop) for record in state['records']]

  def _write_records(self, records: List[Dict[str, Any]]) -> None:
    files.write_text(self.workdir / 'metrics.jsonl',
                     ''.join(json.dumps(record) + '\n' for record in records))

  def results(self) -> Dict[str, Any]:
    """Collects the finished blocks, writes results.json and returns it."""
    blocks = [state['result'] for state in self._states(self.stream.num_blocks)
              if state.get('result')]
    later = [entry['test'] for entry in blocks if entry['block'] > 0]
    average = {name: float(np.mean([test[name] for test in later if name in test]))
               for name in (later[0] if later else {})}
    config = self.config
    results = {
        'dataset': self._identity['data']['dataset'], 'backbone': config.backbone, 'kd': config.kd,
        'sane': config.sampler == 'sane', 'sampler': config.sampler, 'replay': config.replay,
        'seed': config.seed, 'blocks': blocks, 'average': average,
        'full_retrain': config.full_retrain,
        'forgetting': forgetting.report(
            {entry['block']: entry['on_blocks'] for entry in blocks if 'on_blocks' in entry},
            self.stream.num_blocks, SELECTION_METRIC),
        'config': self._identity['config'], 'data': self._identity['data']}
    files.write_json(self.workdir / 'results.json', results)
    return results

  def _check_base(self, source: pathlib.Path) -> None:
    """Raises a `UserError` unless another run's base block fits this run."""
    state = BlockStore(source, 0).load()
    if state is None or not state['stopped']:
      raise UserError(f'--base_from={source} holds no finished base block.')
    saved = files.read_json(source / 'config.json')
    mine = self._identity
    if saved['data']['fingerprint'] != mine['data']['fingerprint']:
      raise UserError(f'--base_from={source} was trained on other data.')
    for name in workdir_lib.BASE_FIELDS:
      if saved['config'][name] != mine['config'][name]:
        raise UserError(f'--base_from={source} has another config.{name}: {saved["config"][name]} '
                        f'instead of {mine["config"][name]}.')

  def _take_base(self, source: pathlib.Path) -> None:
    """Copies another run's base block, unless that was done before."""
    origin, target = BlockStore(source, 0), BlockStore(self.workdir, 0)
    if target.load() is not None:
      return
    state = origin.load()
    state.pop('result', None)
    with files.replaced_directory(target.folder) as folder:
      for path in origin.folder.glob(state['best'] + '.*'):
        shutil.copy2(path, folder / path.name)
      state['last'] = state['best']
      files.write_json(folder / 'state.json', state)
    self._log(f'base block taken from {source}')
