"""Every choice of a run, with its default. `configs/` holds named sets that start from this one."""
from ml_collections import config_dict

# Rank bands of `--sane_variant`: the first rank of the reservoir.
SANE_VARIANTS = {
    # The printed recipe: the top |Q| unobserved items.
    'paper': config_dict.ConfigDict({'start_rank': 1}),
    # What the released code does: ranks 201 to 300.
    'band': config_dict.ConfigDict({'start_rank': 201}),
}


def default_config() -> config_dict.ConfigDict:
  """The default configuration: the paper's model with the settings that trained well."""
  c = config_dict.ConfigDict()

  # Seed of everything random.
  c.seed = 0
  # Graph model: a name in graphsane_tf.backbones.
  c.backbone = 'mgccf'
  # Knowledge distillation: a name in graphsane_tf.distillation.
  c.kd = 'none'
  # Replay of old interactions: a name in graphsane_tf.replay.
  c.replay = 'none'
  # Negative sampler of the last slots: a name in graphsane_tf.negatives.
  c.sampler = 'uniform'
  # Item clusters of SANE: a name in graphsane_tf.clustering.
  c.clusters = 'structural'
  # Rank band of SANE's reservoir: a name in SANE_VARIANTS.
  c.sane_variant = 'band'
  # Another run's folder whose base block is taken over, or '' to train one.
  c.base_from = ''

  c.blocks = config_dict.ConfigDict()
  # Share of the rows in block 0.
  c.blocks.base_fraction = 0.6
  # Incremental blocks of equal size; the last one is only validation and test data.
  c.blocks.num_incremental = 4

  c.model = config_dict.ConfigDict()
  # Embedding size d.
  c.model.embedding_dim = 128
  # Neighbours drawn at hop 1 and hop 2 when propagation is sampled.
  c.model.fanout = (10, 5)
  # Nearest neighbours in the user-user and item-item graphs.
  c.model.num_knn = 15
  # Dropout on aggregated neighbourhoods.
  c.model.dropout = 0.2
  # Weight of half the squared norms of the representations in a triplet (lambda_Theta).
  c.model.l2 = 0.02
  # Weight of MGCCF's multi-graph proximity term.
  c.model.proximity = 0.002
  # Message passing over all training edges so far ('accumulated') or the block's own ('block').
  c.model.graph_scope = 'accumulated'
  # 'auto', 'whole' (every neighbour, sparse products) or 'sampled' (fanout neighbours).
  c.model.propagation = 'auto'
  # Rows of new users and items: 'glorot', or 'neighbours' (mean of their neighbours' rows).
  c.model.new_rows = 'glorot'

  c.train = config_dict.ConfigDict()
  # Pairs in a step.
  c.train.batch_size = 2048
  # Adam's learning rate in the base block and in incremental blocks.
  c.train.base_learning_rate = 2e-3
  c.train.learning_rate = 1e-3
  # Most and fewest epochs in the base block and in incremental blocks.
  c.train.base_epochs = 30
  c.train.base_min_epochs = 10
  c.train.epochs = 15
  c.train.min_epochs = 3
  # Epochs without a better validation Recall@20 before training stops.
  c.train.patience = 2
  # Negatives of a pair (N1 + N2), and how many of them the sampler fills (N2) if there is one.
  c.train.num_negatives = 10
  c.train.num_sampler_negatives = 2

  c.sane = config_dict.ConfigDict()
  # Size of a user's reservoir |Q|.
  c.sane.size = 100
  # First rank of the reservoir; unset: by sane_variant.
  c.sane.start_rank = config_dict.placeholder(int)
  # In a small catalogue the band starts no later than this share of it.
  c.sane.max_start_share = 0.04
  # Epochs between two rebuilds (f).
  c.sane.refresh_epochs = 2
  # Strength of the prior (lambda).
  c.sane.strength = 1.0
  # Temperature of the softmax over shifts; 1 is the paper's.
  c.sane.temperature = 1.0
  # -1: more negatives from categories that lose interest (the paper); +1 reversed, 0 flat prior.
  c.sane.prior_sign = -1
  # Draw from the whole reservoir with equal probability, without theta (a control).
  c.sane.uniform_theta = False
  # Keep items of earlier blocks out of the reservoir, too.
  c.sane.exclude_history = False

  c.clustering = config_dict.ConfigDict()
  # Number of clusters (K).
  c.clustering.num_clusters = 10
  # Degrees of freedom of the Student-t kernel (nu).
  c.clustering.nu = 1.0
  # Temperature of the membership softmax (tau).
  c.clustering.temperature = 0.1
  # Weight of the clustering loss (beta), on the sum over a batch's items divided by its pairs.
  c.clustering.beta = 0.01

  c.sgct = config_dict.ConfigDict()
  # Weight of the contrastive distillation (lambda_KD) beside a BPR term that is a mean over pairs.
  c.sgct.weight = 0.1
  # Temperature tau.
  c.sgct.temperature = 0.5
  # Positives and negatives of an anchor in each step.
  c.sgct.num_positives = 15
  c.sgct.num_negatives = 22

  c.evaluation = config_dict.ConfigDict()
  # Cut-offs of the metrics.
  c.evaluation.cutoffs = (5, 10, 15, 20)
  # Average precision divided by all relevant items ('relevant', the paper) or min(k, them).
  c.evaluation.map_denominator = 'relevant'
  # Ideal of NDCG: k hits ('k', the paper) or min(k, relevant) hits ('relevant').
  c.evaluation.ndcg_ideal = 'k'

  return c


def resolved(config: config_dict.ConfigDict) -> config_dict.FrozenConfigDict:
  """A copy in which every open field has its value; what the run reads and saves."""
  c = config_dict.ConfigDict(config.to_dict())
  if c.sane.start_rank is None:
    c.sane.start_rank = SANE_VARIANTS[c.sane_variant].start_rank
  c.train.base_min_epochs = min(c.train.base_min_epochs, c.train.base_epochs)
  c.train.min_epochs = min(c.train.min_epochs, c.train.epochs)
  return config_dict.FrozenConfigDict(c)
