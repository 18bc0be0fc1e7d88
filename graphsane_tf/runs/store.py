"""A store on disk: its settings, its log, its versions and the models in them. docs/updating.md describes the files."""
import contextlib
import dataclasses
import json
import pathlib
import re
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

import numpy as np
import pyarrow as pa
import tensorflow as tf

from graphsane_tf import config as config_lib
from graphsane_tf import files
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.blocks.stream import Block
from graphsane_tf.data import growing
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.data.readers import csv
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import ranking
from graphsane_tf.runs import folder
from graphsane_tf.serving import export, versions
from graphsane_tf.training import assembly, scoring
from graphsane_tf.training.block import Model, new_model

FORMAT = 1
_LOCK = 'store.lock'
_FIELDS = {'format': 0, 'name': '', 'columns': {}, 'categories': False, 'settings': {}, 'config': {}}
_PERIODS = {'': 0, 'hour': 3600, 'day': 86400, 'week': 7 * 86400}


@dataclasses.dataclass(frozen=True)
class Settings:
  """How a store is updated.

  Attributes:
    margin: how much worse than the best rival, relative to it, a version may be that is published.
    holdout: share of an update's rows, the newest, that epochs are chosen and the gate judged with.
    previous_block: what an update's rows are compared with, to find shifts of interest: each user's last block with
      any rows ('active') or the block before, as the paper has it ('strict').
    every: '' for one block a file, or the calendar period of a block: hour, day or week.
    min_rating: rows with a lower rating are ignored; None takes all.
  """
  margin: float = 0.05
  holdout: float = 0.2
  previous_block: str = 'active'
  every: str = ''
  min_rating: Optional[float] = None

  def __post_init__(self):
    if not 0 <= self.margin < 1:
      raise UserError(f'--margin={self.margin}: give a share from 0 to below 1, such as 0.05.')
    if not 0 <= self.holdout <= .5:
      raise UserError(f'--holdout={self.holdout}: give a share from 0 to 0.5, such as 0.2.')
    if self.previous_block not in ('active', 'strict'):
      raise UserError(f'--previous_block={self.previous_block}: choose active or strict.')
    if self.every not in _PERIODS:
      raise UserError(f'--every={self.every}: choose hour, day or week, or leave it out.')


def checked_name(name: str) -> str:
  """The name of a model if it can be that of a folder; else raises a `UserError`."""
  if not re.fullmatch(r'[A-Za-z][\w.-]*', name):
    raise UserError(f'--name={name}: a name begins with a letter and has only letters, digits, _, . and -.')
  return name


def identity(name: str, columns: csv.Columns, categories: bool, settings: Settings, config) -> Dict[str, Any]:
  """What store.json holds."""
  return json.loads(json.dumps({
      'format': FORMAT, 'name': name, 'columns': dataclasses.asdict(columns), 'categories': categories,
      'settings': dataclasses.asdict(settings), 'config': config_lib.resolved(config).to_dict()}))


