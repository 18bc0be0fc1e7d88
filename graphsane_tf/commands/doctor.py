"""Says what this machine has, and what would not work."""
import importlib.util
import os
import shutil

from absl import flags

from graphsane_tf import cli

HELP = 'Says what this machine has: versions, devices, kernels, memory, disk, and what would not work.'
EXAMPLES = ('graphsane doctor',)
# Libraries that some commands need: name, what for, and how to get it.
_EXTRAS = (('optuna', 'graphsane tune', 'tune'), ('implicit', '--peer=ials', 'peers'),
           ('faiss', '--config.train.ranking=approximate, graphsane serve --ranking=approximate', 'ann'),
           ('fastapi', 'graphsane serve', 'serve'), ('uvicorn', 'graphsane serve', 'serve'))
_LEAST_MEMORY_GIB = 4
_LEAST_DISK_GIB = 2


def define():
  flags.DEFINE_string('workdir', 'runs', 'Folder whose disk is looked at.')
  return {'flags': ['workdir']}


def main():
  from graphsane_tf.reporting import machine  # pylint: disable=g-import-not-at-top
  problems = []
  for name, value in machine.describe().items():
    print(f'{name:24} {value}')
  memory = _available_memory()
  if memory is not None:
    print(f'{"memory free":24} {memory:.1f} GiB')
    if memory < _LEAST_MEMORY_GIB:
      problems.append(f'{memory:.1f} GiB of memory are free: logs of millions of rows need more.')
  place = os.path.abspath(flags.FLAGS.workdir)
  while not os.path.exists(place):
    place = os.path.dirname(place)
  free = shutil.disk_usage(place).free / 2**30
  print(f'{"disk free":24} {free:.1f} GiB in {place}')
  if free < _LEAST_DISK_GIB:
    problems.append(f'{free:.1f} GiB are free in {place}: checkpoints may not fit; choose another --workdir.')
  if not os.access(place, os.W_OK):
    problems.append(f'no permission to write in {place}: choose another --workdir.')
  problems += _tensorflow()
  for name, what, extra in _EXTRAS:
    if importlib.util.find_spec(name) is None:
      problems.append(f"{what} needs {name}: pip install 'graphsane_tf[{extra}]'.")
  print('\nwhat would not work, or not well:' if problems else '\neverything is there.')
  for problem in problems:
    print(f'- {problem}')


def _available_memory():
  """GiB that can be had without swapping; None where the system does not tell."""
  try:
    with open('/proc/meminfo', encoding='ascii') as stream:
      lines = dict(line.split(':', 1) for line in stream)
    return int(lines['MemAvailable'].split()[0]) / 2**20
  except (OSError, KeyError, ValueError):
    return None


def _tensorflow():
  """Prints devices and kernels; returns what is wrong with them."""
  problems = []
  cli.load_tensorflow()
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  import threadpoolctl  # pylint: disable=g-import-not-at-top
  devices = [device.name for device in tf.config.list_logical_devices()]
  print(f'{"devices":24} {", ".join(devices)}')
  if not any('GPU' in device for device in devices):
    problems.append('there is no GPU: everything runs on the CPU. The GPU path is written but was never run on one.')
  if not tf.keras.Model.__module__.startswith('tf_keras'):
    problems.append('TensorFlow has chosen Keras 3, and TensorFlow Recommenders needs Keras 2: pip install tf-keras.')
  for library in threadpoolctl.threadpool_info():
    kernels = library.get('architecture', '')
    print(f'{library["internal_api"]:24} {library.get("version")} {kernels} {library["num_threads"]} threads'.rstrip())
  return problems
