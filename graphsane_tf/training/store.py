"""Where a block is in its training, on disk, whole at every moment."""
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
from typing import Any, Dict, Iterator, Optional

import tensorflow as tf

from graphsane_tf import files
from graphsane_tf.errors import UserError

# What TensorFlow and NumPy raise when a checkpoint is damaged or belongs to another model.
_UNREADABLE = (tf.errors.OpError, ValueError, IndexError, AssertionError, TypeError, KeyError,
               RuntimeError, MemoryError)
# What a finished block's result has, by an example of its type.
_RESULT = {'block': 0, 'epochs': 0, 'best_epoch': 0, 'train_seconds': 0., 'sampler_seconds': 0.,
           'validation': {}, 'test': {}, 'test_new_users': {}, 'coverage': {}}


def fresh_state() -> Dict[str, Any]:
  """The state of a block before its first epoch."""
  return {'epoch': 0, 'best_epoch': 0, 'best_value': -1., 'wait': 0, 'stopped': False,
          'train_seconds': 0., 'sampler_seconds': 0., 'validation': {}, 'records': []}


def _digest(state: Dict[str, Any]) -> str:
  return hashlib.sha256(files.json_text(state).encode()).hexdigest()


def _renamed(state: Any) -> Any:
  """A state with today's names; version 0.1 said reservoir_seconds for what any sampler takes."""
  if isinstance(state, dict):
    return {'sampler_seconds' if name == 'reservoir_seconds' else name: _renamed(value)
            for name, value in state.items()}
  return [_renamed(part) for part in state] if isinstance(state, list) else state


class BlockStore:
  """Checkpoints of one block and the one file that says which of them count.

  Each epoch's checkpoint is written under a name of its own; then `state.json`, which names the last and
  the best one, is replaced in one rename; then files that it no longer names are deleted. A kill between
  any two of these leaves the state before or the state after.
  """

  def __init__(self, workdir, block: int):
    self._workdir = pathlib.Path(workdir)
    self._block = block
    self.folder = self._workdir / 'checkpoints' / f'block_{block}'

  @property
  def _state_file(self) -> pathlib.Path:
    return self.folder / 'state.json'

  def _damage(self, reason: str) -> UserError:
    return UserError(f'{reason.rstrip(".")}; delete {self.folder} and run the same command again '
                     'to train the block anew.')

  def load(self) -> Optional[Dict[str, Any]]:
    """The state last saved, or None.

    Raises:
      UserError: if the file is damaged, or names checkpoints that cannot be the block's.
    """
    if not self._state_file.exists():
      return None
    try:
      state = files.read_json(self._state_file)
      digest = state.pop('sha256', None) if isinstance(state, dict) else None
      # A state of an older version has no digest.
      if digest not in (None, _digest(state)):
        raise UserError(f'{self._state_file} has been changed since it was written')
      state = _renamed(state)
      files.check_object(state, fresh_state(), str(self._state_file))
      if 'result' in state:
        files.check_object(state['result'], _RESULT, f"{self._state_file}: 'result'")
      for name in ('last', 'best'):
        # `save` gives no other names; a path could lead out of the folder.
        if (name in state or state['epoch'] or state['stopped']) and not re.fullmatch(
            r'epoch-[0-9]+', str(state.get(name))):
          raise UserError(f'{self._state_file} calls its {name} checkpoint {state.get(name)!r}')
    except UserError as error:
      raise self._damage(f'the state of block {self._block} is damaged: {error}') from error
    return state

  def saved(self) -> Dict[str, Any]:
    """`load` of a block that must have a state."""
    state = self.load()
    if state is None:
      raise UserError(f'{self.folder} holds no state of block {self._block}: run the block first.')
    return state

  def save_state(self, state: Dict[str, Any]) -> None:
    """Replaces the state and deletes checkpoints that it does not name."""
    self._make_folder()
    files.write_json(self._state_file, {**state, 'sha256': _digest(state)})
    self.clear(state)

  def clear(self, state: Dict[str, Any]) -> None:
    """Deletes everything that the state does not name: older epochs, and what kills have left."""
    for path in self.folder.iterdir():
      # A kill while TensorFlow writes a checkpoint leaves a folder of its parts.
      if path.name != 'state.json' and path.name.split('.')[0] not in (
          state.get('last'), state.get('best')):
        files.remove(path)

  def _make_folder(self) -> None:
    if not self._workdir.is_dir():
      raise UserError(f'the run folder {self._workdir} has vanished while block {self._block} was '
                      'trained: nothing more is written.')
    files.make_directory(self.folder)

  def save(self, checkpoint: tf.train.Checkpoint, name: str) -> None:
    """Writes a checkpoint under a name; it counts once a state names it."""
    self._make_folder()
    with files.writing(self.folder / name, tf.errors.OpError):
      checkpoint.write(str(self.folder / name))
      for path in self.folder.glob(name + '.*'):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

  @contextlib.contextmanager
  def _reading(self, name: str) -> Iterator[None]:
    """Turns errors inside into one sentence about a checkpoint."""
    try:
      yield
    except _UNREADABLE as error:
      raise self._damage(f'the checkpoint {self.folder / name} cannot be read '
                         f'({files.reason(error)})') from error

  def check(self, name: str) -> None:
    """Raises a `UserError` if any tensor of a checkpoint is damaged."""
    with self._reading(name):
      reader = tf.train.load_checkpoint(str(self.folder / name))
      for key in reader.get_variable_to_shape_map():
        # Reading compares a tensor with its checksum.
        reader.get_tensor(key)

  def restore(self, checkpoint: tf.train.Checkpoint, name: str) -> None:
    """Reads a checkpoint; every variable of `checkpoint` must be in it.

    Raises:
      UserError: if files are damaged, also in parts that are not asked for, or of another shape.
    """
    self.check(name)
    with self._reading(name):
      status = checkpoint.read(str(self.folder / name))
      status.assert_existing_objects_matched()
      # A model is also read without the sampler that was saved beside it.
      status.expect_partial()

  def copy(self, target: 'BlockStore') -> None:
    """Copies the best checkpoint and a state without a result to another run, in one step."""
    state = self.saved()
    for name in ('result', 'files', 'failed'):
      state.pop(name, None)
    state['last'] = state['best']
    with files.replaced_directory(target.folder) as folder:
      for path in self.folder.glob(state['best'] + '.*'):
        shutil.copy2(path, folder / path.name)
      files.write_json(folder / 'state.json', {**state, 'sha256': _digest(state)})
