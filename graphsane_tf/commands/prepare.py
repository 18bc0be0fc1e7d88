"""Prepares a data set and prints its counts beside the paper's."""
from graphsane_tf.data import flags as data_flags

HELP = "Reads and filters a data set, keeps the result, and prints its counts beside the paper's."
EXAMPLES = ('graphsane prepare --dataset=gowalla --download',
            'graphsane prepare --dataset=csv --interactions=log.csv')


def define():
  return {'data': data_flags.define()}


def main():
  from graphsane_tf.blocks import describe  # pylint: disable=g-import-not-at-top
  from graphsane_tf.data import prepare  # pylint: disable=g-import-not-at-top
  data = data_flags.from_flags()
  print(describe.describe(prepare.load(**data), data['spec'].dataset))
  folder = prepare.prepared_folder(data['spec'], data['data_dir'])
  print(f'prepared in {folder}' if folder else 'generated; nothing is kept on disk')
