"""Figures of a benchmark: two things timed in turn, and the ratio of their times."""
import contextlib
import dataclasses
import resource
import statistics
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

# Shortest round, in seconds: the speed of a shared machine changes from one second to the next.
ROUND_SECONDS = 1.5
COLUMNS = ('figure', 'shape', 'ours', 'other', 'ratio', 'spread', 'target', 'met')


@dataclasses.dataclass(frozen=True)
class Figure:
  """One line of the table.

  Attributes:
    section: the section of the benchmark that measured it.
    name: what is compared with what.
    shape: the data.
    unit: of `ours` and `other`, 's' or 'GiB'.
    ours, other: medians; None where there is nothing to compare with.
    ratio: median of the rounds' ratios; None likewise.
    spread: smallest and largest ratio of the rounds.
    target: ('>=' or '<=', value) for `ratio`, or for `ours` if `absolute`; None for information.
    absolute: whether the target is for `ours` itself.
    note: why the figure is missing, or how it was made.
  """
  section: str
  name: str
  shape: str
  unit: str = 's'
  ours: Optional[float] = None
  other: Optional[float] = None
  ratio: Optional[float] = None
  spread: Optional[Tuple[float, float]] = None
  target: Optional[Tuple[str, float]] = None
  absolute: bool = False
  note: str = ''

  @property
  def met(self) -> Optional[bool]:
    """Whether the target is met; None where there is no target or no figure."""
    value = self.ours if self.absolute else self.ratio
    if self.target is None or value is None:
      return None
    return value >= self.target[1] if self.target[0] == '>=' else value <= self.target[1]

  def to_dict(self) -> Dict[str, Any]:
    return {**dataclasses.asdict(self), 'met': self.met}


def processor() -> float:
  """Seconds of all cores together that this process has used, and those of its children that have ended."""
  return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (
      resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


@contextlib.contextmanager
def processor_time() -> Iterator[None]:
  """While it is open, `seconds` are the processor's: on a busy machine the clock tells more about others."""
  global _now
  before, _now = _now, processor
  try:
    yield
  finally:
    _now = before


def _now() -> float:
  return time.perf_counter()


def seconds(action: Callable[[], Any], rest: float = 0.) -> float:
  """Time of one call, after a rest of some seconds."""
  time.sleep(rest)
  started = _now()
  action()
  return _now() - started


def compare(ours: Callable[[], Any], other: Callable[[], Any], repeats: int, *,
            faster: bool = False, calls: Tuple[int, int] = (1, 1), turns: int = 1,
            warm: bool = True, rest: float = 0., **figure) -> Figure:
  """Times two actions in turn.

  Short actions take turns several times in a round, and the sums of their times are compared.

  Args:
    ours: an action of this package.
    other: what it is compared with.
    repeats: rounds.
    faster: the ratio is other / ours instead of ours / other.
    calls: pieces of work that one call of `ours`, and of `other`, does; times are of one piece.
    turns: a round has so many turns, or a multiple of that.
    warm: whether both are called once before, so that tracing is not timed.
    rest: seconds before each: threads of another library wait for more work, and take a core while
      they do.
    **figure: fields of the `Figure`.
  """
  if warm:
    ours()
    other()

  def one_round():
    started, times = time.perf_counter(), []
    while not times or len(times) % turns or time.perf_counter() - started < ROUND_SECONDS:
      times.append((seconds(ours, rest), seconds(other, rest)))
    return tuple(sum(one) / len(times) / count for one, count in zip(zip(*times), calls))

  return of_rounds([one_round() for _ in range(repeats)], faster=faster, **figure)


def of_rounds(rounds: Sequence[Tuple[float, float]], *, faster: bool = False, **figure) -> Figure:
  """The figure of (ours, other) measured in several rounds."""
  ratios = [b / a if faster else a / b for a, b in rounds]
  return Figure(
      ours=statistics.median(a for a, _ in rounds), other=statistics.median(b for _, b in rounds),
      ratio=statistics.median(ratios), spread=(min(ratios), max(ratios)), **figure)


def _amount(value: Optional[float], unit: str) -> str:
  if value is None:
    return '-'
  if unit == 's' and value < 1:
    return f'{1e3 * value:.3g} ms'
  return f'{value:.3g} {unit}'


def row(figure: Figure) -> List[str]:
  """A figure as cells, in the order of COLUMNS."""
  target = '-'
  if figure.target:
    target = f'{figure.target[0]} {figure.target[1]:g}' + (figure.unit if figure.absolute else '')
  met = {None: '-', True: 'yes', False: 'NO'}[figure.met]
  if figure.ours is None:
    met = 'skipped'
  return [figure.name, figure.shape, _amount(figure.ours, figure.unit),
          _amount(figure.other, figure.unit),
          '-' if figure.ratio is None else f'{figure.ratio:.2f}',
          '-' if figure.spread is None else f'{figure.spread[0]:.2f} to {figure.spread[1]:.2f}',
          target, met]


def table(found: Sequence[Figure]) -> str:
  """The figures as a Markdown table, and below it what was skipped and why."""
  rows = [list(COLUMNS), *map(row, found)]
  widths = [max(len(line[column]) for line in rows) for column in range(len(COLUMNS))]
  lines = ['| ' + ' | '.join(cell.ljust(width) for cell, width in zip(line, widths)) + ' |'
           for line in rows]
  lines.insert(1, '|' + '|'.join('-' * (width + 2) for width in widths) + '|')
  return '\n'.join([*lines, *[f'{figure.name}: {figure.note}' for figure in found if figure.note]])
