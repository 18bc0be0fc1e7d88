"""Prepares a data set and prints its counts beside the paper's."""
from graphsane_tf.data import flags as data_flags, prepare

HELP = "Reads and filters a data set, keeps the result, and prints its counts beside the paper's."
EXAMPLES = ('graphsane prepare --dataset=gowalla --download',
            'graphsane prepare --dataset=csv --interactions=log.csv')


def define():
  return {'data': data_flags.define()}


def main():
  from graphsane_tf.blocks import describe  # pylint: disable=g-import-not-at-top
  options = data_flags.from_flags()
  interactions = prepare.load(**options)
  print(describe.describe(interactions, options['name']))
  folder = prepare.prepared_folder(options['name'], options['data_dir'], options['overrides'],
                                   options['csv_options'])
  print(f'prepared in {folder}' if folder else 'generated; nothing is kept on disk')
