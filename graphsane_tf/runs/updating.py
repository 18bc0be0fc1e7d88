"""Makes versions of a store: the first one from a history, the next from today's rows."""
import dataclasses
import datetime
import pathlib
import re
import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from graphsane_tf import config as config_lib
from graphsane_tf import files, negatives
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.data import growing
from graphsane_tf.data.readers import csv
from graphsane_tf.errors import UserError
from graphsane_tf.runs import capacity, changes, gate
from graphsane_tf.runs.store import Settings, Store, held, identity, known, read_rows
from graphsane_tf.training import assembly, optimizers
from graphsane_tf.training.block import BlockTrainer, Model, new_model
from graphsane_tf.training.store import BlockStore

Say = Callable[[str], None]
# With fewer rows held out than this nothing can be measured, and more than this tell nothing more.
MIN_HELD, MAX_HELD = 20, 20_000


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What an update has come to.

  Attributes:
    decision: 'published', 'refused' or 'nothing' (there was nothing new).
    version: the one that is served now.
    sentence: what happened.
    manifest: of the version made, published or not; None if there was none.
  """
  decision: str
  version: int
  sentence: str
  manifest: Optional[Dict[str, Any]] = None


def create(path, interactions, config, *, name: str = 'recommender', columns: csv.Columns = csv.Columns(),
           settings: Settings = Settings(), say: Say = print) -> Outcome:
  """Makes a store and its version 1; the same call again goes on where it was cut off.

  Args:
    path: a folder that does not exist or is empty.
    interactions: a file of history, as `--dataset=csv` reads it.
    config: the configuration.
    name: of the model, in the paths of TensorFlow Serving.
    columns: names of the file's columns.
    settings: how the store is updated.
    say: takes a line for the screen.

  Raises:
    UserError: if the folder holds something else, or a store that was made in another way.
  """
  path = pathlib.Path(path)
  if not re.fullmatch(r'[A-Za-z][\w.-]*', name):
    raise UserError(f'--name={name}: a name begins with a letter and has only letters, digits, _, . and -.')
  if path.exists() and not (path / 'store.json').exists() and any(
      entry.name != 'store.lock' and not entry.name.startswith('.store.json.') for entry in path.iterdir()):
    raise UserError(f'--store={path} is not empty and holds no store: choose another folder.')
  tables = read_rows(interactions, columns, settings.min_rating, None, say)
  categories = any('category' in table.column_names for table in tables)
  wanted = identity(name, columns, categories, settings, config)
  digest = files.sha256(interactions)
  with held(path):
    if not (path / 'store.json').exists():
      log, arrival = growing.append(growing.empty(), tables, str(interactions), settings.min_rating)
      if not arrival.rows:
        raise UserError(f'{interactions} has no rows to begin with: give a history with --interactions.')
      resolved = config_lib.resolved(config)
      negatives.REGISTRY[resolved.sampler].check(resolved, log)
      files.write_json(path / 'store.json', wanted)
    elif files.read_json(path / 'store.json') != wanted:
      raise UserError(f'--store={path} was made with other flags: choose another folder, or use graphsane update.')
    store = Store(path)
    store.tidy()
    kept = store.log()
    if not kept.parts:
      log, arrival = growing.append(kept.interactions, tables, str(interactions), settings.min_rating)
      kept = _with_part(kept, dataclasses.replace(log, name=name), arrival, interactions, digest)
      kept.write(path / 'log')
    elif kept.parts[0]['sha256'] != digest:
      raise UserError(f'--store={path} was begun with another history ({kept.parts[0]["file"]}): choose another '
                      'folder, or use graphsane update.')
    current = store.versions.current()
    if current:
      files.remove(store.work)
      return Outcome('nothing', current, f'the store is there already, at version {current}.')
    _tell_arrival(kept.parts[-1], say)
    return _Attempt(store, kept, None, settings.margin, say).run()


def update(store: Store, interactions=None, *, forget_users: Sequence[str] = (), forget_items: Sequence[str] = (),
           margin: Optional[float] = None, say: Say = print) -> Outcome:
  """Brings a store up to date; the same call again goes on where it was cut off.

  Args:
    store: the store.
    interactions: a file with today's rows, or the whole grown log; None only forgets.
    forget_users: raw ids of users who leave no trace in the next version.
    forget_items: likewise of items.
    margin: stands in for the store's own.
    say: takes a line for the screen.
  """
  margin = dataclasses.replace(
      store.settings, margin=store.settings.margin if margin is None else margin).margin
  with store.held():
    current = store.manifest()['number']
    tables = store.read_rows(interactions, say) if interactions is not None else []
    sentence = ''
    if len(forget_users) or len(forget_items):
      sentence = _forget(store, forget_users, forget_items, say)
      current = store.manifest()['number']
    kept = store.log()
    log, arrival = growing.append(kept.interactions, tables, str(interactions), store.settings.min_rating,
                                  (forget_users, forget_items))
    if arrival.rows:
      kept = _with_part(kept, log, arrival, interactions, files.sha256(interactions))
      kept.write(store.path / 'log')
      store.tidy()
      _tell_arrival(kept.parts[-1], say)
    parent = store.versions.check(current)
    if not any(map(len, tables)) or len(kept.interactions) == parent['data']['rows']:
      files.remove(store.work)
      ignored = _ignored(dataclasses.asdict(arrival))
      return Outcome('published' if sentence else 'nothing', current, sentence or (
          f'no new rows{f" ({ignored})" if ignored else ""}: version {current} stays.'),
          store.manifest() if sentence else None)
    refused = store.refusal(current, len(kept.interactions))
    if refused and not arrival.rows:
      return Outcome('refused', current, _refusal(refused, current), refused)
    return _Attempt(store, kept, parent, margin, say).run()


def rollback(store: Store, number: int) -> int:
  """Publishes an older version again; returns its new number."""
  with store.held():
    files.remove(store.work)
    files.make_directory(store.work)
    new = store.versions.rollback(number, store.staging)
    files.remove(store.work)
    return new


def prune(store: Store, keep: int) -> List[pathlib.Path]:
  """Deletes all but the newest `keep` versions; returns the folders that are gone."""
  with store.held():
    return store.versions.prune(keep)


def _with_part(kept: growing.KeptLog, log, arrival: growing.Arrival, file, digest: str) -> growing.KeptLog:
  """The log with one more part."""
  part = {**dataclasses.asdict(arrival), 'first_row': len(kept.interactions), 'file': pathlib.Path(file).name,
          'sha256': digest, 'arrived': datetime.datetime.now(datetime.timezone.utc).isoformat('T', 'seconds')}
  return growing.KeptLog(kept.number + 1, kept.numbering, log, [*kept.parts, part])


def _ignored(part: Dict[str, Any]) -> str:
  words = {'already_used': 'used already', 'repeated': 'repeated', 'unrated': 'rated too low', 'unwanted': 'forgotten'}
  return ', '.join(f'{part[name]:,} {word}' for name, word in words.items() if part.get(name))


def _tell_arrival(part: Dict[str, Any], say: Say) -> None:
  late = f', {part["late"]:,} of them late' if part['late'] else ''
  ignored = _ignored(part)
  say(f'{part["file"]}: {part["rows"]:,} new rows{late}; {part["users"]:,} new users, {part["items"]:,} new items'
      + (f'; ignored: {ignored}' if ignored else ''))


def _refusal(manifest: Dict[str, Any], current: int) -> str:
  return (f'version {manifest["number"]} is not published and version {current} stays: {manifest["gate"]["reason"]} '
          'Its rows wait for the next update.')


def _changed(config, fields: Dict[str, Any]):
  """A resolved configuration with other values of some fields."""
  copy = config_lib.restored(config.to_dict())
  copy.update_from_flattened_dict(fields)
  return config_lib.resolved(copy)


def _moved(config, context: BlockContext, previous: Model) -> Model:
  """A model's weights with the graph of a later block; new nodes begin as the mean of their neighbours."""
  config = _changed(config, {'model.new_rows': 'neighbours'})
  model = new_model(config, context, config.train.learning_rate)
  model.backbone.grow_from(previous.backbone, model.graph)
  optimizers.grow_state(previous.optimizer, previous.backbone.named_variables(), model.optimizer,
                        model.backbone.named_variables())
  return model


