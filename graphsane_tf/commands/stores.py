"""What the commands that work on a store share."""
import pathlib

from absl import flags

from graphsane_tf.errors import UserError

COLUMNS = ('user', 'item', 'timestamp', 'category', 'rating')


def define_store() -> None:
  flags.DEFINE_string('store', None, 'Folder of the store.')


def folder() -> pathlib.Path:
  """The folder of --store."""
  if not flags.FLAGS.store:
    raise UserError('which store? Add --store=DIR.')
  return pathlib.Path(flags.FLAGS.store)


def say(line: str) -> None:
  print(line, flush=True)
