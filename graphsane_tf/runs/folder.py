"""Guards the folder of a run: whose it is, who writes in it, and whether its files are whole."""
import contextlib
import fcntl
import json
import os
import pathlib
import re
from typing import IO, Any, Callable, Dict, Iterator, List, Optional

from graphsane_tf import config as config_lib
from graphsane_tf import config_rules
from graphsane_tf import files
from graphsane_tf.data import spec as data_spec
from graphsane_tf.errors import UserError
from graphsane_tf.training.store import BlockStore
from graphsane_tf.runs.workdir import LATER_FIELDS, flatten

LOCK = 'run.lock'
# What a run (and the audit of one) writes in its folder.
_FILES = ('config.json', 'metrics.jsonl', 'results.json', 'audit.json', 'audit.md')
_FOLDERS = ('checkpoints', 'export', 'per_user', 'tensorboard')
# Fields that the base block depends on, except for `workdir.LATER_FIELDS`.
_BASE = ('seed', 'backbone', 'base_from', 'blocks.', 'model.', 'train.', 'evaluation.', 'memory')
# Of these, fields without which the base block's weights are no model of this run.
_SHAPE = ('backbone', 'blocks.', 'model.embedding_dim', 'model.num_knn', 'model.num_layers', 'model.mgccf_layers',
          'model.pinsage_scale')


@contextlib.contextmanager
def locked(path, name: str = LOCK, flag: str = '--workdir') -> Iterator[IO[str]]:
  """Creates a folder if need be and holds it for this process; any end of the process lets it go.

  Args:
    path: the folder.
    name: of the lock file in it.
    flag: that names another folder.

  Yields:
    The open lock file.

  Raises:
    UserError: if another process holds it.
  """
  path = files.make_directory(path)
  with files.writing(path / name):
    stream = open(path / name, 'a+', encoding='utf-8')  # noqa: SIM115
  with stream:
    try:
      fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
      stream.seek(0)
      owner = stream.read().strip() or 'that has just begun'
      raise UserError(f'{path} is in use by process {owner}: wait for its end, or choose another '
                      f'{flag}.') from error
    except OSError as error:
      raise UserError(f'cannot lock {path / name}: {error.strerror}; choose a {flag} on a file '
                      'system with locks.') from error
    with files.writing(path / name):
      stream.truncate(0)
      stream.write(f'{os.getpid()}\n')
      stream.flush()
    yield stream


def read_identity(path) -> Dict[str, Any]:
  """config.json of a run: 'data' and 'config', both in today's form.

  Raises:
    UserError: if it is not there, or damaged.
  """
  path = pathlib.Path(path) / 'config.json'
  if not path.exists():
    raise UserError(f'{path.parent} is not the folder of a run: {path} does not exist.')
  saved = files.read_object(path, {'data': {}, 'config': {}})
  files.check_object(saved['data'], {'dataset': '', 'fingerprint': ''}, f"{path}: 'data'")
  for field, rule in config_rules.RULES.items():
    method = saved['config'].get(field)
    if rule.registry.endswith('.REGISTRY') and isinstance(method, str) and method not in rule.allowed():
      raise UserError(f'{path} names config.{field}={method}, which the package does not have: give the file that '
                      'registers it with --plugin=FILE.py.')
  try:
    # A field that is newer than the folder had its default when the folder was made.
    restored = config_lib.resolved(config_lib.restored(saved['config'])).to_dict()
  except (TypeError, KeyError, AttributeError, ValueError) as error:
    raise UserError(f'{path} holds no configuration of a run ({error}).') from error
  return {**saved, 'data': data_spec.renewed(saved['data']), 'config': json.loads(json.dumps(restored))}


def _differences(before: Dict[str, Any], now: Dict[str, Any]) -> Dict[str, str]:
  """Field to 'field: then -> now' for what differs between two trees."""
  before, now = flatten(before), flatten(now)
  return {name: f'{name}: {before.get(name)} -> {now.get(name)}'
          for name in dict.fromkeys([*before, *now]) if before.get(name) != now.get(name)}


def _shown(differences: List[str]) -> str:
  return ', '.join(differences[:8]) + (f' and {len(differences) - 8} more' if len(differences) > 8 else '')


