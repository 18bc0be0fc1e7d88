"""Every choice of a run, with its default. `configs/` holds named sets that start from this one."""
import functools
from typing import Any, Dict

from ml_collections import config_dict

from graphsane_tf import config_rules
from graphsane_tf.errors import UserError

_PRINTED = {'size': 100, 'band': 'fixed', 'shift': 'printed', 'balance': 0., 'candidates': 1,
            'exclude_history': False, 'strength': 1., 'temperature': 1.}
# What `--sane_variant` sets of `config.sane`; a field that is given keeps its value.
SANE_VARIANTS = {
    # The printed recipe: the top |Q| unobserved items.
    'paper': {**_PRINTED, 'start_rank': 1},
    # What the released code does: ranks 201 to 300.
    'band': {**_PRINTED, 'start_rank': 201},
    # The band, the shift and the draw follow the evidence of each block.
    'adaptive': {'size': 300, 'start_rank': 201, 'band': 'learned', 'shift': 'evidence',
                 'balance': 1., 'candidates': 1, 'exclude_history': True, 'strength': 1.,
                 'temperature': .3},
}
# Flags of the command line that are short for --config.FIELD=VALUE, and their fields.
SHORT_FLAGS = {
    'backbone': 'backbone', 'kd': 'kd', 'replay': 'replay', 'sampler': 'sampler', 'clusters': 'clusters',
    'sane_variant': 'sane_variant', 'memory': 'memory', 'peer': 'peer', 'full_retrain': 'full_retrain',
    'base_from': 'base_from', 'seed': 'seed',
    'base_epochs': 'train.base_epochs', 'epochs': 'train.epochs', 'batch_size': 'train.batch_size',
    'learning_rate': 'train.learning_rate', 'embedding_dim': 'model.embedding_dim',
    'replay_ratio': 'replay_options.ratio', 'replay_window': 'replay_options.window'}


