"""`python -m graphsane_tf` is the command `graphsane`."""
from graphsane_tf.commands.main import graphsane

if __name__ == '__main__':
  graphsane()