def _forget(store: Store, users: Iterable[str], items: Iterable[str], say: Say) -> str:
  """Publishes the current version without some users and items, and deletes whatever knew them.

  Returns:
    What was done, '' if the store knows none of them.
  """
  kept = store.log()
  log = kept.interactions
  gone = [int(np.isin(ids, np.array(list(names), object)).sum())
          for ids, names in ((log.user_ids, users), (log.item_ids, items))]
  if not any(gone):
    say('nobody and nothing to forget: the store knows none of these ids.')
    return ''
  shrunk = growing.forget(log, users, items)
  number = store.manifest()['number']
  parent = store.versions.check(number)
  before_context = store.context_of(parent, kept)
  before = store.model(parent, before_context)
  place = np.concatenate([[0], np.cumsum(shrunk.kept_rows)])
  parts = [{**part, 'first_row': int(place[part['first_row']]),
            'rows': int(place[part['first_row'] + part['rows']] - place[part['first_row']])} for part in kept.parts]
  kept = growing.KeptLog(kept.number + 1, kept.numbering + 1, shrunk.log, [part for part in parts if part['rows']])
  first, stop = (int(place[row]) for row in parent['trained']['rows'])
  if stop == 0:
    raise UserError('without the users and items to forget, the current version has no rows left: make a new store.')
  files.remove(store.work)
  files.make_directory(store.work)
  kept.write(store.path / 'log')
  context = store.context(kept, store.block(kept.interactions, parent['update'], first, stop))
  model = _shrunk(store.config, context, before, shrunk)
  new = store.versions.next_number()
  sentence = f'{gone[0]:,} users and {gone[1]:,} items forgotten'
  store.stage(kept, context, model, {
      **{name: parent[name] for name in ('update', 'measured', 'drift')},
      'number': new, 'kind': 'forgotten', 'parent': number,
      'arrived': {'rows': 0, 'forgotten_users': gone[0], 'forgotten_items': gone[1]},
      'trained': {**parent['trained'], 'rows': [first, stop]},
      'gate': {'decision': 'forgotten', 'reason': f'{sentence}; nothing was trained.'}, 'seconds': {}})
  store.versions.publish(store.staging, new)
  store.tidy()
  sentence += f'; version {new} is published without them and older versions are deleted.'
  say(sentence)
  return sentence


