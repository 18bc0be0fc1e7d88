"""Tables that are larger than a worker: parts of them on parameter servers, of which a step reads and writes rows.

The step is the sampled one: it looks up the rows of the nodes that it needs. Over the whole graph every step needs all
rows, so that there the servers save nothing. Updates are asynchronous: a worker's gradient is of weights that others
have moved meanwhile, and results depend on who is faster.
"""
import json
import math
import pathlib
import time
from typing import Callable, List, Mapping

import tensorflow as tf

from graphsane_tf import backbones, config as config_lib, distillation, files, negatives
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError
from graphsane_tf.graph import views
from graphsane_tf.random import Seeds, host_generator, host_seed
from graphsane_tf.training import assembly, optimizers
from graphsane_tf.training.step import TrainStep

_PROTOCOL = 'grpc'


def cluster_of(environment: Mapping[str, str]) -> tf.distribute.cluster_resolver.ClusterResolver:
  """The cluster of the variable TF_CONFIG: one chief, workers and servers ('ps').

  Raises:
    UserError: if it names something else.
  """
  try:
    config = json.loads(environment.get('TF_CONFIG') or '{}')
    cluster, task = config['cluster'], config['task']
    jobs = {name: list(cluster[name]) for name in ('chief', 'worker', 'ps')}
    known = task['type'] in jobs and 0 <= task['index'] < len(jobs[task['type']])
  except (ValueError, KeyError, TypeError):
    known, jobs = False, {}
  if not known or not all(jobs.values()):
    raise UserError('the environment variable TF_CONFIG must name a cluster of one chief, some worker and some ps, and '
                    'which of them this task is: see docs/distributed.md.')
  return tf.distribute.cluster_resolver.SimpleClusterResolver(
      tf.train.ClusterSpec(jobs), task_type=task['type'], task_id=task['index'], rpc_layer=_PROTOCOL)


def serve(cluster: tf.distribute.cluster_resolver.ClusterResolver) -> None:
  """Works for the chief until the process is stopped."""
  tf.distribute.Server(cluster.cluster_spec(), job_name=cluster.task_type, task_index=cluster.task_id,
                       protocol=_PROTOCOL, start=True).join()


def train(config, log: Interactions, folder: pathlib.Path, cluster: tf.distribute.cluster_resolver.ClusterResolver,
          min_shard_bytes: int, say: Callable[[str], None]) -> None:
  """Trains the base block and writes a checkpoint of its backbone, which reads like one of whole tables.

  Args:
    config: the configuration; without distiller, sampler and memory, which need whole tables.
    log: the log.
    folder: of the checkpoint.
    cluster: see `cluster_of`; this is its chief.
    min_shard_bytes: tables are cut into parts of at least this size, at most one a server.
    say: takes a line for the screen.
  """
  config = config_lib.resolved(config)
  context, options = assembly.context_of(config, log, 0), config.train
  kind = backbones.REGISTRY[config.backbone]
  graph = views.Graph(context.history, config.model.num_knn if kind.uses_knn else 0)
  shards = cluster.cluster_spec().num_tasks('ps')
  strategy = tf.distribute.ParameterServerStrategy(
      cluster, tf.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes, shards))
  coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
  with strategy.scope():
    backbone = kind(context.num_users, context.num_items, config.model, (config.seed, 0))
    variables = backbone.trainable_variables
    optimizer = optimizers.adam(options.base_learning_rate, variables)
  say(f'{len(variables)} parts of variables on {len({variable.device for variable in variables})} servers')
  seed = (config.seed, 0)
  step = TrainStep(config, context, graph, backbone, negatives.REGISTRY['uniform'](config, context, seed),
                   distillation.REGISTRY['none'](config, context, None, seed), optimizer, 'sampled')
  size = options.batch_size
  sparse: List[bool] = []

  @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.int32)] * 2 + [tf.TensorSpec([2], tf.int32)])
  def work(users, items, counter):
    def on_worker():
      seeds = Seeds(counter)
      with tf.GradientTape() as tape:
        total = sum(step.losses(graph.sampled(seeds), users, items, seeds).values())
      gradients = tape.gradient(total, variables)
      # Those of tables stay sparse: their rows go to the servers, and no others.
      sparse[:] = [isinstance(gradient, tf.IndexedSlices) for gradient in gradients]
      optimizer.apply_gradients(zip(gradients, variables))
      return total

    return strategy.run(on_worker)

  for epoch in range(options.base_epochs):
    started = time.perf_counter()
    order = host_generator(*seed, epoch, name='order').permutation(len(context.users))
    count = min(math.ceil(len(order) / size), options.max_steps or len(order))
    losses = []
    for index in range(count):
      rows = order[index * size:(index + 1) * size]
      losses.append(coordinator.schedule(work, args=(
          tf.constant(context.users[rows], tf.int32), tf.constant(context.items[rows], tf.int32),
          tf.constant(host_seed(*seed, epoch, index, name='steps')))))
    coordinator.join()
    mean = sum(float(loss.fetch()) for loss in losses) / count
    seconds = time.perf_counter() - started
    say(f'epoch {epoch + 1}/{options.base_epochs}  loss {mean:.4f}  {seconds:.1f} s  '
        f'{min(count * size, len(order)) / seconds:,.0f} pairs/s')
  say(f'{sum(sparse)} of {len(sparse)} gradients are sparse rows')
  path = files.make_directory(folder) / 'backbone'
  tf.train.Checkpoint(backbone=backbone).write(str(path))
  say(f'weights   {path}')
