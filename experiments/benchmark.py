"""Measures speed and memory: every figure a ratio of two things timed in turn in one process.

  python experiments/benchmark.py --quick

The same as the command `graphsane benchmark`.
"""
from graphsane_tf.commands.main import start

if __name__ == '__main__':
  start('benchmark')