def default_config() -> config_dict.ConfigDict:
  """The default configuration: the paper's model with the settings that trained well."""
  c = config_dict.ConfigDict()

  # Seed of everything random.
  c.seed = 0
  # Graph model: a name in graphsane_tf.backbones.
  c.backbone = 'mgccf'
  # Knowledge distillation: a name in graphsane_tf.distillation.
  c.kd = 'none'
  # Norm of its gradient on the embedding tables over that of the ranking loss: its losses are multiplied by one
  # number a block, found in the block's first steps. 0 leaves the weights of its own section as they are.
  c.kd_strength = 0.0
  # Replay of old interactions: a name in graphsane_tf.replay.
  c.replay = 'none'
  # Train each block from fresh weights on all rows so far, without distillation and replay.
  c.full_retrain = False
  # Negative sampler of the last slots: a name in graphsane_tf.negatives.
  c.sampler = 'uniform'
  # Item clusters of SANE: a name in graphsane_tf.clustering.
  c.clusters = 'structural'
  # Kind of SANE: a name in SANE_VARIANTS.
  c.sane_variant = 'band'
  # Closed-form memory of all history beside the graph model: a name in graphsane_tf.memory.
  c.memory = 'none'
  # A simple model that is fitted instead of training: a name in graphsane_tf.peers.
  c.peer = 'none'
  # Another run's folder whose base block is taken over, or '' to train one.
  c.base_from = ''

  c.blocks = config_dict.ConfigDict()
  # Share of the rows (or days) in block 0.
  c.blocks.base_fraction = 0.6
  # Incremental blocks of equal size; the last one is only validation and test data.
  c.blocks.num_incremental = 4
  # Cut by number of rows ('rows') or by calendar days ('days', UTC).
  c.blocks.by = 'rows'
  # What stops training: the first half of the next block, whose second half is the test ('next_half'), or the last
  # rows of the block itself, with all of the next block as the test ('share').
  c.blocks.validation = 'next_half'
  # Share of a block's rows that the latter keeps; they are trained on with the next block.
  c.blocks.validation_share = 0.05

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
  # Convolutions of MGCCF over the user-item graph (L); one beyond `fanout` draws as many as the last there.
  c.model.mgccf_layers = 2
  # Propagation steps of LightGCN (L); a step beyond `fanout` draws as many as the last there.
  c.model.num_layers = 3
  # Largest score of PinSage, whose representations have one length (an inverse temperature).
  c.model.pinsage_scale = 10.0
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
  # Steps of an epoch at most, to try things out; 0 is all of them.
  c.train.max_steps = 0
  # Adam's learning rate in the base block and in incremental blocks.
  c.train.base_learning_rate = 2e-3
  c.train.learning_rate = 1e-3
  # Most and fewest epochs in the base block and in incremental blocks.
  c.train.base_epochs = 30
  c.train.base_min_epochs = 10
  # 0 keeps the base block's weights in all later blocks.
  c.train.epochs = 15
  c.train.min_epochs = 3
  # Epochs without a better validation Recall@20 before training stops.
  c.train.patience = 2
  # 'adam', or 'lazy_adam', which leaves rows of the tables that a step does not need as they are: for tables that are
  # much larger than a batch, with sampled propagation.
  c.train.optimizer = 'adam'
  # Adam's moments of new users and items: 'zeros' among older ones, or 'corrected' by their own number of steps.
  c.train.new_row_moments = 'zeros'
  # Validate an incremental block's model before it is trained, too (old weights, today's graph, new rows as they
  # start): where no epoch is better, it is kept, and only the graph moves that day.
  c.train.epoch_zero = False
  # What ranks positives above negatives: 'bpr' (each negative on its own), or 'softmax' over the items of the
  # step's other pairs, the N1 uniform negatives and the sampler's slots, corrected for how often each is there.
  c.train.loss = 'bpr'
  # Scores are divided by it in the softmax.
  c.train.softmax_temperature = 0.2
  # Negatives of a pair (N1 + N2), and how many of them the sampler fills (N2) if there is one.
  c.train.num_negatives = 10
  c.train.num_sampler_negatives = 2
  # How samplers rank a catalogue: 'exact', or 'approximate' by an index of the items (extra 'ann'), which pays for
  # large catalogues. Validation and tests are always exact.
  c.train.ranking = 'exact'

  c.sane = config_dict.ConfigDict()
  # The fields without a value here are set by sane_variant.
  # Size of a user's reservoir |Q|.
  c.sane.size = config_dict.placeholder(int)
  # Where the reservoir begins: at start_rank ('fixed'), or where the block's own items show that the
  # risk has fallen to max_risk times that of ranks 1 to 20 ('learned'; start_rank if it does not fall
  # within a tenth of the catalogue).
  c.sane.band = config_dict.placeholder(str)
  c.sane.start_rank = config_dict.placeholder(int)
  # How likely to be taken an item at the learned first rank may be, over one of ranks 1 to 20.
  c.sane.max_risk = 0.5
  # An item in the reservoirs of n pairs is drawn n^-balance times as readily: at 1 items that stand in
  # many reservoirs are drawn about as often as others, at 0 nothing is done about it.
  c.sane.balance = config_dict.placeholder(float)
  # In a small catalogue the band starts no later than this share of it.
  c.sane.max_start_share = 0.04
  # Epochs between two rebuilds (f).
  c.sane.refresh_epochs = 2
  # Interest shift: the 'printed' difference of two blocks, or by 'evidence' (see negatives/sane/evidence.py).
  c.sane.shift = config_dict.placeholder(str)
  # Strength of the prior (lambda).
  c.sane.strength = config_dict.placeholder(float)
  # Temperature of the softmax over shifts; 1 is the paper's.
  c.sane.temperature = config_dict.placeholder(float)
  # -1: more negatives from categories that lose interest (the paper); +1 reversed, 0 flat prior.
  c.sane.prior_sign = -1
  # Draw from the whole reservoir with equal probability, without theta (a control).
  c.sane.uniform_theta = False
  # Keep items of earlier blocks out of the reservoir, too.
  c.sane.exclude_history = config_dict.placeholder(bool)
  # Items drawn for each slot, of which the step keeps the one that is hardest by then.
  c.sane.candidates = config_dict.placeholder(int)
  # Count an item in every cluster by its membership c_ik instead of in its argmax only.
  c.sane.soft_membership = False

  c.warp = config_dict.ConfigDict()
  # Most trials of a pair for all its slots.
  c.warp.trials = 10
  # Margin: j violates if its score plus the margin exceeds the positive's.
  c.warp.margin = 1.0
  # 'bpr' (the paper's triplet loss) or 'hinge' (the publication's), weighted by the rank.
  c.warp.loss = 'bpr'

  c.dns = config_dict.ConfigDict()
  # Uniform candidates of each slot.
  c.dns.candidates = 5

  c.pns = config_dict.ConfigDict()
  # p of the geometric distribution of ranks; its mean is 1 / p.
  c.pns.probability = 0.002
  # Ranks kept for each user at most; the distribution is truncated there.
  c.pns.max_depth = 1000
  # Epochs between two rankings.
  c.pns.refresh_epochs = 2

  c.pinsage = config_dict.ConfigDict()
  # Probability that the walk goes on instead of starting anew.
  c.pinsage.damping = 0.85
  # First rank of the band, its size, and the share of a small catalogue that it starts at the latest.
  c.pinsage.start_rank = 201
  c.pinsage.size = 100
  c.pinsage.max_start_share = 0.04
  # Iterations stop when less than this share of the mass moves, or after so many.
  c.pinsage.tolerance = 0.02
  c.pinsage.max_iterations = 20

  c.nscaching = config_dict.ConfigDict()
  # Items in a user's cache (N1 of the publication), and fresh candidates at a renewal (N2).
  c.nscaching.size = 50
  c.nscaching.candidates = 50
  # Temperature of the softmax of scores by which a cache is renewed.
  c.nscaching.temperature = 1.0
  # Epochs between two renewals.
  c.nscaching.refresh_epochs = 1

  c.esns = config_dict.ConfigDict()
  # Similar items kept for each item.
  c.esns.num_similar = 100
  # Draws before a uniform negative is taken, because the user has taken the similar ones.
  c.esns.tries = 8
  # 'bpr' (the paper's triplet loss) or 'shift' (logistic loss of shifted scores).
  c.esns.loss = 'bpr'
  # Shift of the scores in the latter.
  c.esns.shift = 0.0

  c.demix = config_dict.ConfigDict()
  # Uniform candidates of a pair.
  c.demix.candidates = 10
  # Both parameters of the Beta distribution of mixing shares.
  c.demix.concentration = 1.0

  c.clustering = config_dict.ConfigDict()
  # Number of clusters (K).
  c.clustering.num_clusters = 10
  # Most iterations of K-means, which starts the centres.
  c.clustering.kmeans_iterations = 50
  # Degrees of freedom of the Student-t kernel (nu).
  c.clustering.nu = 1.0
  # Temperature of the membership softmax (tau).
  c.clustering.temperature = 0.1
  # Weight of the clustering loss (beta), on the sum over a batch's items divided by its pairs.
  c.clustering.beta = 0.01

  c.sgct = config_dict.ConfigDict()
  # Weight of the contrastive distillation (lambda_KD) beside a BPR term that is a mean over pairs
  # (released: 100 beside a sum over 5,000 pairs, i.e. 0.02; over the printed batch of 64, 1.6).
  c.sgct.weight = 1.0
  # Temperature tau.
  c.sgct.temperature = 0.5
  # Positives and negatives of an anchor in each step.
  c.sgct.num_positives = 15
  c.sgct.num_negatives = 22
  # Most users, and most items, of a batch that are anchors; 0 is all of them.
  c.sgct.num_anchors = 0

  c.lwckd = config_dict.ConfigDict()
  # Weights of layer 0 (embeddings), layer 1 and the final representation, each summed over the four
  # relations; 100 : 10 : 1 as released, on sgct.weight's scale.
  c.lwckd.layer0_weight = 1.0
  c.lwckd.layer1_weight = 0.1
  c.lwckd.final_weight = 0.01
  # Temperature tau.
  c.lwckd.temperature = 0.5
  # Positives and negatives of an anchor, user-item and item-user (released: 15 and 22).
  c.lwckd.num_positives = 15
  c.lwckd.num_negatives = 22
  # Positives and negatives of an anchor, user-user and item-item (released: 15 or 30, and 15).
  c.lwckd.num_knn_positives = 15
  c.lwckd.num_knn_negatives = 15
  # Most users, and most items, of a batch that are anchors (0 is all of them: twice the time).
  c.lwckd.num_anchors = 512

  c.personal = config_dict.ConfigDict()
  # Contrastive distillers weigh a user by exp(-strength * interest shift); 0 weighs all equally.
  c.personal.strength = 0.0
  # K-means clusters of items in which the shift is measured (K).
  c.personal.num_clusters = 10

  c.lsp = config_dict.ConfigDict()
  # Weight of the mean divergences of users and of items; nowhere published. At 1000 the term has
  # the size of GraphSAIL's self term.
  c.lsp.weight = 1000.0
  # Neighbours of a node drawn in each step (released: 10, fixed for the block).
  c.lsp.num_neighbours = 10
  # Temperature of the softmax over neighbours.
  c.lsp.temperature = 1.0
  # KL(teacher || student), as LSP's authors compute it; False: KL(student || teacher), as released.
  c.lsp.teacher_first = True

  c.graphsail = config_dict.ConfigDict()
  # Weight of the self term, a sum over a pair's nodes (lambda_self; released: 100).
  c.graphsail.self_weight = 100.0
  # Weights of the local and global terms, means over all old nodes (lambda_local, lambda_global;
  # released: 1e4 beside losses summed over 5,000 pairs).
  c.graphsail.local_weight = 2.0
  c.graphsail.global_weight = 2.0
  # Square of the local term 'inside' its mean over nodes (GraphSAIL, released) or 'outside' (as the paper prints it).
  c.graphsail.square = 'inside'
  # Clusters of users, and of items, whose means are the anchors (K).
  c.graphsail.num_clusters = 10
  # Temperature of the softmax over anchors (tau).
  c.graphsail.temperature = 1.0
  # False: KL(student || teacher), as released; True: KL(teacher || student).
  c.graphsail.teacher_first = False

  c.replay_options = config_dict.ConfigDict()
  # Rows replayed in a block, as a share of all rows before it (released example: 0.2 of the log).
  c.replay_options.ratio = 0.05
  # Only this share of the rows before the block, the newest, may be replayed; 1 is all of them.
  c.replay_options.window = 1.0
  # inverse_degree draws a row by (1 / its user's degree) ^ exponent (the paper 1, released 3).
  c.replay_options.exponent = 1.0

  c.memory_options = config_dict.ConfigDict()
  # Items from which an item's score is made, at most: those that are taken together with it most.
  c.memory_options.neighbours = 200
  # Ridge of the regressions on them (lambda of EASE).
  c.memory_options.regularisation = 300.0
  # Added to the denominator of cosines, so that those of few users count less ('knn').
  c.memory_options.shrinkage = 10.0
  # What a user took this share of all rows ago counts half as much as what they take now; 0 weighs all equally.
  # Validation rows choose among these.
  c.memory_options.half_ages = (1.0, 0.3, 0.1)
  # A user's recent taste (the mean of the graph model's vectors of what they have taken, by age as above) beside
  # their own vector; 0 is without.
  c.memory_options.taste = 0.5
  c.memory_options.taste_half_age = 0.03
  # Whether samplers rank items by graph model and memory together, as evaluation does, or by the graph model alone.
  c.memory_options.joint_ranks = True
  # While a block is trained, what the memory knew before it is added to the scores of pairs, so that the graph model
  # learns the rest: its standard deviation over that of the graph model's scores. 0 joins them after training only.
  c.memory_options.offset = 0.0

  c.evaluation = config_dict.ConfigDict()
  # Cut-offs of the metrics.
  c.evaluation.cutoffs = (5, 10, 15, 20)
  # Average precision divided by all relevant items ('relevant', the paper) or min(k, them).
  c.evaluation.map_denominator = 'relevant'
  # Ideal of NDCG: k hits ('k', the paper) or min(k, relevant) hits ('relevant').
  c.evaluation.ndcg_ideal = 'k'

  # Methods outside the package bring a section each.
  for name, section in config_rules.SECTIONS.items():
    *above, last = name.split('.')
    functools.reduce(getattr, above, c)[last] = config_dict.ConfigDict(section)
  return c


