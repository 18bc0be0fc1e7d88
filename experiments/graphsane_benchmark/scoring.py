"""Sections of the benchmark about the reservoir and evaluation."""
import tempfile
from typing import Iterator

import numpy as np
import tensorflow as tf

from graphsane_benchmark import training
from graphsane_benchmark.figures import Figure, compare
from graphsane_tf.blocks.stream import BlockStream
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.evaluation import metrics, protocol, ranking
from graphsane_tf.random import host_generator
from graphsane_tf.training import assembly


@tf.function(reduce_retracing=True)
def _product(users, items):
  return tf.matmul(users, items)


@tf.function(reduce_retracing=True)
def _product_and_top(users, items, k):
  return tf.math.top_k(tf.matmul(users, items), k)


def _in_chunks(users: tf.Tensor, items: tf.Tensor, action):
  """An action of TensorFlow on as many users at a time as the real ranking takes."""
  chunk = ranking.user_chunk_size(len(items))

  def run():
    transposed = tf.transpose(items)
    for start in range(0, len(users), chunk):
      action(users[start:start + chunk], transposed)

  return run


def rebuild_section(log: Interactions, repeats: int) -> Iterator[Figure]:
  """A rebuild of the reservoirs against the bare product of its users with the items."""
  with tempfile.TemporaryDirectory() as folder:
    config = training.config_of()
    trainer = training.trainer_of(log, 3, config, folder)
    vectors = trainer.represent()
    sampler = trainer.sampler
    users, items = tf.gather(vectors[0], sampler.users), vectors[1]
    sampler.refresh(*vectors, 0)  # K-means places the centres, once a block.
    yield compare(
        lambda: sampler.refresh(*vectors, config.sane.refresh_epochs),
        _in_chunks(users, items, _product), repeats,
        section='rebuild', name='reservoir rebuild against its bare product',
        shape=log.name, target=('<=', 2.),
        note=f'ranks {sampler.first_rank} to {sampler.first_rank + sampler.size - 1} of '
             f'{len(users)} users')


def evaluation_section(log: Interactions, repeats: int) -> Iterator[Figure]:
  """Masked full ranking with all metrics against a product with top-k, and nothing else.

  Vectors are random, of the length of MGCCF's: a model's take minutes to make for the largest shape.
  """
  block, context = BlockStream(log).block(3), assembly.context_of(training.config_of(), log, 3)
  length = 3 * training.config_of().model.embedding_dim
  vectors = tuple(
      host_generator(number).standard_normal((number, length), np.float32)
      for number in (context.num_users, context.num_items))
  known = np.unique(log.user[block.test])
  users, items = tf.constant(vectors[0][known[known < len(vectors[0])]]), tf.constant(vectors[1])
  options = metrics.Options()
  depth = tf.constant(options.depth)
  yield compare(
      lambda: protocol.evaluate_block(ranking.DotProduct(*vectors), context.history, log.user[block.test],
                                      log.item[block.test], context.popularity, options),
      _in_chunks(users, items, lambda *pair: _product_and_top(*pair, depth)), repeats,
      section='evaluation', name='evaluation against product and top-k', shape=log.name,
      target=('<=', 1.5), note=f'{len(users)} users, {len(options.cutoffs)} cut-offs')
