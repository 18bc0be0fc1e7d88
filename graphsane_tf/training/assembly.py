"""Puts a block's parts together: context, trainer and validation, for whoever trains a block."""
import pathlib
from typing import Callable, Dict, Optional, Sequence

import numpy as np

from graphsane_tf import backbones, files, replay
from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.blocks.stream import Block, BlockStream
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.evaluation import metrics, protocol, ranking
from graphsane_tf.training.block import SELECTION_METRIC, BlockTrainer, Model
from graphsane_tf.training.scoring import Evidence, Scoring
from graphsane_tf.training.store import BlockStore

Validate = Callable[..., Dict[str, float]]


def stream_of(config, log: Interactions) -> BlockStream:
  """The log cut into blocks as the configuration says."""
  options = config.blocks
  return BlockStream(log, options.base_fraction, options.num_incremental, options.by, options.validation,
                     options.validation_share)


def context_of(config, log: Interactions, index: int) -> BlockContext:
  """What block `index` trains on, with the earlier rows that the configuration replays."""
  stream = stream_of(config, log)
  return context_of_block(config, log, stream.block(index), stream.block(index - 1) if index else None)


def context_of_block(config, log: Interactions, block: Block, previous: Optional[Block]) -> BlockContext:
  """The same for a block that is cut in any way; `previous` is the one before it."""
  history = log.user[:block.train.start]
  if config.full_retrain:
    replayed = np.arange(len(history))
  else:
    replayed = replay.REGISTRY[config.replay](config, (config.seed, block.index)).rows(history)
  size = backbones.REGISTRY[config.backbone].size_of(config.model)
  return contexts.cut(log, block, previous, replayed, size)


def scorer_of(config, context: BlockContext, model: Model, evidences: Sequence[Evidence] = ()) -> ranking.DotProduct:
  """How a finished model of a block ranks: whoever measures, serves or exports one asks here.

  Args:
    config: the configuration.
    context: what the block knows.
    model: its model.
    evidences: what blocks have shown about mixtures, see `scoring`.
  """
  return Scoring(config, context, evidences)(*model.backbone.representer(model.graph)())


def measured(config) -> metrics.Options:
  """What evaluations measure: Recall@20 is always among it."""
  options = config.evaluation
  return metrics.Options(sorted({*options.cutoffs, int(SELECTION_METRIC.split('@')[1])}),
                         options.map_denominator, options.ndcg_ideal)


def evaluate(config, log: Interactions, context: BlockContext, rows: slice, scorer: ranking.Scorer,
             lists: Optional[ranking.Lists] = None) -> protocol.EvaluationResult:
  """Metrics of a model on later rows of the log.

  Args:
    config: the configuration.
    log: the log.
    context: the block that the model was trained on.
    rows: the rows of the log.
    scorer: the model.
    lists: see `protocol.evaluate_block`.
  """
  return protocol.evaluate_block(scorer, context.history, log.user[rows], log.item[rows],
                                 context.popularity, measured(config), lists)


def validator(config, log: Interactions, block: Block, context: BlockContext,
              scoring: Optional[Scoring] = None) -> Validate:
  """What `BlockTrainer.train` validates with: the block's validation rows.

  Args:
    config: the configuration.
    log: the log.
    block: the block.
    context: what it trains on.
    scoring: how representations rank, the trainer's; None is by dot product.
  """

  def validate(user_vectors, item_vectors, lists=None):
    scorer = (scoring or ranking.DotProduct)(user_vectors, item_vectors)
    # A sampler's lists may be those of dot products.
    same = scoring is None or scoring.recollection is None or scoring.of_samplers is scoring
    result = evaluate(config, log, context, block.validation, scorer, lists if same else None)
    return {SELECTION_METRIC: 0., **result.metrics}

  return validate


def trainer_for(config, log: Interactions, index: int, folder, previous: Optional[Model],
                say: Callable[[str], None] = lambda line: None,
                profile: Optional[pathlib.Path] = None) -> BlockTrainer:
  """The trainer of a block.

  Args:
    config: the resolved configuration.
    log: the log.
    index: number of the block.
    folder: of the run, below which the block's checkpoints are; it is made if need be.
    previous: the model of the block before; None trains from fresh weights.
    say: takes a line for the screen.
    profile: see `BlockTrainer`.
  """
  folder = files.make_directory(folder)
  return BlockTrainer(config, context_of(config, log, index), previous, BlockStore(folder, index), say, profile)
