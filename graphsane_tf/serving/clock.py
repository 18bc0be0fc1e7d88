"""Counts and times of requests."""
import threading
from typing import Any, Dict, List, Mapping, Tuple


class Clock:
  """Counts and times of requests, in Prometheus' text format."""

  _BOUNDS = (.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1., 2.5, 5., 10.)

  def __init__(self):
    self._lock = threading.Lock()
    self._requests: Dict[Tuple[str, int], int] = {}
    self._buckets: Dict[str, List[int]] = {}
    self._sums: Dict[str, float] = {}

  def add(self, path: str, code: int, seconds: float) -> None:
    """Counts a request; `path` is the pattern of its route, so that there are few."""
    with self._lock:
      self._requests[path, code] = self._requests.get((path, code), 0) + 1
      buckets = self._buckets.setdefault(path, [0] * (len(self._BOUNDS) + 1))
      for place, bound in enumerate((*self._BOUNDS, float('inf'))):
        buckets[place] += seconds <= bound
      self._sums[path] = self._sums.get(path, 0.) + seconds

  def text(self, gauges: Mapping[str, Any]) -> str:
    """All of it, with further figures: name to (kind, help, value)."""
    lines = []
    for name, (kind, said, value) in gauges.items():
      lines += [f'# HELP graphsane_{name} {said}', f'# TYPE graphsane_{name} {kind}', f'graphsane_{name} {value}']
    with self._lock:
      lines += ['# HELP graphsane_requests_total Requests by route and code.',
                '# TYPE graphsane_requests_total counter']
      lines += [f'graphsane_requests_total{{path="{path}",code="{code}"}} {count}'
                for (path, code), count in sorted(self._requests.items())]
      name = 'graphsane_request_seconds'
      lines += [f'# HELP {name} Time of a request.', f'# TYPE {name} histogram']
      for path, buckets in sorted(self._buckets.items()):
        lines += [f'{name}_bucket{{path="{path}",le="{bound}"}} {count}'
                  for bound, count in zip((*self._BOUNDS, '+Inf'), buckets)]
        lines += [f'{name}_sum{{path="{path}"}} {self._sums[path]:.6f}', f'{name}_count{{path="{path}"}} {buckets[-1]}']
    return '\n'.join(lines) + '\n'
