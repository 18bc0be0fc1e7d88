"""The set the paper prints: its hyper-parameter table in full, and what its text says."""
from graphsane_tf.config import default_config


def get_config():
  c = default_config()
  c.model.embedding_dim = 128
  c.model.mgccf_layers = 2
  c.model.dropout = 0.2
  c.train.batch_size = 64
  # "Learning rate (max)", base and incremental alike. No schedule is printed, and the released code has none.
  c.train.learning_rate = 5e-4
  c.train.base_learning_rate = 5e-4
  # At least 10 epochs and no upper limit in the base block, at least 3 and at most 15 in the others; stopped
  # after 2 without improvement, which comes long before this many.
  c.train.base_min_epochs = 10
  c.train.base_epochs = 1000
  c.train.min_epochs = 3
  c.train.epochs = 15
  c.train.patience = 2
  c.clustering.num_clusters = 10
  c.sane.size = 100
  c.sane.refresh_epochs = 2
  # The printed recipe: the reservoir is the top |Q| of the ranking.
  c.sane_variant = 'paper'
  # "We do not construct a graph using the old set of edges."
  c.model.graph_scope = 'block'
  return c
