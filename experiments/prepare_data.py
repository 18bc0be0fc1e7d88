"""Prepares a data set and prints its counts beside the paper's.

  python experiments/prepare_data.py --dataset=gowalla --download

The same as the command `graphsane prepare`.
"""
from graphsane_tf.commands.main import start

if __name__ == '__main__':
  start('prepare')
