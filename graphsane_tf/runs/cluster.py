"""Cells of a grid on a Ray cluster whose nodes see the same folders."""
import importlib.util
import logging
import os
import threading
from typing import Any, Callable, List, Set, Tuple

from graphsane_tf.errors import UserError
from graphsane_tf.runs import grid


def _run_there(cell: grid.Cell, command: List[str], place: str) -> Tuple[str, float]:
  """Runs a cell on a node, with the lock and the log file that it has everywhere."""
  os.chdir(place)
  # If the task is cancelled, an interrupt ends the process.
  return grid.Processes().run_command(cell, command, print)


class Cluster:
  """`grid.Places` of a Ray cluster: a cell takes one of its cores."""

  def __init__(self, address: str):
    """Connects.

    Args:
      address: of the head node, 'auto', or 'local' for this machine alone.

    Raises:
      UserError: if Ray is missing, or nobody answers there.
    """
    if importlib.util.find_spec('ray') is None:
      raise UserError("--ray needs Ray: pip install 'graphsane_tf[ray]', or leave it out.")
    os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
    import ray  # pylint: disable=import-outside-toplevel
    self._ray: Any = ray
    shared = {name: os.environ[name] for name in ('PYTHONPATH',) if name in os.environ}
    # A cluster that is there has its own dashboard, or none.
    more: Any = {'include_dashboard': False} if address == 'local' else {}
    try:
      ray.init(address, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True,
               runtime_env={'env_vars': shared}, **more)
    except Exception as error:  # pylint: disable=broad-except
      # Ray raises bare exceptions where a node does not start in time.
      reason = (str(error).splitlines() or [repr(error)])[0]
      raise UserError(f'--ray={address}: no Ray cluster answers there ({reason}); start one with ray start --head, or '
                      'leave --ray out.') from error
    self.count = max(1, int(ray.cluster_resources().get('CPU', 1)))
    # A cell that a node dies under goes on elsewhere, from its last epoch.
    self._task = ray.remote(num_cpus=1, max_retries=2)(_run_there)
    self._lock = threading.Lock()
    self._running: Set[Any] = set()

  def run(self, cell: grid.Cell, log: Callable[[str], None]) -> Tuple[str, float]:
    del log
    task = self._task.remote(cell, cell.command, os.getcwd())
    with self._lock:
      self._running.add(task)
    try:
      return self._ray.get(task)
    except self._ray.exceptions.RayError as error:
      return f'Ray could not run it ({(str(error).splitlines() or [repr(error)])[0]})', 0.
    finally:
      with self._lock:
        self._running.discard(task)

  def stop(self) -> None:
    with self._lock:
      for task in self._running:
        self._ray.cancel(task, force=False)
