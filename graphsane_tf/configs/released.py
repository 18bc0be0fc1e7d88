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
  # Weights of 100, and of 100, 10 and 1, beside a sum over 5,000 pairs.
  c.sgct.weight = 0.02
  c.lwckd.layer0_weight = 0.02
  c.lwckd.layer1_weight = 0.002
  c.lwckd.final_weight = 0.0002
  # All old nodes of a batch are anchors there.
  c.lwckd.num_anchors = 0
  # KL(student || teacher).
  c.lsp.teacher_first = False
  c.graphsail.teacher_first = False
  # Rows of replay are drawn by (1 / their user's degree) ^ 3.
  c.replay_options.exponent = 3.0
  # MAP@k over min(k, relevant items).
  c.evaluation.map_denominator = 'truncated'
  return c
