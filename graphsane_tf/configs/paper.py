"""The set the paper prints (its hyper-parameter appendix), where that differs from the default."""
from graphsane_tf.config import default_config


def get_config():
  c = default_config()
  # Batch size and (maximal) learning rate as printed, base and incremental alike.
  c.train.batch_size = 64
  c.train.learning_rate = 5e-4
  c.train.base_learning_rate = 5e-4
  # The printed recipe: the reservoir is the top |Q| of the ranking.
  c.sane_variant = 'paper'
  # "We do not construct a graph using the old set of edges."
  c.model.graph_scope = 'block'
  return c
