"""The whole job: every block in turn, each evaluated, exported and safe on disk."""
import contextlib
import dataclasses
import io
import json
import pathlib
import textwrap
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from graphsane_tf import __version__
from graphsane_tf import config as config_lib
from graphsane_tf import files, memory, negatives, peers, workers
from graphsane_tf.blocks.stream import Block
from graphsane_tf.data import prepare
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import forgetting, ranking
from graphsane_tf.peers import base as peers_base
from graphsane_tf.serving import export
from graphsane_tf.runs import folder as folder_lib
from graphsane_tf.runs import source
from graphsane_tf.runs.board import Board
from graphsane_tf.runs import screen
from graphsane_tf.runs import capacity
from graphsane_tf.runs import workdir as workdir_lib
from graphsane_tf.training import assembly
from graphsane_tf.training import scoring as scoring_lib
from graphsane_tf.training.block import SELECTION_METRIC, BlockTrainer, Model, new_model
from graphsane_tf.training.scoring import Evidence, Scoring
from graphsane_tf.training.store import fresh_state
from graphsane_tf.blocks.context import BlockContext


def run(config, interactions: Interactions, workdir=None, *, data: Optional[DataSpec] = None,
        blocks: Optional[List[int]] = None, overwrite: bool = False, profile: bool = False, verbose: bool = False,
        log: Callable[[str], None] = print, exports: bool = True) -> Dict[str, Any]:
  """Trains, evaluates and exports the blocks of a log; resumes what was cut off.

  Args:
    config: a configuration, e.g. `graphsane_tf.config.default_config()` with changes.
    interactions: the log.
    workdir: folder of the run; None names it by its choices below `runs`.
    data: where the log is from, for the folder's name and config.json.
    blocks: numbers of the blocks to run, in order; None runs all. Each needs the one before it, here or
      already in the folder.
    overwrite: start anew if the folder holds a run.
    profile: write a TensorBoard profile of a few steps of each block.
    verbose: log every loss and the speed of each epoch.
    log: takes a line for the screen.
    exports: whether to write a SavedModel of each block.

  Returns:
    What `results.json` holds.
  """
  check_blocks(blocks, config)
  return IncrementalRun(
      config, interactions, workdir, data, overwrite, log, profile, verbose, exports).run(blocks)


def check_blocks(blocks: Optional[List[int]], config) -> None:
  """Raises a `UserError` if one of the blocks to run does not exist; None is all of them."""
  num_blocks = config_lib.resolved(config).blocks.num_incremental
  for index in blocks or ():
    if not 0 <= index < num_blocks:
      raise UserError(f'--block={index} does not exist: this run has blocks 0 to {num_blocks - 1}.')


def open_run(workdir, data_dir='data') -> 'IncrementalRun':
  """Opens the folder of a run with the log that its config.json names.

  Args:
    workdir: the folder.
    data_dir: where the log's raw files or prepared copies are.

  Raises:
    UserError: if the folder holds no run, or the log is not the one that it was made with.
  """
  saved = folder_lib.read_identity(workdir)
  quiet = lambda line: None
  data = DataSpec.from_json(saved['data'])
  interactions = prepare.load(data, data_dir, log=quiet)
  return IncrementalRun(config_lib.restored(saved['config']), interactions, workdir, data, log=quiet)


