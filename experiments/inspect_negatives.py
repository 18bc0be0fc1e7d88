"""Shows a user's interests, their shift, and the negative reservoir that SANE builds from them.

  python experiments/inspect_negatives.py --run=runs/drift-sgct-sane-seed0 --user=u00012

The same as the command `graphsane inspect`.
"""
from graphsane_tf.commands.main import start

if __name__ == '__main__':
  start('inspect')
