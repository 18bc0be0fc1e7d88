"""What a block will cost on one worker and on many, from unit costs that are measured here in a few seconds."""
import dataclasses
import pathlib
import tempfile
import time
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import scipy.optimize
import tensorflow as tf

from graphsane_tf import backbones
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr
from graphsane_tf.random import host_generator
from graphsane_tf.runs import capacity
from graphsane_tf.training import assembly
from graphsane_tf.training.propagation import cheaper, rows_read

WORKERS = (1, 2, 4, 8, 16, 32, 64)
# Logs on which steps are measured: users, items, rows.
_MEASURED = ((1_500, 1_200, 30_000), (20_000, 16_000, 80_000), (4_000, 3_000, 240_000))
_STEPS, _ROUNDS = 1, 12
_RANKED = (256, 20_000, 64)
# Bytes of a weight: itself, Adam's two moments, and a gradient with the parts that it is summed from.
_WEIGHT_BYTES = 20
# Of an edge: the log's row, neighbour tables in both directions, positives and the keys of draws.
_EDGE_BYTES = 56
_BASE_BYTES = 1 << 30
# More workers are worth it from this gain on.
_LEAST_GAIN = 1.3


@dataclasses.dataclass(frozen=True)
class Shape:
  """A block: its nodes, the edges of its graph, and the pairs that it trains on."""
  users: int
  items: int
  edges: int
  pairs: int


@dataclasses.dataclass(frozen=True)
class Costs:
  """Seconds: of a step's overhead, a number read by a step, a weight updated, and a product of a ranking."""
  step: float
  number: float
  weight: float
  product: float


def amounts(config, shape: Shape) -> Tuple[str, float, float]:
  """Propagation, numbers read by a step, and weights."""
  nodes = shape.users + shape.items
  near = config.model.num_knn * nodes if backbones.REGISTRY[config.backbone].uses_knn else 0
  rows = rows_read(config, nodes, shape.edges, near)
  kind = config.model.propagation if config.model.propagation != 'auto' else cheaper(rows)
  return kind, rows[kind] * config.model.embedding_dim, capacity.num_weights(config, shape.users, shape.items)