def _shrunk(config, context: BlockContext, before: Model, shrunk: growing.Shrinkage) -> Model:
  """A model without the rows of those who are forgotten."""
  model = new_model(config, context, config.train.learning_rate)
  rows = {'user_table': shrunk.users[:context.num_users], 'item_table': shrunk.items[:context.num_items]}
  new_variables = model.backbone.named_variables()
  for name, variable in before.backbone.named_variables().items():
    kept = rows.get(name, slice(None))
    new_variables[name].assign(variable.numpy()[kept])
    for slot in optimizers.SLOTS:
      model.optimizer.get_slot(new_variables[name], slot).assign(before.optimizer.get_slot(variable, slot).numpy()[kept])
  model.optimizer.iterations.assign(before.optimizer.iterations)
  return model


class _Attempt:
  """One new version, from the rows that the parent has not been trained on."""

  def __init__(self, store: Store, kept: growing.KeptLog, parent: Optional[Dict[str, Any]], margin: float, say: Say):
    self._store, self._kept, self._parent, self._margin, self._say = store, kept, parent, margin, say
    self._log = kept.interactions
    self._config = store.config
    self._index = parent['update'] + 1 if parent else 0
    self._first = parent['data']['rows'] if parent else 0
    self._stop = len(self._log)
    held_out = min(int(store.settings.holdout * (self._stop - self._first)), MAX_HELD)
    self._cut = self._stop - (held_out if held_out >= MIN_HELD else 0)
    self._middle = (self._cut + self._stop) // 2
    self._number = store.versions.next_number()
    self._seconds: Dict[str, float] = {}

  def run(self) -> Outcome:
    """Trains, judges and publishes or refuses."""
    store, started = self._store, time.perf_counter()
    self._settle()
    capacity.check(self._config, self._block(self._stop))
    previous = self._previous()
    if self._cut < self._stop:
      chosen = self._choose(previous)
    else:
      chosen = self._unjudged()
    manifest, final = chosen
    decision = manifest['gate']['decision']
    if decision == 'refused':
      context, model = final
    else:
      context, model = self._final(previous, manifest)
    exported = time.perf_counter()
    self._say('writing the version')
    scorer = assembly.scorer_of(self._config, context, model)
    manifest['drift'] = changes.facts(self._log, context, scorer, previous and previous[2])
    self._seconds['export'] = time.perf_counter() - exported
    self._seconds['total'] = time.perf_counter() - started
    manifest['seconds'] = {name: round(value, 3) for name, value in self._seconds.items()}
    store.stage(self._kept, context, model, manifest)
    if decision == 'refused':
      self._say('putting it away')
      store.versions.reject(store.staging, self._number)
      files.remove(store.work)
      current = store.manifest()['number']
      return Outcome('refused', current, _refusal(manifest, current), manifest)
    self._say('publishing')
    store.versions.publish(store.staging, self._number)
    files.remove(store.work)
    return Outcome('published', self._number,
                   f'version {self._number} is published ({manifest["kind"]}): {manifest["gate"]["reason"]}',
                   store.manifest(self._number))

  def _settle(self) -> None:
    """Goes on with the work of the same attempt, and deletes that of any other."""
    store = self._store
    plan = {'number': self._number, 'parent': self._parent and self._parent['number'], 'first': self._first,
            'cut': self._cut, 'stop': self._stop, 'fingerprint': self._log.fingerprint}
    path = store.work / 'plan.json'
    if not path.exists() or files.read_json(path) != plan:
      files.remove(store.work)
      files.write_json(path, plan)

  def _block(self, stop: int):
    return self._store.block(self._log, self._index, self._first, stop, slice(self._cut, self._middle))

  def _previous(self) -> Optional[Tuple[Model, BlockContext, Any]]:
    """The parent's model, what it knows and how it ranks."""
    if self._parent is None:
      return None
    context = self._store.context_of(self._parent, self._kept)
    model = self._store.model(self._parent, context)
    return model, context, assembly.scorer_of(self._config, context, model)

  def _train(self, folder: str, config, context: BlockContext, previous, validate) -> Tuple[Dict[str, Any], Model]:
    """Trains in a folder of its own, from where it was cut off."""
    place = files.make_directory(self._store.work / folder)
    start = None if previous is None or config.full_retrain else previous[0]
    trainer = BlockTrainer(config, context, start, BlockStore(place, self._index), self._say)
    state = trainer.train(validate, lambda record: None)
    self._seconds[folder] = state['train_seconds']
    return state, trainer.model

  def _choose(self, previous):
    """Chooses epochs on the first half of the held-out rows and judges on the second.

    Returns:
      The manifest so far, and (context, model) of the better move.
    """
    config, log, store = self._config, self._log, self._store
    block = self._block(self._cut)
    context = store.context(self._kept, block)
    self._say(f'choosing the epochs: {self._cut - self._first:,} rows to train on, {self._middle - self._cut:,} to '
              f'choose with, {self._stop - self._middle:,} to judge with')
    validate = assembly.validator(config, log, block, context)
    state, model = self._train('choose', config, context, previous, validate)
    began = time.perf_counter()
    rows = slice(self._middle, self._stop)
    judge = gate.Judge(log.user[rows], log.item[rows], log.num_users, assembly.measured(config))
    models = {'trained': model}
    if previous is not None:
      models['graph_only'] = _moved(config, context, previous[0])
    measured = {name: judge.measure(assembly.scorer_of(config, context, move), context)
                for name, move in models.items()}
    if previous is not None:
      measured['current'] = judge.measure(previous[2], previous[1])
    measured['popularity'] = judge.measure_popularity(gate.recent_counts(context, log.time), context)
    verdict = gate.decide(measured, self._margin)
    if previous is None:
      verdict['decision'] = 'first'
    self._seconds['judge'] = time.perf_counter() - began
    for name, result in measured.items():
      self._say(f'  {name:12} ' + '  '.join(f'{metric} {result.metrics[metric]:.4f}'
                                            for metric in (gate.SELECTION_METRIC, 'ndcg@20') if metric in result.metrics))
    self._say(f'gate: {verdict["reason"]}')
    moved = verdict['chosen']
    manifest = self._manifest(
        verdict, moved, state['best_epoch'] if moved == 'trained' else 0, 'validation' if moved == 'trained' else 'none',
        {'rows_trained': [self._first, self._cut], 'validation_rows': [self._cut, self._middle],
         'judged_rows': [self._middle, self._stop], 'epochs': state['best_epoch'],
         'validation': state['validation']})
    if verdict['decision'] == 'refused':
      manifest['trained']['rows'] = [self._first, self._cut]
    return manifest, (context, models[moved])

  def _unjudged(self):
    """The manifest of a day with too few rows to hold any out."""
    parent, train = self._parent, self._config.train
    if parent is None:
      epochs = train.base_epochs
    else:
      epochs = parent['trained']['epochs'] if parent['update'] else train.min_epochs
    moved = 'trained' if epochs else 'graph_only'
    rows = self._stop - self._first
    reason = (f'{rows:,} rows are too few to hold any out: not judged, and as many epochs as before '
              f'({epochs}).')
    self._say(reason)
    verdict = {'decision': 'unjudged', 'chosen': moved, 'reason': reason, 'metric': gate.SELECTION_METRIC,
               'margin': self._margin, 'options': {}, 'users': 0, 'difference': None}
    return self._manifest(verdict, moved, epochs, 'earlier', {
        'rows_trained': None, 'validation_rows': None, 'judged_rows': None, 'epochs': None, 'validation': {}}), None

  def _manifest(self, verdict, moved: str, epochs: int, epochs_from: str, measured) -> Dict[str, Any]:
    parts = [part for part in self._kept.parts if part['first_row'] >= self._first]
    names = [field.name for field in dataclasses.fields(growing.Arrival)]
    return {
        'number': self._number, 'kind': moved if self._parent else 'base',
        'parent': self._parent and self._parent['number'], 'update': self._index,
        'arrived': {**{name: parts[-1][name] for name in names},
                    'waiting': sum(part['rows'] for part in parts[:-1]),
                    'files': [{name: part[name] for name in ('file', 'sha256')} for part in parts]},
        'trained': {'epochs': epochs, 'epochs_from': epochs_from, 'rows': [self._first, self._stop]},
        'measured': measured, 'gate': verdict}

  def _final(self, previous, manifest) -> Tuple[BlockContext, Model]:
    """The model that is served: the same move, with all rows."""
    context = self._store.context(self._kept, self._block(self._stop))
    epochs = manifest['trained']['epochs']
    if not epochs:
      return context, _moved(self._config, context, previous[0])
    self._say(f'training on all {self._stop - self._first:,} rows for {epochs} epochs')
    config = _changed(self._config, {f'train.{name}': epochs for name in (
        'epochs', 'min_epochs', 'base_epochs', 'base_min_epochs')})
    _, model = self._train('final', config, context, previous, None)
    return context, model


def new_rows(store: Store) -> int:
  """Rows of the log that the current version has not been trained on."""
  current = store.versions.current()
  return len(store.log().interactions) - (store.manifest(current)['data']['rows'] if current else 0)


__all__ = ['Outcome', 'create', 'known', 'new_rows', 'prune', 'rollback', 'update']
