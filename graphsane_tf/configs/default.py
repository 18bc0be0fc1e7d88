"""The default configuration; its fields and comments are in graphsane_tf/config.py."""
from graphsane_tf.config import default_config


def get_config():
  return default_config()
