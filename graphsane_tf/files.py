"""Files that are either whole or not there: write to a temporary name, fsync, rename."""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import tempfile
from typing import Any, Dict, Iterator, List, Tuple, Type

from graphsane_tf.errors import UserError


def _fsync_directory(path: pathlib.Path) -> None:
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def reason(error: Exception) -> str:
  """Why it failed, in a few words: the system's, or what TensorFlow has wrapped around them."""
  text = getattr(error, 'strerror', None) or (str(error).splitlines() or [repr(error)])[0]
  return re.sub(r'\{\{.*?\}\}|\[Op:\w+\]', '', text).rpartition('; ')[2].strip()[:160]


@contextlib.contextmanager
def writing(path, *further: Type[Exception]) -> Iterator[None]:
  """Turns errors of the file system inside into one sentence about `path`.

  Args:
    path: what is written.
    *further: exceptions that mean the same, such as TensorFlow's.
  """
  failures: Tuple[Type[Exception], ...] = (OSError, *further)
  try:
    yield
  except failures as error:
    raise UserError(f'cannot write {path}: {reason(error)}; when that is mended (free space, write '
                    'permission), the same command goes on from what is there.') from error


def make_directory(path) -> pathlib.Path:
  """Creates a directory (and its parents), or says in one sentence why it cannot."""
  path = pathlib.Path(path)
  try:
    path.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    raise UserError(f'cannot create the folder {path}: {error.strerror}; choose another place or '
                    'mend its permissions.') from error
  if not os.access(path, os.W_OK):
    raise UserError(f'no permission to write in {path}; choose another folder.')
  return path


def write_bytes(path, data: bytes) -> None:
  """Writes `data` to `path` atomically."""
  path = pathlib.Path(path)
  make_directory(path.parent)
  with writing(path):
    handle, temporary = tempfile.mkstemp(prefix=f'.{path.name}.', dir=path.parent)
    try:
      with os.fdopen(handle, 'wb') as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
      os.chmod(temporary, 0o644)
      os.replace(temporary, path)
      _fsync_directory(path.parent)
    except BaseException:
      with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
      raise


def write_text(path, text: str) -> None:
  """Writes UTF-8 text to `path` atomically."""
  write_bytes(path, text.encode('utf-8'))


def json_text(value: Any) -> str:
  """What `write_json` writes."""
  return json.dumps(value, indent=2, sort_keys=False) + '\n'


def write_json(path, value: Any) -> None:
  """Writes `value` as indented JSON to `path` atomically."""
  write_text(path, json_text(value))


def read_json(path) -> Any:
  """Reads a JSON file, or says in one sentence what is wrong with it."""
  try:
    return json.loads(pathlib.Path(path).read_text('utf-8'))
  except FileNotFoundError as error:
    raise UserError(f'{path} does not exist.') from error
  except OSError as error:
    raise UserError(f'cannot read {path}: {error.strerror}.') from error
  except UnicodeDecodeError as error:
    raise UserError(f'{path}, byte {error.start}: not UTF-8 text.') from error
  except json.JSONDecodeError as error:
    raise UserError(f'{path}, line {error.lineno}: not valid JSON ({error.msg}).') from error
  except RecursionError as error:
    raise UserError(f'{path} is nested too deeply to be JSON of this program.') from error


def check_object(value: Any, fields: Dict[str, Any], where: str) -> None:
  """Raises a `UserError` unless `value` is an object that has at least the given fields.

  Args:
    value: from JSON.
    fields: name to a value of the type that it must have; an integer passes for a float.
    where: what the sentence begins with.
  """
  if not isinstance(value, dict):
    raise UserError(f'{where} is not a JSON object.')
  for name, example in fields.items():
    if name not in value:
      raise UserError(f'{where} lacks {name!r}.')
    wanted = (int, float) if isinstance(example, float) else type(example)
    # A bool is an int in Python, but not here.
    if not isinstance(value[name], wanted) or isinstance(value[name], bool) != isinstance(example, bool):
      raise UserError(f'{where}: {name!r} is not of type {type(example).__name__}.')