class Store:
  """A store that exists.

  Attributes:
    path: its folder.
    name: of the model.
    config: the resolved configuration.
    columns: names of the columns of the files.
    categories: whether its items have categories.
    settings: how it is updated.
    versions: its versions.
    work: folder of an update in progress.
  """

  def __init__(self, path):
    self.path = pathlib.Path(path)
    file = self.path / 'store.json'
    if not file.exists():
      raise UserError(f'--store={path} holds no store (no store.json): make one with graphsane init.')
    saved = files.read_object(file, _FIELDS)
    if saved['format'] != FORMAT:
      raise UserError(f'{file} has format {saved["format"]}; this version of the package reads {FORMAT}.')
    try:
      self.config = config_lib.resolved(config_lib.restored(saved['config']))
      self.columns = csv.Columns(**saved['columns'])
      self.settings = Settings(**saved['settings'])
    except (TypeError, KeyError, AttributeError) as error:
      raise UserError(f'{file} holds no settings of a store ({error}).') from error
    self.name = checked_name(saved['name'])
    self.categories = saved['categories']
    self.versions = versions.Versions(path, self.name)
    self.work = self.path / 'work'

  @contextlib.contextmanager
  def held(self) -> Iterator[None]:
    """Holds the store for this process and clears what kills have left.

    Raises:
      UserError: if another process holds it; the sentence has its id.
    """
    with held(self.path):
      self.tidy()
      yield

  def tidy(self) -> None:
    """Deletes logs and versions that do not count any more; only the holder may."""
    for place in (self.versions.published, self.versions.rejected):
      versions.clear_leftovers(place)
    files.remove(self.staging)
    self.versions.drop_numberings_before(self.numbering)
    counting = self.log_number()
    for number in files.numbered(self.path / 'log'):
      if number != counting:
        files.remove(self.path / 'log' / str(number))

  @property
  def staging(self) -> pathlib.Path:
    """Where a version is built."""
    return self.work / 'version'

  @property
  def numbering(self) -> int:
    """How often ids have been numbered anew, by the newest version."""
    return self.versions.numbering()

  def log_number(self) -> Optional[int]:
    """Number of the folder of the log that counts."""
    return growing.newest(self.path / 'log', self.numbering)

  def log(self) -> growing.KeptLog:
    """All rows so far, also those that no version has been trained on yet."""
    return growing.read(self.path / 'log', self.numbering)

  def read_rows(self, path, say: Callable[[str], None]) -> List[pa.Table]:
    """The rows of a file, with the columns that the store's files have."""
    return read_rows(path, self.columns, self.settings.min_rating, self.categories, say)

  def manifest(self, number: Optional[int] = None) -> Dict[str, Any]:
    """What a version is; that of the current one by default."""
    number = self.versions.current() if number is None else number
    if number is None:
      raise UserError(f'{self.path} has no version yet: run graphsane init again, with the same flags.')
    return self.versions.manifest(number)

  def refusal(self, parent: int, rows: int) -> Optional[Dict[str, Any]]:
    """The manifest of a refused version that was made from `parent` and judged with this many rows of the log."""
    for number in reversed(files.numbered(self.versions.rejected)):
      manifest = versions.read_manifest(self.versions.rejected / str(number))
      if manifest['parent'] == parent and manifest['measured']['judged_rows'][1] == rows:
        return manifest
    return None

  def block(self, log: Interactions, index: int, first: int, stop: int, validation: slice = slice(0, 0)) -> Block:
    """Rows first to stop - 1 as a block."""
    users, items = known(log, stop)
    return Block(index, slice(first, stop), validation, slice(0, 0), users, items)

  def context(self, kept: growing.KeptLog, block: Block, config=None) -> BlockContext:
    """What a block trains on; `config` stands in for the store's own."""
    log, first = kept.interactions, block.train.start
    previous = None
    if block.index:
      users, items = known(log, first)
      previous = Block(block.index - 1, slice(0, first), slice(0, 0), slice(0, 0), users, items)
    context = assembly.context_of_block(config or self.config, log, block, previous)
    before = self._before(log.user[:first], kept.cuts(_PERIODS[self.settings.every]), first)
    return dataclasses.replace(context, before_own=before)

  def _before(self, users: np.ndarray, cuts: np.ndarray, first: int) -> np.ndarray:
    """Numbers of the rows that stand for the block before."""
    cuts = cuts[cuts < first]
    if not len(cuts):
      return np.zeros(0, np.int64)
    if self.settings.previous_block == 'strict':
      return np.arange(cuts[-1], first)
    block = np.searchsorted(cuts, np.arange(first), side='right')
    last = np.zeros(users.max() + 1, np.int64)
    np.maximum.at(last, users, block)
    return np.flatnonzero(block == last[users])

  def context_of(self, manifest: Dict[str, Any], kept: growing.KeptLog) -> BlockContext:
    """What a version was trained on."""
    first, stop = manifest['trained']['rows']
    return self.context(kept, self.block(kept.interactions, manifest['update'], first, stop))

  def model(self, manifest: Dict[str, Any], context: BlockContext) -> Model:
    """The weights and optimiser of a version whose files have been checked."""
    model = new_model(self.config, context, self.config.train.learning_rate)
    path = self.versions.path(manifest['number']) / versions.EXTRA / 'model'
    try:
      status = model.checkpoint().read(str(path))
      status.assert_existing_objects_matched()
      # The sampler's variables are not asked for.
      status.expect_partial()
    except (tf.errors.OpError, ValueError, AssertionError) as error:
      raise UserError(f'the weights {path} cannot be read ({files.reason(error)}): publish another version with '
                      'graphsane rollback --to=N.') from error
    return model

  def scorer(self, number: Optional[int] = None) -> ranking.DotProduct:
    """How a version ranks: as it is served."""
    number = self.versions.check(self.manifest(number)['number'])['number']
    return export.read_scorer(self.versions.path(number))

  def stage(self, kept: growing.KeptLog, context: BlockContext, model: Model, scorer: ranking.DotProduct,
            manifest: Dict[str, Any], started: float) -> None:
    """Builds a version in `staging`: SavedModel, weights and manifest.

    Args:
      kept: the log.
      context: what the version knows.
      model: its model.
      scorer: how that ranks.
      manifest: what is not known here.
      started: when the update has begun, by `time.perf_counter`.
    """
    files.remove(self.staging)
    log, began = kept.interactions, time.perf_counter()
    with files.writing(self.staging, tf.errors.OpError):
      export.export_scorer(self.staging, scorer, log.user_ids[:context.num_users], log.item_ids[:context.num_items],
                           context.history, context.popularity, model)
      extra = files.make_directory(self.staging / versions.EXTRA)
      model.checkpoint().write(str(extra / 'model'))
      times, now = log.time[:context.num_rows], time.perf_counter()
      seconds = {**manifest['seconds'], 'export': now - began}
      # Parts may have been done by processes that were killed since.
      total = max(now - started, sum(seconds.values()))
      versions.seal(self.staging, {
          'name': self.name, 'content': manifest['number'], 'numbering': kept.numbering, **manifest,
          'data': {'rows': context.num_rows, 'users': context.num_users, 'items': context.num_items,
                   'first_time': int(times.min()), 'last_time': int(times.max()),
                   'fingerprint': fingerprint_of(log, context)},
          'seconds': {name: round(value, 3) for name, value in {**seconds, 'total': total}.items()},
          'config': self.config.to_dict()})


