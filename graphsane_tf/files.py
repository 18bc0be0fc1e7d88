"""Files that are either whole or not there: write to a temporary name, fsync, rename."""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any, Iterator

from graphsane_tf.errors import UserError


def _fsync_directory(path: pathlib.Path) -> None:
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


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


def write_json(path, value: Any) -> None:
  """Writes `value` as indented JSON to `path` atomically."""
  write_text(path, json.dumps(value, indent=2, sort_keys=False) + '\n')


def read_json(path) -> Any:
  """Reads a JSON file, or says in one sentence what is wrong with it."""
  try:
    return json.loads(pathlib.Path(path).read_text('utf-8'))
  except FileNotFoundError as error:
    raise UserError(f'{path} does not exist.') from error
  except json.JSONDecodeError as error:
    raise UserError(f'{path}, line {error.lineno}: not valid JSON ({error.msg}).') from error


@contextlib.contextmanager
def replaced_directory(path) -> Iterator[pathlib.Path]:
  """Yields a temporary directory that takes the place of `path` when the body succeeds."""
  path = pathlib.Path(path)
  make_directory(path.parent)
  temporary = pathlib.Path(tempfile.mkdtemp(prefix=f'.{path.name}.', dir=path.parent))
  os.chmod(temporary, 0o755)
  try:
    yield temporary
    for name in temporary.rglob('*'):
      if name.is_file():
        descriptor = os.open(name, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
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
