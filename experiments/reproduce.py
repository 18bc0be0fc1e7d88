"""Regenerates the paper's tables and figures for the data sets at hand.

  python experiments/reproduce.py --what=main --datasets=drift --seeds=3

The same as the command `graphsane reproduce`.
"""
from graphsane_tf.commands.main import start

if __name__ == '__main__':
  start('reproduce')