def read_object(path, fields: Dict[str, Any]) -> Dict[str, Any]:
  """`read_json` of an object that has at least the given fields (see `check_object`)."""
  value = read_json(path)
  check_object(value, fields, str(path))
  return value


def numbered(path) -> List[int]:
  """The folders in a folder whose names are numbers, ascending; [] if there is no folder."""
  path = pathlib.Path(path)
  return sorted(int(entry.name) for entry in path.iterdir()
                if re.fullmatch('0|[1-9][0-9]*', entry.name) and entry.is_dir()) if path.is_dir() else []


def remove(path) -> None:
  """Deletes a file or a directory tree, if it is there."""
  path = pathlib.Path(path)
  if path.is_dir() and not path.is_symlink():
    shutil.rmtree(path)
  else:
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def _held(path, wait: bool) -> Iterator[bool]:
  """Locks a directory as long as its process lives; gives False if somebody else holds it.

  A file system without locks gives False as well.
  """
  descriptor = os.open(path, os.O_RDONLY)
  try:
    try:
      fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
      free = True
    except OSError:
      free = False
    yield free
  finally:
    os.close(descriptor)


def _remove_leftovers(path: pathlib.Path) -> None:
  """Deletes temporary directories of `path` whose processes were killed; nobody holds those."""
  for other in path.parent.iterdir():
    if other.name.startswith(f'.{path.name}.') and other.is_dir():
      with contextlib.suppress(FileNotFoundError), _held(other, wait=False) as free:
        if free:
          shutil.rmtree(other, ignore_errors=True)


def publish_directory(source, target) -> None:
  """Gives a finished directory its place, on the same file system, by one rename; `target` must not exist."""
  source, target = pathlib.Path(source), pathlib.Path(target)
  make_directory(target.parent)
  with writing(target):
    _fsync_files(source)
    os.rename(source, target)
    _fsync_directory(target.parent)


def _fsync_files(path: pathlib.Path) -> None:
  """Makes sure that every file and directory below `path` is on disk."""
  for name in [*path.rglob('*'), path]:
    descriptor = os.open(name, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


@contextlib.contextmanager
def scratch_directory(path) -> Iterator[pathlib.Path]:
  """Yields a new, hidden directory beside `path`, and deletes it and what killed processes have left of such."""
  path = pathlib.Path(path)
  make_directory(path.parent)
  with contextlib.ExitStack() as stack:
    with writing(path):
      temporary = stack.enter_context(_temporary_directory(path))
    try:
      yield temporary
    finally:
      shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def _temporary_directory(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields a new directory that is locked as one in use, and first removes those that are not."""
  with contextlib.ExitStack() as stack:
    # The parent is locked while directories come and go, so that a new one is not taken for a leftover.
    with _held(path.parent, wait=True):
      _remove_leftovers(path)
      temporary = pathlib.Path(tempfile.mkdtemp(prefix=f'.{path.name}.', dir=path.parent))
      stack.enter_context(_held(temporary, wait=False))
    yield temporary


@contextlib.contextmanager
def replaced_directory(path) -> Iterator[pathlib.Path]:
  """Yields a temporary directory that takes the place of `path` when the body succeeds."""
  path = pathlib.Path(path)
  make_directory(path.parent)
  with writing(path), _temporary_directory(path) as temporary:
    try:
      os.chmod(temporary, 0o755)
      yield temporary
      _fsync_files(temporary)
      with _held(path.parent, wait=True):
        if path.exists():
          old = pathlib.Path(tempfile.mkdtemp(prefix=f'.{path.name}.old.', dir=path.parent))
          os.replace(path, old / 'old')
          os.replace(temporary, path)
          shutil.rmtree(old, ignore_errors=True)
        else:
          os.replace(temporary, path)
      _fsync_directory(path.parent)
    except BaseException:
      shutil.rmtree(temporary, ignore_errors=True)
      raise


def sha256(path) -> str:
  """Hex digest of a file's bytes, read in pieces."""
  digest = hashlib.sha256()
  with open(path, 'rb') as stream:
    while piece := stream.read(1 << 20):
      digest.update(piece)
  return digest.hexdigest()
