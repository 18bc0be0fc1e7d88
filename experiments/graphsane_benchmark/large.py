"""Training on a graph of many edges between many nodes: LightGCN, sampled neighbours from mapped tables, lazy Adam.

  python -m graphsane_benchmark.large NUM_USERS NUM_ITEMS NUM_EDGES NUM_PAIRS

prints seconds of epochs with a quarter of the pairs, half of them and all, and the peak of memory.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Iterator

import numpy as np

from graphsane_benchmark import processes, training
from graphsane_benchmark.figures import Figure
from graphsane_benchmark.preparation import peak
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.random import host_generator
from graphsane_tf.training.block import BlockTrainer, fresh_state
from graphsane_tf.training.store import BlockStore

SHAPE = (1_000_000, 500_000, 100_000_000, 1_000_000)
# Epochs of a share of the pairs, one in so many.
PARTS = {'quarter': 4, 'half': 2, 'all': 1}
_PIECE = 1 << 24


def _edges(num_users: int, num_items: int, num_edges: int):
  """Different pairs in arbitrary order, at most `num_edges`, with skewed popularity."""
  keys = np.empty(num_edges, np.int64)
  for start in range(0, num_edges, _PIECE):
    rng = host_generator(num_edges, start)
    count = min(_PIECE, num_edges - start)
    keys[start:start + count] = rng.integers(num_users, size=count) * num_items + (
        rng.random(count) ** 2 * num_items).astype(np.int64)
  keys.sort()
  keys = keys[np.append(True, keys[1:] > keys[:-1])]
  host_generator(num_edges, name='order').shuffle(keys)
  return (keys // num_items).astype(np.int32), (keys % num_items).astype(np.int32)


def _config(**changes):
  return training.config_of(
      kd='none', sampler='uniform', backbone='lightgcn', train__optimizer='lazy_adam', model__propagation='sampled',
      model__embedding_dim=64, model__num_layers=2, model__fanout=(5, 3), train__batch_size=8192,
      train__num_negatives=2, **changes)


def measure(num_users: int, num_items: int, num_edges: int, num_pairs: int) -> Dict[str, Any]:
  """Seconds of epochs, and the peak of memory in GiB, of a block whose pairs are the last edges."""
  users, items = _edges(num_users, num_items, num_edges)
  config = _config()
  found: Dict[str, Any] = {'edges': len(users), 'peak before': peak()}
  with tempfile.TemporaryDirectory() as folder:
    context = BlockContext(1, num_users, num_items, num_users, num_items, users, items,
                           slice(len(users) - num_pairs, len(users)), slice(0, 0), np.zeros(0, np.int64), None, 0)
    started, processor = time.perf_counter(), time.process_time()
    trainer = BlockTrainer(config, context, None, BlockStore(pathlib.Path(folder), 1), lambda line: None)
    found.update({'built': time.perf_counter() - started, 'built: processor': time.process_time() - processor})
    training.stepper(trainer.run_steps, num_pairs, config.train.batch_size, 2)()
    for name, count in PARTS.items():
      steps = math.ceil(num_pairs / count / config.train.batch_size)
      trainer._config = _config(train__max_steps=steps)  # pylint: disable=protected-access
      started, processor = time.perf_counter(), time.process_time()
      losses = trainer._steps(0, fresh_state())  # pylint: disable=protected-access
      found[name] = time.perf_counter() - started
      found[f'{name}: processor'] = time.process_time() - processor
      found[f'{name}: loss'] = losses['loss']
      found['peak'] = peak()
      print(json.dumps(found), file=sys.stderr, flush=True)
  return found


def large_section(*shape: int) -> Iterator[Figure]:
  """Pairs a second and peak memory of the block, in a process of its own."""
  shape = shape or SHAPE
  common = {'section': 'large', 'shape': '{:,} users, {:,} items, {:,} edges'.format(*shape[:3])}
  command, settings = processes.child_command('graphsane_benchmark.large', *map(str, shape))
  result = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
  if result.returncode:
    yield Figure(name='block on a large graph', note=f'failed: {result.stderr.strip().splitlines()[-1]}', **common)
    return
  found = json.loads(result.stdout.splitlines()[-1])
  for name, count in PARTS.items():
    yield Figure(name=f'epoch of {shape[3] // count:,} pairs', ours=found[f'{name}: processor'],
                 other=found['quarter: processor'], ratio=found[f'{name}: processor'] / found['quarter: processor'],
                 note=f'processor seconds, against a quarter of the pairs; {found[name]:.3g} s of the clock; LightGCN '
                      'of 2 layers, d = 64, 5 and 3 neighbours, 2 negatives, batch 8192', **common)
  yield Figure(name='peak memory of it', unit='GiB', ours=found['peak'], target=('<=', 24.), absolute=True, **common)


if __name__ == '__main__':
  print(json.dumps(measure(*map(int, sys.argv[1:]))))