def _base_differences(before: Dict[str, Any], now: Dict[str, Any]) -> Dict[str, str]:
  """Those fields of two configurations that the base block depends on and that differ."""
  return {name: text for name, text in _differences(before, now).items()
          if name.startswith(_BASE) and name not in LATER_FIELDS}


def check_base(source: pathlib.Path, identity: Dict[str, Any]) -> Optional[str]:
  """Checks that another run's base block fits this run.

  Args:
    source: folder of the other run.
    identity: of this run.

  Returns:
    What it was trained with that is different here, or None.

  Raises:
    UserError: if it has no finished base block, is damaged, or is of another model or log.
  """
  try:
    store = BlockStore(source, 0)
    state = store.load()
    if state is None or not state['stopped']:
      raise UserError(f'--base_from={source} holds no finished base block.')
    saved = read_identity(source)
    store.check(state['best'])
  except UserError as error:
    if '--base_from' in str(error):
      raise
    damage = str(error).split('; delete ')[0].rstrip('.')
    raise UserError(f'--base_from={source}: the damage is in that run, not in this one: {damage}; '
                    'mend that run with its own command, or take another base.') from error
  if saved['data']['fingerprint'] != identity['data']['fingerprint']:
    raise UserError(f'--base_from={source} was trained on other data.')
  # Where a base block came from decides nothing once it is there.
  differences = {name: text for name, text in _base_differences(
      saved['config'], identity['config']).items() if name != 'base_from'}
  # A backbone outside the package has its options in a section below: model.NAME.FIELD.
  shape = [text for name, text in differences.items()
           if name.startswith(_SHAPE) or re.match(r'model\.\w+\.', name)]
  if shape:
    raise UserError(f'--base_from={source} is of another model ({_shown(shape)}): take the base '
                    'block of a run with the same fields.')
  return _shown(list(differences.values())) or None


