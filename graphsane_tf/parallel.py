"""Work in threads, one on each core."""
import functools
import os
from concurrent import futures
from typing import Any, Callable, Iterable, List, Optional

import threadpoolctl


def cores() -> int:
  """Cores that this process may use."""
  # Not every system tells.
  return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


def side_by_side(work: Callable[[Any], Any], tasks: Iterable[Any],
                 threads: Optional[int] = None) -> List[Any]:
  """[work(task) for task in tasks] in so many threads, in which NumPy's products use one core each.

  Args:
    work: what is done.
    tasks: its arguments.
    threads: how many; None is one a core.
  """
  with (_libraries().limit(limits=1, user_api='blas'),
        futures.ThreadPoolExecutor(threads or cores()) as pool):
    return list(pool.map(work, tasks))


@functools.lru_cache(None)
def _libraries() -> threadpoolctl.ThreadpoolController:
  """The libraries that have threads of their own; looking for them takes a while."""
  return threadpoolctl.ThreadpoolController()
