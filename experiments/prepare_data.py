"""Prepares a data set and prints its counts beside the paper's.

  python experiments/prepare_data.py --dataset=gowalla --download
  python experiments/prepare_data.py --dataset=csv --interactions=log.csv
"""
from absl import flags

from graphsane_tf import cli
from graphsane_tf.blocks import describe
from graphsane_tf.data import flags as data_flags
from graphsane_tf.data import prepare

data_flags.define()


def main() -> None:
  options = data_flags.from_flags(flags.FLAGS)
  interactions = prepare.load(**options)
  print(describe.describe(interactions, options['name']))
  folder = prepare.prepared_folder(options['name'], options['data_dir'], options['overrides'],
                                   options['csv_options'])
  print(f'prepared in {folder}' if folder else 'generated; nothing is kept on disk')


if __name__ == '__main__':
  cli.run(main)
