"""Seconds instead of minutes: for tests and for trying out a new method."""
from graphsane_tf.config import default_config


def get_config():
  c = default_config()
  c.model.embedding_dim = 16
  c.train.batch_size = 512
  c.train.base_epochs = 3
  c.train.epochs = 2
  c.sane.size = 20
  return c
