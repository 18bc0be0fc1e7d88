"""One call from a data set's name to its `Interactions`, with a prepared copy on disk."""
import contextlib
import dataclasses
import pathlib
from typing import Any, Callable, Dict, List, Mapping, Optional

import numpy as np

from graphsane_tf import files
from graphsane_tf.data import download as downloads
from graphsane_tf.data import recipes
from graphsane_tf.data import storage
from graphsane_tf.data.cleaning import clean
from graphsane_tf.data.cleaning import fingerprint
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.data.readers import csv
from graphsane_tf.data.readers import gowalla
from graphsane_tf.data.readers import ml10m
from graphsane_tf.data.readers import netflix
from graphsane_tf.data.readers import taobao14
from graphsane_tf.data.readers import taobao15
from graphsane_tf.data.readers import yelp
from graphsane_tf.data.storage import read_prepared
from graphsane_tf.data.storage import write_prepared
from graphsane_tf.errors import UserError

__all__ = ['clean', 'load', 'prepared_folder', 'read_prepared', 'write_prepared']

_READERS = {'gowalla': gowalla, 'yelp': yelp, 'taobao14': taobao14, 'taobao15': taobao15,
            'netflix': netflix, 'ml10m': ml10m}

# More rows of one time than this share are more than an incremental block.
_MOST_AT_ONCE = 0.1

Options = Optional[Mapping[str, Any]]


def load(name: str, data_dir='data', overrides: Options = None, csv_options: Options = None,
         drift_options: Options = None, download: bool = False,
         log: Callable[[str], None] = print) -> Interactions:
  """Loads a data set, preparing it from its raw files when that has not been done yet.

  Args:
    name: gowalla, yelp, taobao14, taobao15, netflix, ml10m, drift or csv.
    data_dir: raw files are read from `<data_dir>/<name>/`, and prepared copies kept there.
    overrides: fields of `recipes.Recipe` in place of the data set's own; None values count as
      not given.
    csv_options: for csv only: `interactions` (the path of the log) and `user_column`,
      `item_column`, `timestamp_column`, `category_column`, `rating_column`.
    drift_options: keyword arguments of `drift.generate`.
    download: whether to fetch missing raw files, where the owner allows that.
    log: receives each line of progress.

  Returns:
    The cleaned log.

  Raises:
    UserError: raw files are missing or malformed, or the filters left too little.
  """
  recipe = recipes.find(name).recipe.override(overrides)
  columns = _csv_columns(name, csv_options)
  if name == 'drift':
    return _generate(recipe, overrides, drift_options)
  try:
    sources = _sources(name, data_dir, csv_options)
    folder = prepared_folder(name, data_dir, overrides, csv_options)
    fresh = _is_fresh(folder, sources)
    interactions, stamps = read_prepared(folder) if fresh else None, None
    if interactions is None:
      if folder.exists():
        log(f'{folder} is {"damaged" if fresh else "out of date"} and is built again.')
      if not sources and download:
        downloads.download(name, pathlib.Path(data_dir) / name, log=log)
        sources = _sources(name, data_dir, csv_options)
      if not sources:
        raise _missing(name, data_dir)
      stamps = [_stamp(path) for path in sources]
      log(f'preparing {name} from {", ".join(path.name for path in sources[:4])}'
          f'{" ..." if len(sources) > 4 else ""}')
      interactions = _read(name, sources, recipe, columns)
    for note in interactions.notes:
      log(note)
    _check_size(interactions)
    _check_times(interactions, log)
    if stamps is not None:
      write_prepared(interactions, folder, {
          'recipe': dataclasses.asdict(recipe),
          'sources': [{**stamp, 'sha256': files.sha256(path)}
                      for path, stamp in zip(sources, stamps)]})
    return interactions
  except OSError as error:
    raise UserError(f'cannot prepare {name} in {data_dir}: {error.strerror or error}; free some '
                    'space, mend the permissions or choose another --data_dir.') from error


def _read(name: str, sources: List[pathlib.Path], recipe: recipes.Recipe,
          columns: Optional[csv.Columns]) -> Interactions:
  """Reads raw files and applies the recipe."""
  notes: List[str] = []
  tables = (csv.read(sources[0], columns, notes.append) if name == 'csv'
            else _READERS[name].read(sources, notes.append))
  interactions = clean(tables, recipe, name)
  return dataclasses.replace(interactions, notes=(*notes, *interactions.notes))


def prepared_folder(name: str, data_dir='data', overrides: Options = None,
                    csv_options: Options = None) -> Optional[pathlib.Path]:
  """Where `load` keeps the prepared copy; None for drift, which is generated each time."""
  if name == 'drift':
    return None
  recipe = recipes.find(name).recipe.override(overrides)
  more: List[Any] = [storage.FORMAT]
  if name == 'csv':
    options = {key: value for key, value in (csv_options or {}).items() if value is not None}
    more.append({**options, 'interactions': str(pathlib.Path(options['interactions']).resolve()),
                 'reader': csv.VERSION})
  return pathlib.Path(data_dir) / name / f'prepared-{recipe.digest(*more)}'