def read_rows(path, columns: csv.Columns, min_rating: Optional[float], categories: Optional[bool],
              say: Callable[[str], None]) -> List[pa.Table]:
  """The rows of a file.

  Args:
    path: the file.
    columns: names of its columns.
    min_rating: the lowest rating that counts; None needs no ratings.
    categories: whether it must have categories, or is read without; None takes what there is.
    say: takes a line for the screen.
  """
  tables = list(csv.read(pathlib.Path(path), columns, say))
  for table in tables:
    if categories and 'category' not in table.column_names:
      raise UserError(f'{path} has no column of categories, as earlier files of this store have: name it as it was '
                      f'then ({columns.category or "category"}), or make a new store.')
    if min_rating is not None and 'rating' not in table.column_names:
      raise UserError(f'{path} has no column of ratings, and --min_rating={min_rating:g} needs one: name it '
                      f'{columns.rating or "rating"}.')
  left_out = ['category'] if categories is False else []
  return [table.drop_columns([name for name in left_out if name in table.column_names]) for table in tables]


def evidences_of(manifest: Optional[Dict[str, Any]]) -> List[scoring.Evidence]:
  """What the updates up to a version have shown about mixtures."""
  return [scoring.from_json(one) for one in (manifest or {}).get('mixing', [])]


def held(path):
  """Holds the folder of a store for this process; see `folder.locked`."""
  return folder.locked(path, _LOCK, '--store')


def known(log: Interactions, stop: int):
  """How many users and items the first rows of a log have."""
  return int(log.user[:stop].max(initial=-1)) + 1, int(log.item[:stop].max(initial=-1)) + 1


def fingerprint_of(log: Interactions, context: BlockContext) -> str:
  """Digest of the rows that a context knows."""
  rows = slice(0, context.num_rows)
  return growing.fingerprint(dataclasses.replace(
      log, user=log.user[rows], item=log.item[rows], time=log.time[rows], user_ids=log.user_ids[:context.num_users],
      item_ids=log.item_ids[:context.num_items], item_category=context.item_category))


def size_on_disk(path: pathlib.Path) -> int:
  """Bytes of all files below a folder, those with two names once."""
  found = {}
  for name in path.rglob('*'):
    with contextlib.suppress(FileNotFoundError):
      if name.is_file():
        status = name.stat()
        found[status.st_ino] = status.st_size
  return sum(found.values())
