"""What is computed from finished cells with their models, kept in files so that it is done once."""
import functools
import pathlib
from typing import Any, Callable, Dict, List, Sequence

from graphsane_tf import files
from graphsane_tf.reporting import case_study, inspect
from graphsane_tf.reporting.comparison import FinishedGrid
from graphsane_tf.reporting.tables.main import EXAMPLES
from graphsane_tf.runs import grid
from graphsane_tf.runs import incremental


class Analyses:
  """Case studies and example users of a grid.

  Attributes:
    problems: what could not be computed, and why, by folder.
  """

  def __init__(self, done: FinishedGrid, data_dir, log: Callable[[str], None] = print):
    """Takes the grid and the folder of its data sets' prepared copies."""
    self._done = done
    self._data_dir = data_dir
    self._log = log
    self._runs: Dict[pathlib.Path, incremental.IncrementalRun] = {}
    self.problems: Dict[str, str] = {}

  def _run(self, cell: grid.Cell) -> incremental.IncrementalRun:
    if cell.folder not in self._runs:
      self._runs = {cell.folder: incremental.open_run(cell.folder, self._data_dir)}
    return self._runs[cell.folder]

  def _kept(self, cell: grid.Cell, name: str, make: Callable[[], Any]) -> Any:
    """What `make` gives, from a file beside the cell while the cell's numbers are the same."""
    path = cell.folder.parent / 'analyses' / f'{cell.name}-{name}.json'
    tests = [entry['test'] for entry in self._done.results(cell)['blocks']]
    if path.exists():
      kept = files.read_json(path)
      if kept['tests'] == tests:
        return kept['value']
    try:
      self._log(f'{name.replace("_", " ")} of {cell.folder}')
      value = make()
    except Exception as error:  # pylint: disable=broad-exception-caught
      # One analysis that fails must not cost the report; it is named at the end.
      self.problems[f'{name} of {cell.folder}'] = f'{type(error).__name__}: {error}'
      return None
    files.write_json(path, {'tests': tests, 'value': value})
    return value

  def _blocks(self, cell: grid.Cell) -> List[int]:
    return [entry['block'] for entry in self._done.results(cell)['blocks'][1:]]

  def _by_block(self, cell: grid.Cell, study: Callable[[incremental.IncrementalRun, int], Any]) -> Dict[str, Any]:
    return {str(block): study(self._run(cell), block) for block in self._blocks(cell)}

  def case_study(self, dataset: str, rows: Sequence[grid.Row], reference: grid.Row
                 ) -> Dict[str, List[Dict[str, Any]]]:
    """One `case_study.study_seed` with its seed a finished seed, by label; rows without one are left out.

    Args:
      dataset: which data set.
      rows: one a sampler.
      reference: the row whose item embeddings tell which users' interests moved.
    """
    groups = {}
    for seed, cell in self._done.of(dataset, reference).items():
      moved = self._kept(cell, 'high_shift_users', functools.partial(
          self._by_block, cell, case_study.high_shift_users))
      if moved is not None:
        groups[seed] = {int(block): users for block, users in moved.items()}
    studies: Dict[str, List[Dict[str, Any]]] = {}
    for row in rows:
      for seed, cell in self._done.of(dataset, row).items():
        if seed not in groups:
          continue
        drawn = self._kept(cell, 'drawn_shares', functools.partial(
            self._by_block, cell, case_study.drawn_shares))
        if drawn is not None:
          studies.setdefault(row.label, []).append({'seed': seed, **case_study.study_seed(
              groups[seed], {int(block): counts for block, counts in drawn.items()},
              self._done.per_user(cell))})
    return studies

  def examples(self, dataset: str, count: int = 2) -> List[Dict[str, Any]]:
    """Users of `main.EXAMPLES`' last block whose interests moved most, from `inspect.explain_user`."""
    cells = self._done.of(dataset, EXAMPLES)
    if not cells:
      return []
    cell = cells[min(cells)]
    return self._kept(cell, 'example_users', lambda: [
        inspect.plain(user) for user in inspect.strongest_shifts(
            self._run(cell), self._blocks(cell)[-1], count)]) or []
