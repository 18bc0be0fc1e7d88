"""Evaluates a finished run under the released protocol's choices, on the same weights.

  python experiments/audit.py --run=runs/drift-sgct-sane-seed0

The same as the command `graphsane audit`.
"""
from graphsane_tf.commands.main import start

if __name__ == '__main__':
  start('audit')
