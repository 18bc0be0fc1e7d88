"""One call from a `DataSpec` to its `Interactions`, with a prepared copy on disk."""
import contextlib
import dataclasses
import pathlib
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from graphsane_tf import files
from graphsane_tf.data import download as downloads
from graphsane_tf.data import storage
from graphsane_tf.data.cleaning import clean
from graphsane_tf.data.cleaning import fingerprint
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.data.sources import FileSource, GeneratedSource
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.data.storage import read_prepared
from graphsane_tf.data.storage import write_prepared
from graphsane_tf.errors import UserError

__all__ = ['clean', 'load', 'prepared_folder', 'read_prepared', 'write_prepared']

# More rows of one time than this share are more than an incremental block.
_MOST_AT_ONCE = 0.1


def load(spec: DataSpec, data_dir='data', download: bool = False, log: Callable[[str], None] = print) -> Interactions:
  """Loads a data set, preparing it from its raw files when that has not been done yet.

  Args:
    spec: which one, and how it is read.
    data_dir: raw files are read from `<data_dir>/<name>/`, and prepared copies kept there.
    download: whether to fetch missing raw files, where the owner allows that.
    log: receives each line of progress.

  Returns:
    The cleaned log.

  Raises:
    UserError: raw files are missing or malformed, or the filters left too little.
  """
  source = spec.source()
  recipe = source.recipe.override(spec.recipe)
  if isinstance(source, GeneratedSource):
    return _generate(source, spec)
  home, folder = pathlib.Path(data_dir) / spec.dataset, prepared_folder(spec, data_dir)
  assert isinstance(source, FileSource) and folder is not None
  try:
    raw = source.find(home)
    fresh = _is_fresh(folder, raw)
    interactions, stamps = read_prepared(folder) if fresh else None, None
    if interactions is None:
      if folder.exists():
        log(f'{folder} is {"damaged" if fresh else "out of date"} and is built again.')
      if not raw and download:
        downloads.download(spec.dataset, home, log=log)
        raw = source.find(home)
      if not raw:
        raise _missing(source, home)
      stamps = [_stamp(path) for path in raw]
      log(f'preparing {spec.dataset} from {", ".join(path.name for path in raw[:4])}'
          f'{" ..." if len(raw) > 4 else ""}')
      notes: List[str] = []
      interactions = clean(source.read(raw, notes.append), recipe, spec.dataset, home)
      interactions = dataclasses.replace(interactions, notes=(*notes, *interactions.notes))
    for note in interactions.notes:
      log(note)
    _check_size(interactions)
    _check_times(interactions, log)
    if stamps is not None:
      write_prepared(interactions, folder, {
          'recipe': dataclasses.asdict(recipe),
          'sources': [{**stamp, 'sha256': files.sha256(path)} for path, stamp in zip(raw, stamps)]})
    return interactions
  except OSError as error:
    raise UserError(f'cannot prepare {spec.dataset} in {data_dir}: {error.strerror or error}; free some '
                    'space, mend the permissions or choose another --data_dir.') from error


def prepared_folder(spec: DataSpec, data_dir='data') -> Optional[pathlib.Path]:
  """Where `load` keeps the prepared copy; None for a log that is generated each time."""
  source = spec.source()
  if not isinstance(source, FileSource):
    return None
  decides = {**source.choices(), **({'reader': source.version} if source.version else {})}
  digest = source.recipe.override(spec.recipe).digest(storage.FORMAT, *([decides] if decides else []))
  return pathlib.Path(data_dir) / spec.dataset / f'prepared-{digest}'


def _generate(source: GeneratedSource, spec: DataSpec) -> Interactions:
  """Makes a log that needs no files and takes no filters."""
  if source.recipe.override(spec.recipe) != source.recipe:
    raise UserError(f'--{min(spec.recipe)} has no meaning for --dataset={spec.dataset}, which is generated; leave '
                    'it out.')
  interactions = source.generate()
  if not interactions.fingerprint:
    interactions = dataclasses.replace(interactions, fingerprint=fingerprint(interactions))
  return interactions


def _stamp(path: pathlib.Path) -> Dict[str, Any]:
  status = path.stat()
  return {'file': path.name, 'bytes': status.st_size, 'mtime_ns': status.st_mtime_ns}


def _is_fresh(folder: pathlib.Path, raw: List[pathlib.Path]) -> bool:
  """Whether a prepared folder was made from these very files.

  Equal size and time stamp are trusted; a file that was only touched is compared by its digest.
  Without raw files the prepared copy stands for them.
  """
  manifest = storage.read_manifest(folder)
  if manifest is None:
    # A manifest that cannot be read is damage, which `read_prepared` reports.
    return folder.exists()
  if not raw:
    return True
  before = {entry['file']: entry for entry in manifest['sources']}
  if set(before) != {path.name for path in raw}:
    return False
  touched = False
  for path in raw:
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


def _missing(source: FileSource, folder: pathlib.Path) -> UserError:
  """The one message about raw files that are not there."""
  fetch = ', or add --download to fetch them' if source.url else ''
  owner = f' from {source.page} (terms: {source.terms})' if source.page else ''
  return UserError(f'no {folder.name} files in {folder}: get {source.files}{owner} and put them there{fetch}; '
                   '--dataset=drift runs without any files.')


def _check_size(interactions: Interactions) -> None:
  """Refuses logs that have nothing to rank."""
  for count, what in ((interactions.num_users, 'user'), (interactions.num_items, 'item')):
    if count < 2:
      raise UserError(f'{interactions.name} has only one {what} after filtering; give a log with '
                      f'several or lower --min_{what}_interactions.')


def _check_times(interactions: Interactions, log: Callable[[str], None]) -> None:
  """Refuses a log without any order in time, and warns where the file's order decides much."""
  # A time of so many rows stands at one of these places at least.
  frequent = interactions.time[::max(int(_MOST_AT_ONCE * len(interactions)), 1)]
  counts = np.subtract(*(np.searchsorted(interactions.time, frequent, side) for side in ('right', 'left')))
  moment = frequent[counts.argmax()].astype('datetime64[s]')
  if counts.max() == len(interactions):
    raise UserError(
        f'all {len(interactions):,} rows of {interactions.name} have the same time ({moment}), but '
        'blocks are cut in time order; give the real times (--timestamp_column), or number the '
        'rows there if the file has them in order.')
  if counts.max() > max(_MOST_AT_ONCE * len(interactions), 1):
    log(f'warning: {counts.max():,} of {len(interactions):,} rows have the same time ({moment}): '
        'blocks are cut among them in the order of the file.')
