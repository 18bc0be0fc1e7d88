"""Weeks of updates in one go: a log cut by the calendar, a store updated day by day, and what else one could do.

Every way of keeping up is measured on the rows of the day after, by the gate's protocol. Each figure is on disk as
soon as it is there, and finished ones are not computed again.
"""
import dataclasses
import pathlib
import re
import shutil
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphsane_tf import config as config_lib
from graphsane_tf import files, peers
from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.blocks.stream import Block
from graphsane_tf.data import growing
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import ranking
from graphsane_tf.peers.base import choices
from graphsane_tf.runs import gate, updating
from graphsane_tf.runs import store as stores
from graphsane_tf.training import assembly

_UNITS = {'h': 3600, 'd': 86400, 'w': 7 * 86400}
# Ways of keeping up, and what they are called.
METHODS = {'ours': 'ours, with gate', 'never': 'never updated', 'popularity': 'popularity of the last week',
           'ease': 'EASE, refitted each time', 'retrained': 'full retraining, weekly',
           'finetuned': 'fine-tuning without gate'}
METRICS = ('recall@20', 'ndcg@20')
# Versions that a store keeps.
KEEP = 5


def seconds_of(text: str, flag: str) -> int:
  """'1d' is 86400."""
  found = re.fullmatch(r'([1-9][0-9]*)([hdw])', text)
  if not found:
    raise UserError(f'--{flag}={text}: give a number with h, d or w behind it, such as 1d.')
  return int(found[1]) * _UNITS[found[2]]


def _processor_seconds(action: Callable[[], updating.Outcome]) -> Optional[float]:
  """Seconds of all cores that an update has taken; None if it had been done before this process began."""
  began = time.process_time()
  done = action()
  return None if done.decision == 'nothing' else round(time.process_time() - began, 3)


@dataclasses.dataclass(frozen=True)
class Days:
  """A log as files: a history, then one file a period.

  Attributes:
    log: all rows, numbered as a store that is given the files numbers them.
    files: the history's, then one for each period; periods without rows have one, too.
    cuts: [num_files + 1] first row of each file in the log, and the number of rows.
  """
  log: Interactions
  files: List[pathlib.Path]
  cuts: List[int]


def cut_days(interactions: Interactions, folder: pathlib.Path, history: int, every: int, updates: int) -> Days:
  """Cuts a log by the calendar and writes the files.

  Args:
    interactions: the log.
    folder: for the files.
    history: seconds from midnight (UTC) of the first row that are the history.
    every: seconds of a period.
    updates: how many periods are updates; one more is cut for the last of them to be measured on.
  """
  start = int(interactions.time[0]) // 86400 * 86400
  edges = start + history + every * np.arange(updates + 2)
  rows = [0, *np.searchsorted(interactions.time, edges).tolist()]
  if rows[1] == 0 or rows[1] == rows[-1]:
    raise UserError('--history leaves no rows before or after it: choose another span.')
  paths, log, cuts = [], growing.empty(), [0]
  for number, (first, stop) in enumerate(zip(rows, rows[1:])):
    part = slice(first, stop)
    columns = {'user': interactions.user_ids[interactions.user[part]],
               'item': interactions.item_ids[interactions.item[part]], 'timestamp': interactions.time[part]}
    if interactions.item_category is not None and interactions.category_names is not None:
      columns['category'] = interactions.category_names[interactions.item_category[interactions.item[part]]]
    table = pa.table({name: pa.array(values, pa.int64() if name == 'timestamp' else pa.string())
                      for name, values in columns.items()})
    paths.append(folder / f'day_{number:03}.parquet')
    if not paths[-1].exists():
      sink = pa.BufferOutputStream()
      pq.write_table(table, sink)
      files.write_bytes(paths[-1], sink.getvalue().to_pybytes())
    log, _ = growing.append(log, [table], paths[-1].name)
    cuts.append(len(log))
  return Days(log, paths, cuts)


