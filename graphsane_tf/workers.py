"""This process among those that train together: its share of the work, and what workers tell each other.

`graphsane_tf.training.strategies` says how a train step is split; this is all the rest. Each worker runs the same
program on the same log and makes the same decisions, because everything that decides is gathered first.
"""
import contextlib
import importlib
import json
import os
import pathlib
import re
import shutil
import tempfile
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

import numpy as np

from graphsane_tf.errors import UserError

STRATEGIES = ('none', 'mirrored', 'multiworker')
# Devices that stand in for GPUs on a machine without any, to try `mirrored` out.
_LOGICAL_DEVICES = 2
_EXAMPLE = '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'


class Workers:
  """The processes that train together, of which this is one.

  Attributes:
    strategy: the `tf.distribute.Strategy`; None trains as if there was no such thing.
    kind: of `STRATEGIES`.
    count: number of processes.
    index: of this one; 0 is the chief, who alone writes what stays.
  """

  def __init__(self, strategy: Any = None, count: int = 1, index: int = 0, kind: str = 'none'):
    self.strategy = strategy
    self.kind = kind
    self.count = count
    self.index = index
    self._gatherings: Dict[np.dtype, Callable[[np.ndarray], Any]] = {}

  @property
  def is_chief(self) -> bool:
    return self.index == 0

  @property
  def name(self) -> Optional[str]:
    """'mirrored, 2 replicas on 1 worker', or None without a strategy."""
    if self.strategy is None:
      return None
    return (f'{self.kind}, {self.strategy.num_replicas_in_sync} replicas on {self.count} '
            f'worker{"s" if self.count > 1 else ""}')

  def scope(self):
    """Variables that are made inside are on every replica."""
    return self.strategy.scope() if self.strategy is not None else contextlib.nullcontext()

  def share(self, size: int) -> slice:
    """This worker's part of `size` rows; the parts of all follow each other."""
    return slice(size * self.index // self.count, size * (self.index + 1) // self.count)

  def gather(self, rows: np.ndarray) -> np.ndarray:
    """The rows [n, ...] of all workers, one worker's behind the other's; all must call it in the same order."""
    if self.count == 1:
      return rows
    flat = np.asarray(rows, np.int32 if rows.dtype == bool else rows.dtype).reshape(-1)
    return self._gathering(flat.dtype)(flat).numpy().astype(rows.dtype).reshape(-1, *rows.shape[1:])

  def _gathering(self, dtype: np.dtype) -> Callable[[np.ndarray], Any]:
    """A `tf.function` that puts the [n] values of all workers one behind the other."""
    # `strategy.gather` would trace one anew at every call.
    if dtype not in self._gatherings:
      tf = importlib.import_module('tensorflow')
      replicas = self.strategy.num_replicas_in_sync // self.count

      @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], dtype)])
      def gathered(values):
        def on_replica():
          context = tf.distribute.get_replica_context()
          # One replica speaks for its worker.
          own = tf.where(context.replica_id_in_sync_group % replicas == 0, tf.size(values), 0)
          return context.all_gather(values[:own], axis=0)

        return self.strategy.experimental_local_results(self.strategy.run(on_replica))[0]

      self._gatherings[dtype] = gathered
    return self._gatherings[dtype]

  def of_chief(self, rows: np.ndarray) -> np.ndarray:
    """What the chief has given, for all."""
    return self.gather(rows if self.is_chief else rows[:0])

  def settle(self, variables) -> None:
    """Gives all replicas the chief's values of some variables, which each worker has computed for itself.

    Machines differ in rounding, and what is the same on all at the beginning stays the same. Besides, an assignment
    to a part of a variable reaches a worker's first replica only.
    """
    if self.strategy is not None:
      for variable in variables:
        value = np.asarray(variable.numpy())
        variable.assign(self.of_chief(value.reshape(-1)).reshape(value.shape))

  def wait(self) -> None:
    """Returns when all workers have called it."""
    self.gather(np.zeros(1, np.int32))

  @contextlib.contextmanager
  def in_turn(self) -> Iterator[None]:
    """Lets the chief do what is inside before the others do, who then find its files."""
    if not self.is_chief:
      self.wait()
    yield
    if self.is_chief:
      self.wait()

  @contextlib.contextmanager
  def folder(self, path) -> Iterator[pathlib.Path]:
    """The folder to work in: `path` for the chief, a copy of it that is deleted at the end for each other worker.

    So only the chief writes in `path`, every worker has the same files before its eyes, and a cluster that is
    started again begins with the chief's.

    Args:
      path: a folder that all workers can read; it need not exist.
    """
    path = pathlib.Path(path)
    if self.count == 1:
      yield path
      return
    with contextlib.ExitStack() as stack:
      place = path
      # Nobody writes before all have looked.
      self.wait()
      if not self.is_chief:
        place = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(
            prefix=f'graphsane-worker{self.index}-', ignore_cleanup_errors=True))) / path.name
        if path.is_dir():
          shutil.copytree(path, place, symlinks=True)
      self._agree(place)
      yield place
      self.wait()

  def _agree(self, path: pathlib.Path) -> None:
    """Raises a `UserError` unless all workers see as many files as the chief."""
    number = np.array([sum(1 for _ in path.rglob('*')) if path.is_dir() else 0])
    if len(set(self.gather(number).tolist())) > 1:
      raise UserError(f'the workers do not see the same files in {path.name}: give all of them one folder on a file '
                      'system that they share.')


