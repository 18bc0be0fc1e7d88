"""Many runs that share base models: one process a cell, finished cells are read, not run again."""
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import pathlib
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence, Set, Tuple

from graphsane_tf import files
from graphsane_tf.errors import UserError
from graphsane_tf.runs import overrides
from graphsane_tf.runs.workdir import BASE_FIELDS, LATER_FIELDS

# Flags that do not change a cell's numbers.
_PLACES = ('--data_dir=', '--plugin=')
# Seconds of a cell when nothing like it has been run: process start, and training by data set.
_START_SECONDS = 20.
_ROUGH_SECONDS = {'--drift_size=small': 20., '--drift_size=default': 160.,
                  '--drift_size=large': 1800.}
_ROUGH_OTHER = 600.
_FOREVER = 1e9


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
  """One line of a table.

  Attributes:
    label: its name; the paper's, where the paper has the method.
    overrides: dotted names of configuration fields and what they are set to, {'kd': 'sgct', 'sane.size': 50}.
      Rows share the base block, trained with the settings of the whole grid, unless they differ in
      `workdir.BASE_FIELDS` that it reads.
    partner: the row that it is tested against, if any.
    alone: whether it is fitted at once and needs no base block; such a row has no seeds but the first.
  """
  label: str
  overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  partner: Optional['Row'] = None
  alone: bool = False


@dataclasses.dataclass(frozen=True)
class Cell:
  """One run of the grid.

  Attributes:
    dataset: name of the data set.
    seed: its seed.
    name: name of its folder; rows that come to the same configuration have the same.
    folder: its run folder.
    flags: its command line, without the folder and the base.
    base: folder of the run whose base block it takes over, None for that run itself.
    alone: whether it is a whole run that takes over nothing.
  """
  dataset: str
  seed: int
  name: str
  folder: pathlib.Path
  flags: Tuple[str, ...]
  base: Optional[pathlib.Path]
  alone: bool = False

  @property
  def command(self) -> List[str]:
    shared = [] if self.alone else ['--block=0'] if self.base is None else [f'--base_from={self.base}']
    # Tables ask no SavedModel, and making them takes seconds a block.
    return [sys.executable, '-m', 'graphsane_tf', 'run', *self.flags, *shared, '--noexport',
            f'--workdir={self.folder}']

  @property
  def log_file(self) -> pathlib.Path:
    return self.folder.parent / f'{self.name}.log'

  @property
  def _note_file(self) -> pathlib.Path:
    return self.folder.parent / f'{self.name}.cell.json'

  def _choices(self) -> List[str]:
    return [flag for flag in self.flags if not flag.startswith(_PLACES)]

  def note(self) -> Dict:
    """Flags and wall-clock seconds of the cell as it was run; {} before."""
    return files.read_json(self._note_file) if self._note_file.exists() else {}

  def save_note(self, seconds: float) -> None:
    """Keeps how the cell was made; `seconds` add to those of earlier, cut-off attempts."""
    files.write_json(self._note_file, {
        'flags': self._choices(), 'seconds': round(self.note().get('seconds', 0.) + seconds, 1)})

  def results(self) -> Optional[Dict]:
    """What the finished cell measured, or None.

    Raises:
      UserError: if the folder was made with flags that mean something else.
    """
    mine = self._choices()
    before = self.note().get('flags', mine)
    now, then = overrides.settings(mine), overrides.settings(before)
    if now != then:
      other = {flag for flag in (*before, *mine)
               if now.get(overrides.setting(flag)[0]) != then.get(overrides.setting(flag)[0])}
      raise UserError(f'{self.folder} was made with other flags ({" ".join(sorted(other))}): choose '
                      'another --workdir.')
    path = self.folder / 'results.json'
    if not path.exists():
      return None
    try:
      results = files.read_object(path, {'blocks': [], 'config': {}})
      wanted = 1 if self.base is None and not self.alone else results['config']['blocks']['num_incremental']
    except (UserError, KeyError, TypeError):
      # A damaged file is written anew when the cell is run.
      return None
    return results if len(results['blocks']) >= wanted else None


