"""Vectors and ids of a store's model, for other software."""
from absl import flags

from graphsane_tf import cli
from graphsane_tf.commands import stores
from graphsane_tf.errors import UserError

HELP = 'Writes the vectors and ids of a version, for FAISS, ScaNN, a vector database or a feature store.'
EXAMPLES = ('graphsane export --store=shop --format=parquet --output=vectors',)


def define():
  stores.define_store()
  flags.DEFINE_enum('format', 'npz', ['npz', 'parquet'], 'One .npz file, or a folder of two Parquet files.')
  flags.DEFINE_string('output', None, 'The file, or the folder.')
  flags.DEFINE_integer('number', None, 'The version; the one that is served by default.', lower_bound=1)
  return {'flags': ['store', 'format', 'output', 'number']}


def main():
  values = flags.FLAGS
  path = stores.folder()
  if not values.output:
    raise UserError('where to? Add --output=FILE.')
  cli.load_tensorflow_quietly()
  from graphsane_tf.recommender import Recommender  # pylint: disable=g-import-not-at-top
  for file in Recommender.open(path, stores.say).export(values.output, values.format, values.number):
    stores.say(f'written   {file}')