class IncrementalRun:
  """One run's folder, and the models of its blocks."""

  def __init__(self, config, interactions: Interactions, workdir=None,
               data: Optional[DataSpec] = None, overwrite: bool = False,
               log: Callable[[str], None] = print, profile: bool = False, verbose: bool = False,
               exports: bool = True):
    """Checks everything and writes nothing; see `run` for the arguments."""
    data = data or DataSpec(interactions.name)
    self.config = config_lib.resolved(config)
    self.stream = assembly.stream_of(self.config, interactions)
    self.interactions = interactions
    self._log = log
    self._profile = profile
    self._verbose = verbose
    negatives.REGISTRY[self.config.sampler].check(self.config, interactions)
    self._peer = peers.REGISTRY[self.config.peer]()
    self._exports = exports and not self._peer.fitted
    self._remembers = memory.REGISTRY[self.config.memory].counts
    # Of the block trained last in this process.
    self._scoring: Optional[Scoring] = None
    self._identity = json.loads(json.dumps({
        'data': {**data.to_json(), 'fingerprint': interactions.fingerprint},
        'config': self.config.to_dict()}))
    capacity.check(self.config, self.stream.block(self.stream.num_blocks - 1))
    self._changes = workdir_lib.changed_fields(config)
    self._base = pathlib.Path(self.config.base_from) if self.config.base_from else None
    self.folder = folder_lib.RunFolder(
        workdir or workdir_lib.default_workdir(config, data), self._identity, overwrite)
    self.workdir = self.folder.path
    if self._base and not self.folder.has_base():
      note = folder_lib.check_base(self._base, self._identity)
      if note:
        log(f'note: the base block of {self._base} was trained with other settings ({note}).')

  @contextlib.contextmanager
  def held(self) -> Iterator[None]:
    """Holds the folder for this process, and takes over a base block if one was asked for."""
    with self.folder.held():
      changes = [f'{name}={value}' for name, value in self._changes.items()]
      self._log(f'run       {self.workdir}')
      self._log(textwrap.fill(', '.join(changes) or 'all defaults', 80, initial_indent='config    ',
                              subsequent_indent=' ' * 10, break_long_words=False, break_on_hyphens=False))
      if self._base and not self.folder.has_base() and self.folder.writable:
        folder_lib.check_base(self._base, self._identity)
        self.folder.take_base(self._base)
        self._log(f'base block taken from {self._base}')
      yield

  def run(self, blocks: Optional[List[int]] = None) -> Dict[str, Any]:
    """Runs the given blocks (all by default) and returns the results so far."""
    check_blocks(blocks, self.config)
    with self.held():
      previous = None
      for index in blocks if blocks is not None else range(self.stream.num_blocks):
        previous = self._run_block(index, previous)
      results = self.results(note=True)
    self._log(screen.results_table(results))
    if not self._peer.fitted:
      self._log(screen.forgetting_table(results))
    self._log(f'results   {self.workdir / "results.json"}')
    for entry in results['blocks'] if self._exports else ():
      self._log(f'SavedModel of block {entry["block"]}   {self.workdir / "export" / str(entry["block"])}')
    return results

  def context(self, index: int) -> BlockContext:
    """What block `index` trains on."""
    return assembly.context_of(self.config, self.interactions, index)

  def load_model(self, index: int) -> Model:
    """The finished model of block `index`, from the folder."""
    store = self.folder.store(index)
    state = store.load()
    if not state or not state.get('result'):
      raise UserError(f'block {index} is not finished in {self.workdir}: run it first, with '
                      f'--block={index} or --block=all.')
    model = new_model(self.config, self.context(index), self.config.train.learning_rate)
    store.restore(model.checkpoint(), state['best'])
    return model

  def _run_block(self, index: int, previous: Optional[Model]) -> Optional[Model]:
    """Trains (or finishes) one block; returns its model if it is in memory."""
    store = self.folder.store(index)
    state = store.load()
    if state and state.get('result'):
      lost = self.folder.lost(state, index, self._exports)
      self._log(f'block {index} is finished already.')
      if lost:
        self._log(f'note: {", ".join(lost[:3])}{" ..." if lost[3:] else ""} is missing or damaged '
                  f'{"and is made anew." if self.folder.writable else "and cannot be written here."}')
      if not lost or not self.folder.writable:
        return None
    elif not self.folder.writable:
      raise UserError(f'no permission to write in {self.workdir}, where block {index} is not finished: '
                      'choose another --workdir, or mend its permissions.')
    if self._peer.fitted:
      self._fit_block(index)
      return None
    if index and previous is None and (self._remembers or not self.config.full_retrain):
      previous = self.load_model(index - 1)
    block = self.stream.block(index)
    context = self.context(index)
    scoring, before, evidence = self._scoring_of(context, previous)
    if self.config.full_retrain:
      previous = None
    self._log(f'block {index}: {len(context.users):,} pairs, {block.num_users:,} users '
              f'({block.num_users - context.num_old_users:,} new), {block.num_items:,} items '
              f'({block.num_items - context.num_old_items:,} new)')
    trainer = BlockTrainer(self.config, context, previous, store, self._log,
                           self.workdir / 'tensorboard' if self._profile else None, self._verbose, scoring, before)
    validate = assembly.validator(self.config, self.interactions, block, context, scoring)

    board = Board(self.workdir / 'tensorboard', self.config)

    def on_epoch(record):
      board.add(record, len(self._write_records()))

    state = trainer.train(validate, on_epoch)
    vectors = [np.asarray(part) for part in trainer.represent()]
    validated = self._validated(block, scoring, vectors)
    scorer = scoring(*vectors)
    if self._exports:
      self._export(context, block, scorer, trainer.model)
    told = trainer.sampler.report()
    extra = {'propagation': trainer.propagation, 'sampler': told.facts, **self._mixed(context, block, scoring, vectors)}
    if 'kd_scale' in state:
      extra['kd_scale'] = state['kd_scale']
    if workers.current().name:
      extra['strategy'] = workers.current().name
    for name, told_of in (('evidence', evidence), ('validated', validated)):
      if told_of:
        extra['mixing'][name] = scoring_lib.to_json(told_of)
    tested = self._finish(context, block, state, scorer, extra, told.users)
    extra['on_blocks'] = self._on_blocks(block, tested, scorer)
    self._done(index, state)
    return trainer.model

  def _scoring_of(self, context: BlockContext, previous: Optional[Model]
                  ) -> Tuple[Scoring, Optional[Scoring], Evidence]:
    """How the block's representations rank, how those before it did, and what its rows have shown by the latter."""
    index, evidence, before = context.index, {}, None
    evidences = []
    if self._remembers and previous is not None:
      evidences = self._told('evidence', range(1, index))
      before = self._scoring
      if before is None or before.context.index != index - 1:
        before = Scoring(self.config, self.context(index - 1), evidences)
        for validated in self._told('validated', [index - 1]):
          before.learn(validated)
      user_vectors, item_vectors = previous.backbone.representer(previous.graph)()
      # As far ahead as the test rows of a block are.
      later = slice((context.own.start + context.own.stop) // 2, context.own.stop)
      evidence = before.evidence(user_vectors, item_vectors, *context.rows(later), (self.config.seed, index))
    scoring = self._scoring = Scoring(self.config, context, [*evidences, evidence], before)
    return scoring, before, evidence

  def _told(self, name: str, blocks: Iterable[int]) -> List[Evidence]:
    """What finished blocks have shown about mixtures, as their states have it."""
    saved = (self.folder.store(index).load() for index in blocks)
    return [scoring_lib.from_json(state['result']['mixing'].get(name, ()))
            for state in saved if state and state.get('result', {}).get('mixing')]

  def _validated(self, block: Block, scoring: Scoring, vectors) -> Evidence:
    """Chooses the block's mixture by its validation rows, too; returns what they have shown."""
    rows, log = block.validation, self.interactions
    evidence = scoring.evidence(vectors[0], vectors[1], log.user[rows], log.item[rows],
                                (self.config.seed, block.index, 1))
    scoring.learn(evidence)
    if scoring.mixture is not None:
      self._log(f'block {block.index} score: {scoring.mixture.words()}')
    return evidence

  def _mixed(self, context: BlockContext, block: Block, scoring: Scoring, vectors) -> Dict[str, Any]:
    """What the graph model and the memory give alone on the test rows, beside the mixture; {} without a memory."""
    if scoring.mixture is None:
      return {}
    alone = {name: self.evaluate(context, block.test, scorer).metrics.get(SELECTION_METRIC)
             for name, scorer in scoring.parts(*vectors).items()}
    return {'mixing': {'chosen': dataclasses.asdict(scoring.mixture), f'test {SELECTION_METRIC}': alone}}

  def _export(self, context: BlockContext, block: Block, scorer, model: Optional[Model]) -> None:
    """Writes the block's SavedModel."""
    self.folder.still_there()
    target = self.workdir / 'export' / str(block.index)
    with files.writing(target, tf.errors.OpError):
      export.export_scorer(target, scorer, self.interactions.user_ids[:block.num_users],
                           self.interactions.item_ids[:block.num_items], context.history, context.popularity,
                           model)

  def _fit_block(self, index: int) -> None:
    """Fits and tests a peer with the settings that validation rows up to this block's have shown to be best."""
    block, context = self.stream.block(index), self.context(index)
    before = [self._tried(earlier) for earlier in range(index)]
    choices = peers_base.choices(self._peer.settings)
    started = time.perf_counter()
    scorers = [self._peer.fit(context, **settings) for settings in choices]
    seconds = time.perf_counter() - started
    measured = [self.evaluate(context, block.validation, scorer).metrics for scorer in scorers]
    tried = [metrics.get(SELECTION_METRIC, 0.) for metrics in measured]
    best = peers_base.best([*before, tried])
    words = ', '.join(f'{name} {value:g}' for name, value in choices[best].items()) or 'no settings'
    self._log(f'block {index}: {self.config.peer} ({words}) fitted to {context.num_rows:,} rows in {seconds:.1f} s')
    state = {**fresh_state(), 'train_seconds': seconds, 'epoch': 0, 'validation': measured[best]}
    self._finish(context, block, state, scorers[best], {'settings': choices[best], 'tried': tried}, {})
    self._done(index, state)

  def _tried(self, index: int) -> List[float]:
    """How well each of a peer's settings ranked a block's validation rows."""
    state = self.folder.store(index).load()
    if not state or not state.get('result'):
      raise UserError(f'block {index} is not finished in {self.workdir}, and --peer={self.config.peer} chooses its '
                      'settings by all blocks so far: run --block=all.')
    return state['result']['tried']

  def _finish(self, context: BlockContext, block: Block, state, scorer, extra: Dict[str, Any],
              users: Dict[str, np.ndarray]) -> Dict[str, float]:
    """Tests a block's model; returns the metrics.

    Args:
      context: the block.
      block: the same.
      state: gets the result.
      scorer: the model.
      extra: what the result has beside what every one has.
      users: named sets of users, columns of the file of users.
    """
    index = block.index
    tested = self.evaluate(context, block.test, scorer)
    columns: Dict[str, Any] = {name: np.isin(tested.per_user['user'], some) for name, some in users.items()}
    arrays = io.BytesIO()
    np.savez(arrays, **tested.per_user, **columns)
    self.folder.still_there()
    files.write_bytes(self.workdir / 'per_user' / f'block_{index}.npz', arrays.getvalue())
    if state.get('result', {}).get('test', tested.metrics) != tested.metrics:
      self._log(f'note: block {index} is tested anew with other numbers than before: another machine '
                'or version?')
    state['files'] = self.folder.digests(index)
    state['result'] = extra
    extra.update({
        'block': index, 'train_pairs': len(context.users), 'num_users': block.num_users,
        'num_items': block.num_items, 'epochs': state['epoch'], 'best_epoch': state['best_epoch'],
        'train_seconds': round(state['train_seconds'], 3),
        'sampler_seconds': round(state['sampler_seconds'], 3),
        'validation': state['validation'], 'test': tested.metrics,
        'test_new_users': tested.new_users, 'coverage': tested.coverage})
    return tested.metrics

  def _done(self, index: int, state) -> None:
    """Marks a block as done, and brings the tables up to date."""
    self.folder.store(index).save_state(state)
    self._write_records()
    self.results()

  def evaluate(self, context: BlockContext, rows: slice, scorer: ranking.Scorer):
    """Metrics of a model on later rows of the log.

    Args:
      context: the block that it was trained on.
      rows: the rows of the log.
      scorer: the model.
    """
    return assembly.evaluate(self.config, self.interactions, context, rows, scorer)

  def _on_blocks(self, block: Block, own: Dict[str, float],
                 scorer: ranking.DotProduct) -> Dict[str, List[Optional[float]]]:
    """A row of the matrix in `evaluation.forgetting`: the block's model on each block's test rows."""
    recall: List[Optional[float]] = []
    chance: List[Optional[float]] = []
    for index in range(self.stream.num_blocks):
      other = self.stream.block(index)
      context = self.context(index)
      users, items = min(block.num_users, other.num_users), min(block.num_items, other.num_items)
      measured = own if index == block.index else self.evaluate(
          context, other.test, scorer.cut(users, items)).metrics
      recall.append(measured.get(SELECTION_METRIC))
      chance.append(forgetting.random_recall(
          context.history, self.interactions.user[other.test],
          self.interactions.item[other.test], users, items, int(SELECTION_METRIC.split('@')[1])))
    return {'recall': recall, 'chance': chance}

  def _states(self) -> List[Dict[str, Any]]:
    """Saved states of the blocks that have one."""
    states = (self.folder.store(index).load() for index in range(self.stream.num_blocks))
    return [state for state in states if state]

  def _write_records(self, note: bool = False) -> List[Dict[str, Any]]:
    """Brings metrics.jsonl up to date and returns what is in it; see `RunFolder.update` for `note`."""
    records = [record for state in self._states() for record in state['records']]
    self.folder.update('metrics.jsonl', ''.join(json.dumps(record) + '\n' for record in records),
                       self._log, note)
    return records

  def results(self, note: bool = False) -> Dict[str, Any]:
    """Collects the finished blocks, brings results.json up to date and returns it.

    Args:
      note: say so if it, or metrics.jsonl, was not as the blocks' states have it.
    """
    blocks = [state['result'] for state in self._states() if state.get('result')]
    later = [entry['test'] for entry in blocks if entry['block'] > 0]
    average = {name: float(np.mean([test[name] for test in later if name in test]))
               for name in (later[0] if later else {})}
    config = self.config
    results = {
        'version': __version__, 'commit': source.commit(),
        'dataset': self._identity['data']['dataset'], 'backbone': config.backbone, 'kd': config.kd,
        'sampler': config.sampler, 'replay': config.replay, 'memory': config.memory, 'peer': config.peer,
        'seed': config.seed, 'blocks': blocks, 'average': average,
        'full_retrain': config.full_retrain,
        'forgetting': forgetting.report(
            {entry['block']: entry['on_blocks'] for entry in blocks if 'on_blocks' in entry},
            self.stream.num_blocks, SELECTION_METRIC),
        'config': self._identity['config'], 'data': self._identity['data']}
    if note:
      self._write_records(note)
    self.folder.update('results.json', files.json_text(results), self._log, note)
    return results