def random_log(users: int, items: int, rows: int) -> Interactions:
  """Different pairs in arbitrary order; every user and every item occurs."""
  rng = host_generator(users, items, rows, name='plan')
  first = np.arange(max(users, items), dtype=np.int64)
  keys = np.unique(np.concatenate([first % users * items + first % items,
                                   rng.integers(users, size=rows) * items + rng.integers(items, size=rows)]))
  rng.shuffle(keys)
  user_ids, item_ids = (np.arange(count).astype(str).astype(object) for count in (users, items))
  return Interactions((keys // items).astype(np.int32), (keys % items).astype(np.int32), np.arange(len(keys)), user_ids,
                      item_ids)


def step_seconds(config, log: Interactions) -> Tuple[Shape, float]:
  """The shape of the log's base block, and the fastest of some rounds of its train step."""
  with tempfile.TemporaryDirectory() as folder:
    trainer = assembly.trainer_for(config, log, 0, pathlib.Path(folder), None)
    context, size = trainer.context, config.train.batch_size
    order = host_generator(0, name='plan').integers(len(context.users), size=_STEPS * size).astype(np.int32)
    arguments = tf.constant(order), tf.constant([1, 2]), tf.constant(0), tf.constant(_STEPS)
    trainer.run_steps(*arguments)
    times = []
    for _ in range(_ROUNDS):
      started = time.perf_counter()
      trainer.run_steps(*arguments).numpy()
      times.append((time.perf_counter() - started) / _STEPS)
    shape = Shape(context.num_users, context.num_items, len(trainer.model.graph.edges.indices), len(context.users))
    return shape, min(times)


def fitted(rows: Sequence[Tuple[float, float]], seconds: Sequence[float]) -> List[float]:
  """Costs of a step, a number and a weight, none below 0, whose sums come nearest to the seconds in proportion.

  Args:
    rows: numbers read and weights, of each measurement.
    seconds: what each took.
  """
  table = np.array([(1., *row) for row in rows]) / np.array(seconds)[:, None]
  scale = table.max(axis=0)
  return (scipy.optimize.nnls(table / scale, np.ones(len(table)))[0] / scale).tolist()


def measure(config) -> Costs:
  """Unit costs of this machine; `config.model.propagation` is 'whole' or 'sampled'."""
  found = [step_seconds(config, random_log(*size)) for size in _MEASURED]
  step, number, weight = fitted([amounts(config, shape)[1:] for shape, _ in found], [seconds for _, seconds in found])
  users, items, width = _RANKED
  rng = host_generator(0, name='plan')
  scorer = ranking.DotProduct(*(rng.standard_normal((count, width), np.float32) for count in (users, items)))
  none = csr.Csr(np.zeros(users + 1, np.int64), np.zeros(0, np.int32), items)
  times = []
  for _ in range(_ROUNDS):
    started = time.perf_counter()
    ranking.top_k(scorer, np.arange(users), none, 20)
    times.append(time.perf_counter() - started)
  return Costs(step, number, weight, min(times) / (users * items * width))


def forecast(config, shape: Shape, costs: Costs, network: float) -> List[Dict[str, Any]]:
  """A line for each number of workers and each strategy that could be used with it.

  Args:
    config: the resolved configuration.
    shape: the block.
    costs: from `measure`.
    network: bytes a second between workers.

  Returns:
    Dictionaries of 'strategy', 'workers', 'memory' (bytes a worker), 'step', 'block' (seconds) and 'network' (bytes
    that a worker sends and receives in a step).
  """
  kind, numbers, weights = amounts(config, shape)
  train, width = config.train, backbones.REGISTRY[config.backbone].size_of(config.model)
  asked = min(shape.users + shape.items, train.batch_size * (train.num_negatives + 2))
  steps = -(-shape.pairs // train.batch_size)
  ranked = min(shape.users, shape.pairs) * shape.items * width * costs.product
  kept = _BASE_BYTES + _EDGE_BYTES * shape.edges
  lines = []
  for count in WORKERS:
    plans = [('none', 1., 0.)] if count == 1 else [
        # Gradients of all tables in a ring, and representations of the nodes asked for.
        ('multiworker', 1., 2 * (count - 1) / count * 4 * (weights + (kind == 'sampled') * asked * width))]
    if kind == 'sampled':
      # Rows there and gradients back, of what a worker has sampled; tables are shared out over as many servers.
      plans.append(('parameter servers', 1. / count, 2 * 4 * numbers / count))
    for strategy, table, sent in plans:
      shared = count if kind == 'sampled' else 1
      step = costs.step + costs.number * numbers / shared + costs.weight * weights * table + sent / network
      activations = 12 * numbers / shared
      lines.append({'strategy': strategy, 'workers': count, 'step': step, 'network': sent,
                    'memory': kept + _WEIGHT_BYTES * weights * table + activations,
                    'block': train.epochs * (steps * step + ranked / count)})
  return lines


def advice(lines: Sequence[Dict[str, Any]], memory: float) -> Tuple[Dict[str, Any], str]:
  """The line to take, and why, given the bytes that a worker has."""
  fitting = [line for line in lines if line['memory'] <= memory]
  if not fitting:
    return min(lines, key=lambda line: line['memory']), 'nothing fits the memory of a worker; this needs least of it'
  alone = [line for line in fitting if line['strategy'] == 'none']
  tables = [line for line in fitting if line['strategy'] != 'parameter servers']
  if not tables:
    return min(fitting, key=lambda line: line['workers']), 'only tables on parameter servers fit the memory of a worker'
  best = min(tables, key=lambda line: line['block'])
  if alone and alone[0]['block'] <= _LEAST_GAIN * best['block']:
    return alone[0], f'more workers would gain less than {_LEAST_GAIN:g} times'
  # The fewest workers that come near the best.
  near = [line for line in tables if line['block'] <= 1.1 * best['block']]
  return min(near, key=lambda line: line['workers']), 'the fewest workers within a tenth of the fastest'