class Soak:
  """One soak in its folder."""

  def __init__(self, folder, days: Days, config, settings: stores.Settings, every: int,
               say: Callable[[str], None] = print):
    """Takes the days and how the store is configured and updated; `every` are the seconds of a period."""
    self.folder = pathlib.Path(folder)
    self._days = days
    self._config = config_lib.resolved(config)
    self._settings = settings
    self._say = say
    # A week in periods, at least one.
    self._week = max(7 * 86400 // every, 1)
    self._file = self.folder / 'soak.json'
    self._figures: Dict[str, Dict[str, Any]] = files.read_json(self._file) if self._file.exists() else {}

  def run(self, methods: Sequence[str], updates: int) -> Dict[str, Dict[str, Any]]:
    """Goes through the days; method to day ('0' is after the history) to its figures."""
    for day in range(updates + 1):
      for method in methods:
        done = self._figures.setdefault(method, {})
        if str(day) in done:
          continue
        began = time.perf_counter()
        figures = getattr(self, f'_{method}')(day)
        figures = {**figures, 'wall': round(time.perf_counter() - began, 3)}
        done[str(day)] = figures
        files.write_json(self._file, self._figures)
        self._say(f'day {day:3}  {METHODS[method]:30} ' + '  '.join(
            f'{name} {figures[name]:.4f}' for name in METRICS if figures.get(name) is not None)
            + f'  {figures.get("seconds") or 0.:.0f} s  {figures.get("decision", "")}')
    return self._figures

  def _measured(self, day: int, measure) -> Dict[str, Any]:
    """Figures on the rows of the day after; `measure` is given the judge of that day."""
    rows = slice(self._days.cuts[day + 1], self._days.cuts[day + 2])
    log = self._days.log
    if rows.start == rows.stop:
      return dict.fromkeys(METRICS)
    judge = gate.Judge(log.user[rows], log.item[rows], log.num_users, assembly.measured(self._config))
    found = measure(judge).metrics
    return {'users': len(np.unique(log.user[rows])), **{name: found[name] for name in METRICS}}

  def _context(self, day: int, first: Optional[int] = None, stop: Optional[int] = None) -> BlockContext:
    """All rows up to a day; the day's are its own."""
    log, cuts = self._days.log, self._days.cuts
    stop = cuts[day + 1] if stop is None else stop
    first = min(cuts[day], stop - 1) if first is None else first
    users, items = stores.known(log, stop)
    return contexts.cut(log, Block(day, slice(first, stop), slice(0, 0), slice(0, 0), users, items), None)

  # Stores.

  def _served(self, path: pathlib.Path, day: int, number: Optional[int] = None) -> Dict[str, Any]:
    """Figures of a version of a store, the current one by default."""
    store = stores.Store(path)
    manifest = store.manifest(number)
    kept = store.log()
    rows = manifest['data']['rows']
    for one, other in ((kept.interactions.user, self._days.log.user), (kept.interactions.item, self._days.log.item)):
      # Rows and ids have one order, in whichever files they come: otherwise figures would mean nothing.
      assert np.array_equal(one[:rows], other[:rows])
    context = store.context_of(manifest, kept)
    scorer = store.scorer(manifest['number'])
    return {'version': manifest['number'], **self._measured(day, lambda judge: judge.measure(scorer, context))}

  def _updated(self, path: pathlib.Path, day: int, publish: Optional[str] = None) -> Dict[str, Any]:
    """Brings a store up to a day and measures what it serves then."""
    store = stores.Store(path)
    cpu = None
    if day:
      cpu = _processor_seconds(lambda: updating.update(
          store, self._days.files[day], publish=publish, say=self._whisper))
      updating.prune(store, KEEP)
    rows = self._days.cuts[day + 1]
    # Read from disk, because the update may have ended before this process began.
    made = store.refusal(store.manifest()['number'], rows) or store.manifest()
    new = rows > self._days.cuts[day]
    return {'seconds': made['seconds']['total'] if new else 0., 'cpu': cpu, 'bytes': stores.size_on_disk(path),
            'decision': made['gate']['decision'] if new else 'nothing', 'gate': made['gate'] if new else None,
            'drift': made['drift'] if new else None, **self._served(path, day)}

  def _whisper(self, line: str) -> None:
    self._say(f'    {line}')

  def _ours(self, day: int) -> Dict[str, Any]:
    return self._updated(self._copy('ours', {}), day)

  def _never(self, day: int) -> Dict[str, Any]:
    return self._served(self._first_store(), day, 1)

  def _finetuned(self, day: int) -> Dict[str, Any]:
    """The weights are always trained, without distillation, replay or a sampler, and always published."""
    plain = {'kd': 'none', 'replay': 'none', 'sampler': 'uniform', 'full_retrain': False}
    return self._updated(self._copy('finetuned', plain), day, 'trained')

  def _first_store(self) -> pathlib.Path:
    """The store after the history, with which all begin; it is never updated."""
    path = self.folder / 'first'
    if not (path / 'models').exists():
      updating.create(path, self._days.files[0], self._config, settings=self._settings, say=self._whisper)
    return path

  def _copy(self, name: str, changes: Dict[str, Any]) -> pathlib.Path:
    """A copy of it that is updated, with other values of some fields of the configuration."""
    path = self.folder / name
    if not path.exists():
      with files.replaced_directory(path) as temporary:
        shutil.copytree(self._first_store(), temporary, dirs_exist_ok=True)
        saved = files.read_json(temporary / 'store.json')
        saved['config'].update(changes)
        files.write_json(temporary / 'store.json', saved)
    return path

  def _retrained(self, day: int) -> Dict[str, Any]:
    """Each week a new store is made of all rows so far."""
    week = day // self._week
    path, cpu = self.folder / 'retrained' / str(week), None
    if not week:
      path = self._first_store()
    elif day % self._week == 0:
      cpu = _processor_seconds(lambda: updating.create(
          path, self._joined(day), self._config, settings=self._settings, say=self._whisper))
    manifest = stores.Store(path).manifest()
    return {'seconds': manifest['seconds']['total'] if day % self._week == 0 else 0.,
            'cpu': cpu, 'bytes': stores.size_on_disk(path), **self._served(path, day)}

  def _joined(self, day: int) -> pathlib.Path:
    """One file of all rows up to a day."""
    path = self.folder / 'days' / f'up_to_{day:03}.parquet'
    if not path.exists():
      sink = pa.BufferOutputStream()
      pq.write_table(pa.concat_tables([pq.read_table(file) for file in self._days.files[:day + 1]]), sink)
      files.write_bytes(path, sink.getvalue().to_pybytes())
    return path

  # Without a store.

  def _popularity(self, day: int) -> Dict[str, Any]:
    context = self._context(day)
    began = time.perf_counter()
    counts = gate.recent_counts(context, self._days.log.time)
    seconds = time.perf_counter() - began
    return {'seconds': seconds, **self._measured(day, lambda judge: judge.measure_popularity(counts, context))}

  def _ease(self, day: int) -> Dict[str, Any]:
    """With the setting that ranks the newest tenth of the history best after a fit to the rest."""
    peer = peers.REGISTRY['ease']()
    chosen = self._ease_setting(peer)
    context = self._context(day)
    began = time.perf_counter()
    scorer: ranking.Scorer = peer.fit(context, **chosen)
    seconds = time.perf_counter() - began
    return {'seconds': seconds, 'setting': chosen, **self._measured(day, lambda judge: judge.measure(scorer, context))}

  def _ease_setting(self, peer) -> Dict[str, Any]:
    known = self._figures.get('ease', {}).get('0')
    if known:
      return known['setting']
    log, stop = self._days.log, self._days.cuts[1]
    first = stop - max(stop // 10, 1)
    context = self._context(0, 0, first)
    judge = gate.Judge(log.user[first:stop], log.item[first:stop], log.num_users, assembly.measured(self._config))
    return max(choices(peer.settings),
               key=lambda setting: judge.measure(peer.fit(context, **setting), context).metrics[METRICS[0]])
