"""Makes versions of a store: the first one from a history, the next from today's rows."""
import dataclasses
import datetime
import pathlib
import time
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from graphsane_tf import config as config_lib
from graphsane_tf import files, memory, negatives
from graphsane_tf.data import growing, spelling
from graphsane_tf.data.readers import csv
from graphsane_tf.errors import UserError
from graphsane_tf.runs import forgetting, gate
from graphsane_tf.runs.attempt import Attempt, Outcome, Say, refusal
from graphsane_tf.runs.store import Settings, Store, checked_name, held, identity, read_rows


_A_DAY = 86400
_USUAL, _DEFAULTS = csv.Columns(), Settings()


def create(path, interactions, config, *, name: str = 'recommender', columns: csv.Columns = _USUAL,
           settings: Settings = _DEFAULTS, say: Say = print) -> Outcome:
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
  checked_name(name)
  config_lib.check_is_trained(config, 'a store')
  if config.base_from:
    raise UserError('--base_from has no meaning for a store: its base block is trained on all of the history.')
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
      if len(log) > 1 and log.time[0] == log.time[-1]:
        raise UserError(f'all {len(log):,} rows of {interactions} have the same time, and nothing says which came '
                        'last: give the real times with --timestamp_column.')
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
    _warn(kept, say)
    return Attempt(store, kept, None, settings.margin, say).run()


def update(store: Store, interactions=None, *, forget_users: Sequence[str] = (), forget_items: Sequence[str] = (),
           margin: Optional[float] = None, publish: Optional[str] = None, say: Say = print) -> Outcome:
  """Brings a store up to date; the same call again goes on where it was cut off.

  Args:
    store: the store.
    interactions: a file with today's rows, or the whole grown log; None only forgets.
    forget_users: raw ids of users who leave no trace in the next version.
    forget_items: likewise of items.
    margin: stands in for the store's own.
    publish: one of `gate.MOVES` that is published whatever the gate says; None lets the gate decide.
    say: takes a line for the screen.
  """
  if publish in gate.ALONE and not memory.REGISTRY[store.config.memory].counts:
    raise UserError(f'--publish={publish}: the store has no memory; choose trained or graph_only.')
  margin = dataclasses.replace(
      store.settings, margin=store.settings.margin if margin is None else margin).margin
  with store.held():
    current = store.manifest()['number']
    tables = store.read_rows(interactions, say) if interactions is not None else []
    # Before anybody is forgotten: what is refused changes nothing.
    before = store.log().interactions.time if tables else np.zeros(0)
    for table in tables:
      _check_times(before, table['timestamp'].to_numpy(), interactions)
    sentence = ''
    if len(forget_users) or len(forget_items):
      sentence = forgetting.forget(store, forget_users, forget_items, say)
      current = store.manifest()['number']
    kept = store.log()
    log, arrival = growing.append(kept.interactions, tables, str(interactions), store.settings.min_rating,
                                  (forget_users, forget_items))
    if arrival.rows:
      kept = _with_part(kept, log, arrival, interactions, files.sha256(interactions))
      kept.write(store.path / 'log')
      store.tidy()
      _tell_arrival(kept.parts[-1], say)
      _warn(kept, say)
    parent = store.versions.check(current)
    if not any(map(len, tables)) or len(kept.interactions) == parent['data']['rows']:
      files.remove(store.work)
      ignored = _ignored(dataclasses.asdict(arrival))
      return Outcome('published' if sentence else 'nothing', current, sentence or (
          f'no new rows{f" ({ignored})" if ignored else ""}: version {current} stays.'),
          store.manifest() if sentence else None)
    refused = store.refusal(current, len(kept.interactions))
    if refused and not arrival.rows and not publish:
      return Outcome('refused', current, refusal(refused, current), refused)
    return Attempt(store, kept, parent, margin, say, publish).run()


def rollback(store: Store, number: int) -> int:
  """Publishes an older version again; returns its new number."""
  with store.held():
    files.remove(store.work)
    files.make_directory(store.work)
    try:
      return store.versions.rollback(number, store.staging)
    finally:
      files.remove(store.work)


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


def _check_times(before: np.ndarray, new: np.ndarray, path) -> None:
  """Refuses rows of the future: they were misread, and would stand before every later day, whose rows were late then.

  Not where the log has such rows already: then it is no log of this world.
  """
  now = time.time() + _A_DAY
  late = new > now
  if late.any() and not (before > now).any():
    raise UserError(f'{path}: {late.sum():,} rows are later than today by the clock of this machine, the last of '
                    f'{np.datetime64(int(new.max()), "s")}: correct or remove them (is it the right column, in the '
                    'right unit?).')


def _warn(kept: growing.KeptLog, say: Say) -> None:
  """Says what may have gone wrong with the newest part: ids that are written in another way than before, and times."""
  part, log = kept.parts[-1], kept.interactions
  for what, ids in (('users', log.user_ids), ('items', log.item_ids)):
    sentence = spelling.warning(what, ids, len(ids) - part[what])
    if sentence:
      say(sentence)
  times = log.time[part['first_row']:]
  late = times > time.time() + _A_DAY
  if late.any():
    say(f'warning: {late.sum():,} rows are later than today by the clock of this machine, the last of '
        f'{np.datetime64(int(times.max()), "s")}: is it the right column, in the right unit?')


def _tell_arrival(part: Dict[str, Any], say: Say) -> None:
  late = f', {part["late"]:,} of them late' if part['late'] else ''
  ignored = _ignored(part)
  say(f'{part["file"]}: {part["rows"]:,} new rows{late}; {part["users"]:,} new users, {part["items"]:,} new items'
      + (f'; ignored: {ignored}' if ignored else ''))
