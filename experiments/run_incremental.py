"""Trains a graph recommender block by block.

  python experiments/run_incremental.py --dataset=taobao14 --kd=sgct --sane

The same as the command `graphsane run`.
"""
from graphsane_tf.commands.main import start

if __name__ == '__main__':
  start('run')
