"""Puts a block's parts together: context, trainer and validation, for whoever trains a block."""
import pathlib
from typing import Callable, Dict, Optional

import numpy as np

from graphsane_tf import backbones, replay
from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.blocks.stream import Block, BlockStream
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.evaluation import metrics, protocol, ranking
from graphsane_tf.training.block import SELECTION_METRIC, BlockTrainer, Model
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
  block = stream.block(index)
  history = log.user[:block.train.start]
  if config.full_retrain:
    replayed = np.arange(len(history))
  else:
    replayed = replay.REGISTRY[config.replay](config, (config.seed, index)).rows(history)
  size = backbones.REGISTRY[config.backbone].size_of(config.model)
  return contexts.cut(log, block, stream.block(index - 1) if index else None, replayed, size)


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


def validator(config, log: Interactions, block: Block, context: BlockContext) -> Validate:
  """What `BlockTrainer.train` validates with: the block's validation rows."""

  def validate(user_vectors, item_vectors, lists=None):
    scorer = ranking.DotProduct(user_vectors, item_vectors)
    result = evaluate(config, log, context, block.validation, scorer, lists)
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
    folder: of the run, below which the block's checkpoints are.
    previous: the model of the block before; None trains from fresh weights.
    say: takes a line for the screen.
    profile: see `BlockTrainer`.
  """
  return BlockTrainer(config, context_of(config, log, index), previous, BlockStore(folder, index), say, profile)
