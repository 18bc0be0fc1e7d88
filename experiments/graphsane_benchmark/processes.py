"""Sections of the benchmark that need a process of their own: peak memory and start-up.

  python -m graphsane_benchmark.processes NUM_USERS NUM_ITEMS NUM_EDGES STEPS
"""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

import pandas as pd

from graphsane_benchmark import logs
from graphsane_benchmark.figures import Figure, of_rounds, seconds
from graphsane_tf.data import prepare
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.training.block import FIRST_STEP

_STEPS = 200


def child_command(module: str, *arguments: str) -> Tuple[List[str], Dict[str, str]]:
  """What runs a module of this package in a process of its own: the command, and its environment."""
  place = str(pathlib.Path(__file__).resolve().parents[1])
  path = os.pathsep.join([place, *filter(None, [os.environ.get('PYTHONPATH')])])
  return [sys.executable, '-m', module, *arguments], {**os.environ, 'PYTHONPATH': path}


def _child(*arguments: str) -> subprocess.CompletedProcess:
  command, settings = child_command('graphsane_benchmark.processes', *arguments)
  return subprocess.run(command, env=settings, capture_output=True, text=True, check=False)


def memory_section(shape: logs.Shape, edges: Sequence[int],
                   steps: int = _STEPS) -> Iterator[Figure]:
  """Peak memory of whole incremental runs with growing numbers of edges between the same nodes."""
  before: Optional[tuple] = None
  for number in edges:
    result = _child(*map(str, (shape.num_users, shape.num_items, number, steps)))
    common = {'section': 'memory', 'name': f'peak memory, {number / 1e6:g}M edges',
              'shape': shape.name, 'unit': 'GiB', 'target': ('<=', 6.), 'absolute': True}
    if result.returncode:
      yield Figure(note=f'the run failed: {result.stderr.strip().splitlines()[-1]}', **common)
      continue
    peak = float(result.stdout.split()[-1])
    note = f'{steps} steps in each of the blocks'
    if before:
      growth = (peak / before[1]) / (number / before[0])
      note = f'{growth:.2f} times what growth in proportion to edges would give'
    yield Figure(ours=peak, note=note, **common)
    before = number, peak


def startup_section(log: Interactions, repeats: int) -> Iterator[Figure]:
  """From the command to the end of the first training step, against importing TensorFlow."""
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'log.csv'
    pd.DataFrame({'user': log.user_ids[log.user], 'item': log.item_ids[log.item],
                  'timestamp': log.time}).to_csv(path, index=False)
    command = [sys.executable, '-u', '-m', 'graphsane_tf', 'run', '--dataset=csv', f'--interactions={path}',
               f'--data_dir={folder}', '--kd=sgct', '--sane', '--overwrite', f'--workdir={folder}/run']

    def start():
      with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        if not any(FIRST_STEP in line for line in process.stdout):
          raise RuntimeError(process.stderr.read()[-2000:])
        process.kill()

    bare = [sys.executable, '-c', 'import tensorflow']
    prepare.load(DataSpec('csv', options={'interactions': str(path)}), folder, log=lambda line: None)
    imported = lambda: subprocess.run(bare, capture_output=True, check=True)
    imported()  # Brings the libraries into the file cache.
    rounds = [(seconds(start), seconds(imported)) for _ in range(repeats)]
  yield of_rounds(rounds, section='startup', shape=log.name,
                  name='command to first step, against import tensorflow',
                  target=('<=', 15.), absolute=True)


def _memory(num_users: int, num_items: int, num_edges: int, steps: int) -> None:
  """Runs all blocks with a few steps each and prints the peak in GiB."""
  from graphsane_benchmark import training  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs import incremental  # pylint: disable=g-import-not-at-top

  log = logs.generate(logs.Shape('netflix', num_users, num_items, num_edges))
  config = training.config_of(train__base_epochs=1, train__epochs=1, train__max_steps=steps)
  with tempfile.TemporaryDirectory() as folder:
    incremental.run(config, log, pathlib.Path(folder) / 'run')
  print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


if __name__ == '__main__':
  _memory(*map(int, sys.argv[1:]))