def restored(saved: Dict[str, Any]) -> config_dict.ConfigDict:
  """The configuration of a run saved by this or an older version.

  Fields that it did not know yet have their defaults, and those that are gone are left out.
  """
  def update(config, values):
    for name, value in values.items():
      if name in config and isinstance(value, dict):
        update(config[name], value)
      elif name in config:
        config[name] = value
  config = config_dict.ConfigDict(default_config().to_dict(), type_safe=False)
  update(config, saved)
  return config


def _check_together(c: config_dict.ConfigDict) -> None:
  """Raises a `UserError` for fields that are right one by one but not with each other."""
  if c.full_retrain and (c.kd != 'none' or c.replay != 'none'):
    raise UserError('--full_retrain trains on everything from fresh weights and takes no distiller '
                    'or replay: leave out --kd and --replay.')
  if c.peer != 'none' and c.base_from:
    raise UserError('--peer fits a simple model in seconds and takes no base block: leave out --base_from.')
  if c.memory_options.offset and (c.full_retrain or c.train.loss != 'bpr'):
    raise UserError('config.memory_options.offset is for blocks that go on from the one before with triplet losses: '
                    'leave out --full_retrain, and set --config.train.loss=bpr.')
  if c.train.optimizer == 'lazy_adam' and (c.model.propagation != 'sampled' or c.train.new_row_moments != 'zeros'):
    raise UserError('config.train.optimizer=lazy_adam updates the rows that a step has sampled: set '
                    '--config.model.propagation=sampled and --config.train.new_row_moments=zeros.')
  if c.memory_options.offset and c.memory == 'none' and c.peer == 'none':
    raise UserError('config.memory_options.offset adds a memory to the scores, and there is none: add --memory=ease.')
  if c.kd_strength and c.kd == 'none' and c.peer == 'none':
    raise UserError('config.kd_strength is the strength of a distiller, and there is none: add --kd=sgct.')
  # Without a sampler all negatives are uniform, however few.
  if c.sampler != 'uniform' and c.train.num_sampler_negatives > c.train.num_negatives:
    raise UserError(f'config.train.num_sampler_negatives is {c.train.num_sampler_negatives}; it must be '
                    f'at most config.train.num_negatives, which is {c.train.num_negatives}.')


def check_is_trained(config: config_dict.ConfigDict, what: str) -> None:
  """Raises a `UserError` if a configuration is that of a peer, where only trained models make sense."""
  if config.peer != 'none':
    raise UserError(f'--peer={config.peer} has no meaning for {what}, whose model is trained: leave it out.')


def resolved(config: config_dict.ConfigDict) -> config_dict.FrozenConfigDict:
  """A copy in which every open field has its value; what the run reads and saves.

  Raises:
    UserError: if a field is missing, unknown or breaks its rule in `config_rules.RULES`.
  """
  fields, plain = (config_rules.flatten(c.to_dict()) for c in (config, default_config()))
  config_rules.check_names(fields, plain)
  config_rules.check_values(fields, plain)
  c = config_dict.ConfigDict(config.to_dict())
  _check_together(c)
  for name, value in SANE_VARIANTS[c.sane_variant].items():
    if c.sane[name] is None:
      c.sane[name] = value
  c.train.base_min_epochs = min(c.train.base_min_epochs, c.train.base_epochs)
  c.train.min_epochs = min(c.train.min_epochs, c.train.epochs)
  c.train.epoch_zero = c.train.epoch_zero or not c.train.epochs
  return config_dict.FrozenConfigDict(c)
