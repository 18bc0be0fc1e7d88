"""Cost and quality of a closed-form memory by catalogue size, each size in processes of its own.

  python -m graphsane_benchmark.memory update|refit NUM_ITEMS NUM_USERS NUM_ROWS
"""
import json
import resource
import subprocess
import sys
import time
from typing import Any, Dict, Iterator

from graphsane_benchmark import logs, processes
from graphsane_benchmark.figures import Figure
from graphsane_tf import config as config_lib
from graphsane_tf import memory
from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.stream import BlockStream
from graphsane_tf.memory import statistics
from graphsane_tf.peers import ease
from graphsane_tf.peers.base import ItemWeights
from graphsane_tf.training import assembly

# The larger a catalogue, the fewer rows an item has.
SHAPES = (logs.Shape('2k items, 80k rows', 2_000, 2_000, 80_000),
          logs.Shape('10k items, 400k rows', 10_000, 10_000, 400_000),
          logs.Shape('50k items, 1.2M rows', 30_000, 50_000, 1_200_000),
          logs.Shape('200k items, 3M rows', 80_000, 200_000, 3_000_000),
          logs.Shape('1M items, 8M rows', 250_000, 1_000_000, 8_000_000))
# Catalogues up to this are compared with EASE's dense inverse.
_DENSE = 10_000
# The block whose rows are new.
_BLOCK = 3


def cost_section(shape: logs.Shape) -> Iterator[Figure]:
  """A block's rows added to a memory and its weights made anew, against counting all rows again."""
  common = {'section': 'memory_cost', 'shape': shape.name}
  name = 'EASE memory after a block, against a refit'
  measured: Dict[str, Dict[str, Any]] = {}
  for mode in ('update', 'refit'):
    command, settings = processes.child_command(
        'graphsane_benchmark.memory', mode, *map(str, (shape.num_items, shape.num_users, shape.num_edges)))
    result = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    if result.returncode:
      lines = result.stderr.strip().splitlines() or [f'it ended with code {result.returncode}']
      yield Figure(name=name, note=f'the {mode} failed: {lines[-1]}', **common)
      return
    measured[mode] = json.loads(result.stdout.splitlines()[-1])
  update, refit = measured['update'], measured['refit']
  yield Figure(name=name, ours=update['seconds'], other=refit['seconds'], ratio=update['seconds'] / refit['seconds'],
               note=f'{shape.name}: counting takes {update["counting"]:.3g} s of the update and '
                    f'{refit["counting"]:.3g} s of the refit; {update["pairs"]:,} pairs of items are counted', **common)
  yield Figure(name=f'peak of the process, {name}', unit='GiB', ours=update['peak'], other=refit['peak'],
               ratio=update['peak'] / refit['peak'], **common)
  if 'recall' in refit:
    local, dense = refit['recall'], refit['dense recall']
    yield Figure(name='recall@20 of local EASE, against dense EASE', unit='', ours=local, other=dense,
                 ratio=local / dense if dense else None, **common)


def measure(mode: str, shape: logs.Shape) -> Dict[str, Any]:
  """Seconds, peak in GiB and pairs counted of one update or refit; a refit of few items has recalls, too."""
  log = logs.generate(shape)
  stream = BlockStream(log)
  cut = lambda index: contexts.cut(log, stream.block(index), stream.block(index - 1))
  config = config_lib.resolved(config_lib.default_config())
  kind, half_age = memory.REGISTRY['ease'](config), config.memory_options.half_ages[-1]
  context = cut(_BLOCK)
  before = statistics.empty() if mode == 'refit' else statistics.of_all(cut(_BLOCK - 1))
  started = time.perf_counter()
  counted = statistics.added(before, context)
  counting = time.perf_counter() - started
  weights = kind.weights(counted)
  found = {'seconds': time.perf_counter() - started, 'counting': counting, 'pairs': int(counted.together.nnz),
           'peak': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}
  if mode == 'refit' and shape.num_items <= _DENSE:
    dense = ease.ease_weights(counted.together.toarray(), config.memory_options.regularisation)
    for name, values in (('recall', weights), ('dense recall', dense)):
      scorer = ItemWeights(counted.profile(half_age), values)
      result = assembly.evaluate(config, log, context, stream.block(_BLOCK).test, scorer)
      found[name] = float(result.metrics['recall@20'])
  return found


if __name__ == '__main__':
  items, users, rows = map(int, sys.argv[2:])
  print(json.dumps(measure(sys.argv[1], logs.Shape('', users, items, rows))))
