"""What a block will cost on one worker and on many, from unit costs that are measured here in a few seconds."""
import dataclasses
import pathlib
import tempfile
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

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
from graphsane_tf.training.propagation import Work, cheaper, work

WORKERS = (1, 2, 4, 8, 16, 32, 64)
# Logs on which steps are measured: users, items, rows. Tables fit a processor's caches or not, degrees are low or high.
_MEASURED = ((1_500, 1_200, 30_000), (4_000, 3_000, 240_000), (20_000, 16_000, 80_000), (40_000, 8_000, 150_000),
             (3_000, 30_000, 100_000), (60_000, 40_000, 600_000))
# Steps of a call, as of a stretch of an epoch, and calls that are timed.
_STEPS, _ROUNDS = 4, 4
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
  """Seconds of a processor, and how many of them work at once.

  Attributes:
    units: of each kind of `Work`.
    product: of a product of a ranking.
    cores: processor seconds in a second of the clock. Where others use the machine, too, this is what is left of it.
  """
  units: Work
  product: float
  cores: float = 1.


def amounts(config, shape: Shape) -> Tuple[str, Work]:
  """Propagation, and what a step does."""
  near = config.model.num_knn * (shape.users + shape.items) if backbones.REGISTRY[config.backbone].uses_knn else 0
  found = work(config, shape.users, shape.items, shape.edges, near)
  kind = config.model.propagation if config.model.propagation != 'auto' else cheaper(found)
  return kind, found[kind]


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


def _timed(action: Callable[[], Any]) -> Tuple[float, float]:
  """Least seconds of some calls, of the processor, which other work on the machine hardly changes, and of the clock."""
  times = []
  for _ in range(_ROUNDS):
    clock, processor = time.perf_counter(), time.process_time()
    action()
    times.append((time.process_time() - processor, time.perf_counter() - clock))
  processor, clock = np.min(times, axis=0)
  return float(processor), float(clock)


def step_seconds(config, log: Interactions) -> Tuple[Shape, float, float]:
  """The shape of the log's base block, and seconds of its train step: of the processor, and of the clock."""
  with tempfile.TemporaryDirectory() as folder:
    trainer = assembly.trainer_for(config, log, 0, pathlib.Path(folder), None)
    context, size = trainer.context, config.train.batch_size
    order = host_generator(0, name='plan').integers(len(context.users), size=_STEPS * size).astype(np.int32)
    arguments = tf.constant(order), tf.constant([1, 2]), tf.constant(0), tf.constant(_STEPS)
    trainer.run_steps(*arguments)
    processor, clock = _timed(lambda: trainer.run_steps(*arguments).numpy())
    shape = Shape(context.num_users, context.num_items, len(trainer.model.graph.edges.indices), len(context.users))
    return shape, processor / _STEPS, clock / _STEPS


def fitted(works: Sequence[Work], seconds: Sequence[float]) -> Work:
  """Costs of one of each kind of work, none below 0, whose sums come nearest to the seconds in proportion.

  Args:
    works: what was done in each measurement.
    seconds: what each took.
  """
  table = np.array([one.amounts for one in works]) / np.array(seconds)[:, None]
  scale = table.max(axis=0)
  # What is never done has no cost that could be known.
  scale[scale == 0.] = 1.
  return Work(*(scipy.optimize.nnls(table / scale, np.ones(len(table)))[0] / scale).tolist())


def measure(config) -> Costs:
  """Unit costs of this machine; `config.model.propagation` is 'whole' or 'sampled'."""
  found = [step_seconds(config, random_log(*size)) for size in _MEASURED]
  # Products of rows with matrices grow with the rows made, or with the weights: one backbone cannot tell them apart.
  works = [dataclasses.replace(amounts(config, shape)[1], multiplied=0.) for shape, _, _ in found]
  units = fitted(works, [processor for _, processor, _ in found])
  users, items, width = _RANKED
  rng = host_generator(0, name='plan')
  scorer = ranking.DotProduct(*(rng.standard_normal((count, width), np.float32) for count in (users, items)))
  none = csr.Csr(np.zeros(users + 1, np.int64), np.zeros(0, np.int32), items)
  ranked, _ = _timed(lambda: ranking.top_k(scorer, np.arange(users), none, 20))
  cores = float(np.median([processor / clock for _, processor, clock in found]))
  return Costs(units, ranked / (users * items * width), cores)


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
  kind, done = amounts(config, shape)
  units, numbers, weights = costs.units, done.read, capacity.num_weights(config, shape.users, shape.items)
  updates = units.weights * done.weights
  rows = done.cost(units) - units.step - updates
  train, width = config.train, backbones.REGISTRY[config.backbone].size_of(config.model)
  asked = min(shape.users + shape.items, train.batch_size * (train.num_negatives + 2))
  steps = -(-shape.pairs // train.batch_size)
  ranked = min(shape.users, shape.pairs) * shape.items * width * costs.product / costs.cores
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
      step = (units.step + rows / shared + updates * table) / costs.cores + sent / network
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