def cells(rows: Sequence[Row], datasets: Dict[str, Sequence[str]], seeds: int, workdir,
          extra: Sequence[str] = (), plugins: Sequence[str] = ()) -> List[Cell]:
  """The cells of some rows, each after the base block it needs, each once even if two tables show it.

  Args:
    rows: lines of tables.
    datasets: name to data flags.
    seeds: seeds 0 to seeds - 1.
    workdir: folder of the grid.
    extra: flags for every cell; what a row sets counts before them.
    plugins: files with methods of the user's own that every cell loads.

  Raises:
    UserError: if a row sets what the configuration does not have.
  """
  extra = overrides.joined(extra)
  start = overrides.Start(extra)
  changes = {row: _changes(start, row) for row in rows}
  grid: Dict[pathlib.Path, Cell] = {}
  for dataset, data_flags in datasets.items():
    for seed in range(seeds):
      place = pathlib.Path(workdir) / dataset / f'seed{seed}'
      common = (*data_flags, f'--seed={seed}', *extra, *(f'--plugin={path}' for path in plugins))
      for row, changed in changes.items():
        if row.alone and seed:
          continue
        shared = {name: value for name, value in changed.items()
                  if name.split('.')[0] in BASE_FIELDS and name not in LATER_FIELDS}
        name = f'base-{start.folder_name(shared)}' if shared else 'base'
        base = Cell(dataset, seed, name, place / name, _with(common, shared), None)
        name = start.folder_name(changed)
        own = Cell(dataset, seed, name, place / name, _with(common, changed), base.folder)
        if row.alone:
          own = dataclasses.replace(own, base=None, alone=True)
        for cell in (own,) if row.alone else (base, own):
          if grid.setdefault(cell.folder, cell) != cell:
            raise UserError(f'row {row.label} would share the folder {cell.name} with a row that is '
                            'another run: give one of their methods another name.')
  return list(grid.values())


def _changes(start: overrides.Start, row: Row) -> Dict[str, Any]:
  try:
    return start.needed(row.overrides)
  except UserError as error:
    raise UserError(f'row {row.label}: {error}') from error


def _with(common: Sequence[str], changed: Dict[str, Any]) -> Tuple[str, ...]:
  """Flags of all cells, without those that say something else about the same fields, and a cell's own."""
  own = overrides.as_flags(changed)
  taken = set(overrides.settings(own))
  return (*(flag for flag in common if overrides.setting(flag)[0] not in taken), *own)


def seconds_taken(cells_of_grid: Sequence[Cell]) -> Dict[Cell, float]:
  """Wall-clock seconds of the finished cells."""
  seconds = {}
  for cell in cells_of_grid:
    results = cell.results()
    if results is not None:
      trained = sum(block['train_seconds'] for block in results['blocks'])
      seconds[cell] = cell.note().get('seconds') or _START_SECONDS + 1.2 * trained
  return seconds


def estimate(cell: Cell, taken: Dict[Cell, float]) -> Tuple[float, bool]:
  """Expected seconds of a cell, and whether finished cells tell them (else a rough table).

  Finished cells of the same name on the same data set count most, then any on the data set.

  Args:
    cell: the cell.
    taken: from `seconds_taken`.
  """
  done = [c for c in taken if c.dataset == cell.dataset and (c.base is None) == (cell.base is None)]
  like = [c for c in done if c.name == cell.name] or done
  if like:
    return sum(taken[c] for c in like) / len(like), True
  rough = [value for flag, value in _ROUGH_SECONDS.items() if flag in cell.flags]
  return _START_SECONDS + (rough[0] if rough else _ROUGH_OTHER), False


def duration(seconds: float) -> str:
  """'40 s', '12 min' or '3.5 h'."""
  if seconds < 100:
    return f'{seconds:.0f} s'
  return f'{seconds / 60:.0f} min' if seconds < 5400 else f'{seconds / 3600:.1f} h'


def plan(cells_of_grid: Sequence[Cell], jobs: int) -> str:
  """What a grid would do: every cell, finished or not, with an estimate."""
  lines, total, rough = [], 0., False
  taken = seconds_taken(cells_of_grid)
  for cell in cells_of_grid:
    place = f'{cell.dataset}  seed {cell.seed}  {cell.name}'
    if cell in taken:
      lines.append(f'done   {place}')
      continue
    seconds, known = estimate(cell, taken)
    total += seconds
    rough = rough or not known
    lines.append(f'to do  {place}  about {duration(seconds)}{"" if known else " (rough)"}')
  todo = len(cells_of_grid) - len(taken)
  lines.append(f'{todo} of {len(cells_of_grid)} cells to do, about {duration(total / max(1, jobs))} with '
               f'--jobs={jobs} (from {"a rough table" if rough else "finished cells"}).' if todo else
               f'all {len(cells_of_grid)} cells are done.')
  return '\n'.join(lines)


class Places(Protocol):
  """Where cells are run, several at once."""
  count: int

  def run(self, cell: Cell, log: Callable[[str], None]) -> Tuple[str, float]:
    """Runs a cell; returns what went wrong ('' if nothing) and its seconds. Called from several threads."""

  def stop(self) -> None:
    """Ends the cells that run now."""