class RunFolder:
  """The folder of one run.

  Attributes:
    path: the folder.
    writable: whether this process may write in it; known once it is held.
  """

  def __init__(self, path, identity: Dict[str, Any], overwrite: bool = False):
    """Checks the folder without touching it.

    Args:
      path: the folder; it need not exist.
      identity: everything that decides the run's numbers; saved as config.json.
      overwrite: delete a run that is there instead of going on with it.

    Raises:
      UserError: if it belongs to another run, or to something else.
    """
    self.path = pathlib.Path(path)
    self._identity = identity
    self._overwrite = overwrite
    self._lock: Optional[IO[str]] = None
    self.writable = True
    self._check()

  def store(self, block: int) -> BlockStore:
    """Checkpoints of a block."""
    return BlockStore(self.path, block)

  def has_base(self) -> bool:
    """Whether a base block is there that will not be overwritten."""
    return not self._overwrite and self.store(0).load() is not None

  def take_base(self, source: pathlib.Path) -> None:
    """Copies another run's base block."""
    BlockStore(source, 0).copy(self.store(0))

  def _blocks(self) -> List[int]:
    """Numbers of the blocks that have a folder of checkpoints, in order."""
    names = (path.name for path in self.path.glob('checkpoints/block_*'))
    return sorted(int(name[6:]) for name in names if name[6:].isdecimal())

  def _check(self) -> bool:
    """Raises a `UserError` if the run may not be here; tells whether what is there must go first."""
    try:
      names = {path.name for path in self.path.iterdir()} if self.path.exists() else set()
    except OSError as error:
      raise UserError(f'cannot read the folder {self.path}: {error.strerror}.') from error
    if 'config.json' not in names:
      # A process that was killed before it could write config.json leaves no more than this.
      if any(name != LOCK and not name.startswith('.config.json.') for name in names):
        raise UserError(f'{self.path} is not empty and holds no config.json of a run: choose another '
                        '--workdir, or empty it.')
      return False
    try:
      saved = read_identity(self.path)
    except UserError as error:
      raise UserError(f'{str(error).rstrip(".")}: choose another --workdir, or delete {self.path}.'
                     ) from error
    if self._overwrite:
      return True
    differences = _differences(saved, self._identity)
    if not differences:
      return False
    if not self._may_change(saved):
      raise UserError(f'{self.path} was made with another configuration '
                      f'({_shown(list(differences.values()))}): choose another --workdir, or pass '
                      '--overwrite to start it anew.')
    return True

  def _may_change(self, saved: Dict[str, Any]) -> bool:
    """Whether the configuration may change: after a failure, what no finished block was trained with."""
    states = {block: self.store(block).load() for block in self._blocks()}
    if not any(state and state.get('failed') for state in states.values()):
      return False
    finished = [block for block, state in states.items() if state and state.get('result')]
    return not finished or (
        finished == [0] and saved['data'] == self._identity['data']
        and not _base_differences(saved['config'], self._identity['config']))

  @contextlib.contextmanager
  def held(self) -> Iterator[None]:
    """Holds the folder for this process, creates it if need be, and clears what kills have left.

    A folder that exists and cannot be written is not held: it can only be read.

    Raises:
      UserError: if another process holds it, or it belongs to another run by now.
    """
    if self.path.is_dir() and not self._overwrite and not os.access(self.path, os.W_OK):
      self.writable = False
      self._check()
      yield
      return
    with locked(self.path) as self._lock:
      try:
        with files.writing(self.path):
          self._settle()
        yield
      finally:
        self._lock = None

  def _settle(self) -> None:
    """Makes the folder this run's own; only the holder may."""
    if self._check():
      self._drop()
    self._overwrite = False
    places = [self.path / 'export', self.path / 'per_user', self.path / 'checkpoints']
    leftovers = [path for place in places if place.is_dir() for path in place.glob('.*')]
    leftovers += [path for name in _FILES for path in self.path.glob(f'.{name}.*')]
    for path in leftovers:
      files.remove(path)
    for block in self._blocks():
      self.store(block).clear(self.store(block).load() or {})
    if not (self.path / 'config.json').exists():
      files.write_json(self.path / 'config.json', self._identity)

  def _drop(self) -> None:
    """Deletes what is there; after a failure, a finished base block stays."""
    base = None if self._overwrite else self.store(0).load()
    keep = bool(base and base.get('result'))
    # Without config.json, what is left would be nobody's; so it goes last, or is replaced at once.
    for name in _FOLDERS:
      if not keep:
        files.remove(self.path / name)
    for block in self._blocks()[keep:]:
      files.remove(self.store(block).folder)
    for name in _FILES[1:]:
      files.remove(self.path / name)
    files.write_json(self.path / 'config.json', self._identity)

  def still_there(self) -> None:
    """Raises a `UserError` if the folder has vanished since it was held."""
    if self._lock is None:
      return
    try:
      same = os.path.samestat(os.fstat(self._lock.fileno()), os.stat(self.path / LOCK))
    except FileNotFoundError:
      same = False
    if not same:
      raise UserError(f'the run folder {self.path} has vanished: nothing more is written.')

  def lost(self, state: Dict[str, Any], block: int, exported: bool = True) -> List[str]:
    """Files of a finished block that are missing or not as they were written, by their names here.

    Args:
      state: of the block.
      block: its number.
      exported: whether a SavedModel is among them.
    """
    # An older version kept no digests.
    known = {f'per_user/block_{block}.npz': None, **(state.get('files') or {})}
    if exported:
      known.setdefault(f'export/{block}/saved_model.pb', None)
    else:
      known = {name: digest for name, digest in known.items() if not name.startswith('export/')}
    return [name for name, digest in known.items() if not (self.path / name).is_file()
            or digest not in (None, files.sha256(self.path / name))]

  def digests(self, block: int) -> Dict[str, str]:
    """SHA-256 of the files of a block that `lost` looks after."""
    paths = [path for path in sorted((self.path / 'export' / str(block)).rglob('*')) if path.is_file()]
    paths.append(self.path / 'per_user' / f'block_{block}.npz')
    return {path.relative_to(self.path).as_posix(): files.sha256(path) for path in paths}

  def update(self, name: str, text: str, log: Callable[[str], None], note: bool = False) -> None:
    """Writes a file of the folder unless it already holds `text`.

    Args:
      name: of the file.
      text: what it must hold.
      log: takes a line for the screen.
      note: whether a difference is worth a line, because nothing new has happened.
    """
    path = self.path / name
    with contextlib.suppress(OSError, UnicodeDecodeError):
      if path.read_text('utf-8') == text:
        return
    if note:
      log(f'note: {path} was missing, damaged or behind'
          f'{"; it is written anew." if self.writable else " and cannot be written here."}')
    if self.writable:
      self.still_there()
      files.write_text(path, text)