_current = Workers()


def current() -> Workers:
  """This process among its fellows; alone by default."""
  return _current


@contextlib.contextmanager
def alone() -> Iterator[None]:
  """What is done inside, this worker does for itself."""
  global _current  # pylint: disable=global-statement
  before, _current = _current, Workers()
  try:
    yield
  finally:
    _current = before


def in_shares(work: Callable[[np.ndarray], Tuple[np.ndarray, ...]], rows: np.ndarray) -> Tuple[np.ndarray, ...]:
  """What `work` gives for [n] rows: arrays [n, ...]. Each worker does a part of it, and all get everything."""
  fellows = current()
  if fellows.count == 1:
    return work(rows)
  with alone():
    parts = work(rows[fellows.share(len(rows))])
  return tuple(map(fellows.gather, parts))


def start(kind: str, devices: int = _LOGICAL_DEVICES) -> Workers:
  """Joins the workers; to be called before TensorFlow does anything.

  Args:
    kind: of `STRATEGIES`.
    devices: logical CPU devices of 'mirrored' on a machine without GPUs.

  Raises:
    UserError: if TF_CONFIG is missing or wrong, or TensorFlow has begun already.
  """
  global _current  # pylint: disable=global-statement
  if kind == 'none':
    return _current
  cluster = cluster_of(os.environ) if kind == 'multiworker' else None
  tf = importlib.import_module('tensorflow')
  try:
    if cluster is not None:
      count, index = cluster
      _current = Workers(tf.distribute.MultiWorkerMirroredStrategy(), count, index, kind)
    else:
      names = [device.name.replace('/physical_device:', '') for device in tf.config.list_physical_devices('GPU')]
      if not names:
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices('CPU')[0], [tf.config.LogicalDeviceConfiguration()] * devices)
        names = [f'CPU:{number}' for number in range(devices)]
      _current = Workers(tf.distribute.MirroredStrategy(names), kind=kind)
  except RuntimeError as error:
    raise UserError(f'--strategy={kind} must be chosen before TensorFlow is used ({error}).') from error
  except tf.errors.OpError as error:
    raise UserError(sentence(error)) from error
  return _current


def cluster_of(environment: Mapping[str, str]) -> Tuple[int, int]:
  """Number of workers and number of this one, from the variable TF_CONFIG.

  Raises:
    UserError: if it is missing, or says something else.
  """
  def wrong(what: str) -> UserError:
    return UserError(f'the environment variable TF_CONFIG {what}; --strategy=multiworker needs something like '
                     f'{_EXAMPLE}.')

  if not environment.get('TF_CONFIG'):
    raise wrong('is not set')
  try:
    config: Dict[str, Any] = json.loads(environment['TF_CONFIG'])
    workers, task = config['cluster']['worker'], config['task']
    kind, index = task['type'], task['index']
  except json.JSONDecodeError as error:
    raise wrong(f'is not JSON ({error.msg}, column {error.colno})') from error
  except (KeyError, TypeError) as error:
    raise wrong('lacks cluster.worker, task.type or task.index') from error
  others = sorted(set(config['cluster']) - {'worker'})
  if others or kind != 'worker':
    raise wrong(f'names a {(others or [kind])[0]}, but all tasks must be of the type worker')
  if not isinstance(workers, list) or not workers:
    raise wrong('has no list of addresses in cluster.worker')
  for address in workers:
    if not isinstance(address, str) or not re.fullmatch(r'(\[[\da-fA-F:]+\]|[\w.-]+):\d{1,5}', address):
      raise wrong(f'has an address {address!r} that is not HOST:PORT')
  if len(set(workers)) < len(workers):
    raise wrong('names an address twice')
  if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(workers):
    raise wrong(f'has task.index {index!r}, which is not the number of a worker (0 to {len(workers) - 1})')
  return len(workers), index


def sentence(error: Exception) -> str:
  """What to say about an error of TensorFlow's between workers."""
  found = re.search(r'task:(\d+)', re.sub(r'Error reported from \S+', '', str(error)))
  who = f'worker {found[1]}' if found and int(found[1]) != _current.index else 'another worker'
  return (f'{who} has ended or cannot be reached any more: start all workers again with the same command; they go on '
          'from the last finished epoch.')
