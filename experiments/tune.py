"""Chooses SANE's values for a log on validation rows, and tests the chosen ones once.

  python experiments/tune.py --dataset=drift --kd=sgct --trials=30

The same as the command `graphsane tune`.
"""
from graphsane_tf.commands.main import start

if __name__ == '__main__':
  start('tune')