class Processes:
  """Processes of this machine; an interrupt can end those that run now."""

  def __init__(self, count: int = 1):
    self.count = max(1, count)
    self._lock = threading.Lock()
    self._running: Set[Any] = set()
    self.stopped = False

  def run(self, cell, log):
    return self.run_command(cell, cell.command, log)

  def run_command(self, cell: Cell, command: List[str], log: Callable[[str], None]) -> Tuple[str, float]:
    """`run` of a cell by a given command."""
    try:
      return self._locked_run(cell, command, log)
    except (OSError, UserError) as error:
      return str(error), 0.

  def _locked_run(self, cell: Cell, command: List[str], log: Callable[[str], None]) -> Tuple[str, float]:
    files.make_directory(cell.folder.parent)
    with open(cell.log_file, 'a', encoding='utf-8') as stream:
      # The process inherits the lock with its output, and keeps it even if this one is killed.
      try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
      except BlockingIOError:
        log(f'{cell.folder} is being run by another process: waiting for it.')
        fcntl.flock(stream, fcntl.LOCK_EX)
      started = time.monotonic()
      if cell.results() is not None:
        return '', 0.
      cell.save_note(0.)
      code = self._wait(command, stream)
      seconds = time.monotonic() - started
      cell.save_note(seconds)
    if code:
      return f'it ended with code {code}; its output is in {cell.log_file}', seconds
    return '', seconds

  def _wait(self, command: List[str], stream) -> int:
    with self._lock:
      if self.stopped:
        return -signal.SIGTERM
      process = subprocess.Popen(  # pylint: disable=consider-using-with
          command, stdout=stream, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
      self._running.add(process)
    try:
      # With a time, however long, Python looks again and again: Ray's interrupts end no system call.
      return process.wait(_FOREVER)
    except BaseException:
      process.terminate()
      raise
    finally:
      with self._lock:
        self._running.discard(process)

  def stop(self) -> None:
    with self._lock:
      self.stopped = True
      for process in self._running:
        # Not SIGINT, which processes of a background job ignore; what is on disk is always whole.
        with contextlib.suppress(ProcessLookupError):
          process.terminate()


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
  """SIGTERM becomes an interrupt, so that the cells' processes are ended, too."""
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  def interrupt(signal_number, frame):
    del signal_number, frame
    raise KeyboardInterrupt
  before = signal.signal(signal.SIGTERM, interrupt)
  try:
    yield
  finally:
    signal.signal(signal.SIGTERM, before)


def run(todo: Sequence[Cell], jobs: int = 1, log: Callable[[str], None] = print,
        places: Optional[Places] = None) -> Dict[Cell, str]:
  """Runs the cells that are not finished; a cut-off cell goes on where it was.

  A failing cell does not stop the others. A cell that another process is working on (an earlier
  grid's, say, whose parent was killed) is waited for, never run twice.

  Args:
    todo: cells; base cells are run before the others.
    jobs: processes at once.
    log: takes a line for the screen.
    places: where cells are run, instead of so many processes of this machine.

  Returns:
    Cells that failed, or whose base block did, and why.
  """
  waiting = [cell for cell in todo if cell.results() is None]
  log(f'{len(todo) - len(waiting)} of {len(todo)} cells are finished already.')
  taken = seconds_taken(todo)
  left = set(waiting)
  started, done = time.monotonic(), 0
  failed: Dict[Cell, str] = {}
  places = places or Processes(jobs)
  with _terminable(), concurrent.futures.ThreadPoolExecutor(places.count) as pool:
    try:
      for bases in (True, False):
        futures = {}
        for cell in waiting:
          if (cell.base is None) != bases:
            continue
          broken = [c for c in failed if c.folder == cell.base]
          if broken:
            failed[cell] = f'its base block failed ({broken[0].log_file})'
            done += 1
            left.discard(cell)
          else:
            futures[pool.submit(places.run, cell, log)] = cell
        for future in concurrent.futures.as_completed(futures):
          cell = futures[future]
          problem, seconds = future.result()
          done += 1
          left.discard(cell)
          if problem:
            failed[cell] = problem
          else:
            taken.update(seconds_taken([cell]))
          ahead = sum(estimate(c, taken)[0] for c in left) / places.count
          log(f'{done}/{len(waiting)}  {cell.dataset}  seed {cell.seed}  {cell.name}  '
              f'{"FAILED after " if problem else ""}{duration(seconds)}'
              + (f', about {duration(ahead)} left' if left else
                 f'; the grid took {duration(time.monotonic() - started)}'))
    except BaseException:
      places.stop()
      pool.shutdown(wait=True, cancel_futures=True)
      raise
  return failed
