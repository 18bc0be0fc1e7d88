"""Where a block is in its training, on disk, whole at every moment."""
import os
import pathlib
import shutil
from typing import Any, Dict, Optional

import tensorflow as tf

from graphsane_tf import files
from graphsane_tf.errors import UserError


class BlockStore:
  """Checkpoints of one block and the one file that says which of them count.

  Each epoch's checkpoint is written under a name of its own; then `state.json`, which names the last and
  the best one, is replaced in one rename; then files that it no longer names are deleted. A kill between
  any two of these leaves the state before or the state after.
  """

  def __init__(self, workdir, block: int):
    self.folder = pathlib.Path(workdir) / 'checkpoints' / f'block_{block}'

  @property
  def _state_file(self) -> pathlib.Path:
    return self.folder / 'state.json'

  def load(self) -> Optional[Dict[str, Any]]:
    """The state last saved, or None."""
    return files.read_json(self._state_file) if self._state_file.exists() else None

  def save_state(self, state: Dict[str, Any]) -> None:
    """Replaces the state and deletes checkpoints that it does not name."""
    files.write_json(self._state_file, state)
    for path in self.folder.iterdir():
      if path.name != 'state.json' and path.name.split('.')[0] not in (
          state.get('last'), state.get('best')):
        # A kill while TensorFlow writes a checkpoint leaves a folder of its parts.
        if path.is_dir():
          shutil.rmtree(path)
        else:
          path.unlink()

  def save(self, checkpoint: tf.train.Checkpoint, name: str) -> None:
    """Writes a checkpoint under a name; it counts once a state names it."""
    files.make_directory(self.folder)
    checkpoint.write(str(self.folder / name))
    for path in self.folder.glob(name + '.*'):
      descriptor = os.open(path, os.O_RDONLY)
      os.fsync(descriptor)
      os.close(descriptor)

  def restore(self, checkpoint: tf.train.Checkpoint, name: str) -> None:
    """Reads a checkpoint; every variable of `checkpoint` must be in it.

    Raises:
      UserError: if files are damaged or of another shape.
    """
    try:
      status = checkpoint.read(str(self.folder / name))
      status.assert_existing_objects_matched()
      # A model is also read without the sampler that was saved beside it.
      status.expect_partial()
    except (tf.errors.OpError, ValueError, IndexError, AssertionError) as error:
      raise UserError(f'the checkpoint {self.folder / name} cannot be read '
                      f'({str(error).splitlines()[0][:120]}); delete {self.folder} and run the same '
                      'command again to train the block anew.') from error