def _csv_columns(name: str, options: Options) -> Optional[csv.Columns]:
  """Checks that csv options come with csv, and turns them into column names."""
  given = {key: value for key, value in (options or {}).items() if value is not None}
  if name != 'csv':
    if given:
      raise UserError(f'--{sorted(given)[0]} goes with --dataset=csv, but the data set is {name}; '
                      'leave one of them out.')
    return None
  if not given.get('interactions'):
    raise UserError('--dataset=csv needs the path of your log: add --interactions=FILE.')
  return csv.Columns(**{key.removesuffix('_column'): value for key, value in given.items()
                        if key != 'interactions'})


def _generate(recipe: recipes.Recipe, overrides: Options, options: Options) -> Interactions:
  """Makes the planted-drift log, which needs no files and takes no filters."""
  if recipe != recipes.find('drift').recipe:
    given = sorted(key for key, value in overrides.items() if value is not None)
    raise UserError(f'--{given[0]} has no meaning for --dataset=drift, which is generated; leave '
                    'it out.')
  from graphsane_tf.data import drift  # pylint: disable=import-outside-toplevel
  interactions = drift.generate(**(options or {}))
  if not interactions.fingerprint:
    interactions = dataclasses.replace(interactions, fingerprint=fingerprint(interactions))
  return interactions


def _sources(name: str, data_dir, csv_options: Options) -> List[pathlib.Path]:
  """The raw files of a data set that are there."""
  if name != 'csv':
    return _READERS[name].find(pathlib.Path(data_dir) / name)
  path = pathlib.Path(csv_options['interactions'])
  csv.check(path)
  return [path]


def _stamp(path: pathlib.Path) -> Dict[str, Any]:
  status = path.stat()
  return {'file': path.name, 'bytes': status.st_size, 'mtime_ns': status.st_mtime_ns}


def _is_fresh(folder: pathlib.Path, sources: List[pathlib.Path]) -> bool:
  """Whether a prepared folder was made from these very files.

  Equal size and time stamp are trusted; a file that was only touched is compared by its digest.
  Without raw files the prepared copy stands for them.
  """
  manifest = storage.read_manifest(folder)
  if manifest is None:
    # A manifest that cannot be read is damage, which `read_prepared` reports.
    return folder.exists()
  if not sources:
    return True
  before = {entry['file']: entry for entry in manifest['sources']}
  if set(before) != {path.name for path in sources}:
    return False
  touched = False
  for path in sources:
    entry, now = before[path.name], _stamp(path)
    if entry['bytes'] != now['bytes']:
      return False
    if entry['mtime_ns'] != now['mtime_ns']:
      if entry['sha256'] != files.sha256(path):
        return False
      entry.update(now)
      touched = True
  if touched:
    # On a disk that cannot be written the file is only hashed again next time.
    with contextlib.suppress(OSError, UserError):
      storage.write_manifest(folder, manifest)
  return True


def _missing(name: str, data_dir) -> UserError:
  """The one message about raw files that are not there."""
  data_set = recipes.find(name)
  folder = pathlib.Path(data_dir) / name
  fetch = ', or add --download to fetch them' if data_set.url else ''
  return UserError(
      f'no {name} files in {folder}: get {data_set.files} from {data_set.page} (terms: '
      f'{data_set.terms}) and put them there{fetch}; --dataset=drift runs without any files.')


def _check_size(interactions: Interactions) -> None:
  """Refuses logs that have nothing to rank."""
  for count, what in ((interactions.num_users, 'user'), (interactions.num_items, 'item')):
    if count < 2:
      raise UserError(f'{interactions.name} has only one {what} after filtering; give a log with '
                      f'several or lower --min_{what}_interactions.')


def _check_times(interactions: Interactions, log: Callable[[str], None]) -> None:
  """Refuses a log without any order in time, and warns where the file's order decides much."""
  starts = np.flatnonzero(np.diff(interactions.time, prepend=interactions.time[0] - 1))
  counts = np.diff(starts, append=len(interactions))
  moment = interactions.time[starts[counts.argmax()]].astype('datetime64[s]')
  if len(counts) == 1:
    raise UserError(
        f'all {len(interactions):,} rows of {interactions.name} have the same time ({moment}), but '
        'blocks are cut in time order; give the real times (--timestamp_column), or number the '
        'rows there if the file has them in order.')
  if counts.max() > _MOST_AT_ONCE * len(interactions):
    log(f'warning: {counts.max():,} of {len(interactions):,} rows have the same time ({moment}): '
        'blocks are cut among them in the order of the file.')
