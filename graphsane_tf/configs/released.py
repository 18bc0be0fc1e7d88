"""The settings of the authors' released code, where they differ from the default."""
from graphsane_tf.config import default_config


def get_config():
  c = default_config()
  c.train.batch_size = 5000
  c.train.learning_rate = 5e-4
  c.train.base_learning_rate = 1e-3
  c.train.epochs = 25
  c.train.min_epochs = 8
  c.train.base_epochs = 100
  c.model.dropout = 0.1
  # The reservoir is rebuilt each epoch there.
  c.sane.refresh_epochs = 1
  # A weight of 100 beside a sum over 5,000 pairs.
  c.sgct.weight = 0.02
  return c
