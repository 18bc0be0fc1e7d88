"""Tables of methods from the run folders of a grid."""
import json
from typing import Any, Dict, List, Optional, Sequence
import zipfile
import zlib

import numpy as np

from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import significance
from graphsane_tf.reporting import published
from graphsane_tf.runs import overrides
from graphsane_tf.runs import grid

METRIC = 'recall@20'


class FinishedGrid:
  """The finished cells of a grid, by data set and row."""

  def __init__(self, cells: Sequence[grid.Cell], extra: Sequence[str] = ()):
    """Reads the results that are there.

    Args:
      cells: from `grid.cells`.
      extra: the flags that all cells were given.
    """
    self._start = overrides.Start(overrides.joined(extra))
    self._names: Dict[grid.Row, str] = {}
    self.cells = list(cells)
    self._results = {cell: results for cell in cells if (results := cell.results()) is not None}

  @property
  def datasets(self) -> List[str]:
    return list(dict.fromkeys(cell.dataset for cell in self.cells))

  def missing(self) -> List[grid.Cell]:
    """Cells that are not finished."""
    return [cell for cell in self.cells if cell not in self._results]

  def of(self, dataset: str, row: grid.Row) -> Dict[int, grid.Cell]:
    """Finished cells of a row by seed."""
    if row not in self._names:
      self._names[row] = self._start.folder_name(row.overrides)
    found = {cell.seed: cell for cell in self._results if cell.dataset == dataset
             and cell.name == self._names[row] and (cell.base is not None or cell.alone)}
    if not row.alone:
      return found
    # What has no seed stands beside every one.
    return {seed: cell for cell in found.values() for seed in sorted({one.seed for one in self.cells})}

  def results(self, cell: grid.Cell) -> Dict[str, Any]:
    return self._results[cell]

  def blocks(self, cell: grid.Cell, metric: str) -> np.ndarray:
    """[num_blocks] test metric of the incremental blocks of a cell."""
    return np.array([entry['test'].get(metric, np.nan)
                     for entry in self._results[cell]['blocks'][1:]])

  def seconds_to_best(self, cell: grid.Cell) -> List[float]:
    """Training seconds up to the best epoch, of each incremental block of a cell whose records tell them."""
    best = {entry['block']: entry.get('best_epoch') for entry in self._results[cell]['blocks'][1:]}
    seconds: Dict[int, float] = {}
    for record in self.records(cell):
      block = record['block']
      if best.get(block) is not None and 'seconds' in record and record['epoch'] <= best[block]:
        seconds[block] = seconds.get(block, 0.) + record['seconds']
    return list(seconds.values())

  def records(self, cell: grid.Cell) -> List[Dict[str, Any]]:
    """The epochs of a cell."""
    path = cell.folder / 'metrics.jsonl'
    try:
      return [json.loads(line) for line in path.read_text('utf-8').splitlines()]
    except (OSError, ValueError) as error:
      raise UserError(f'{path} is missing or damaged; its run makes it anew: '
                      f'{" ".join(cell.command[1:])}') from error

  def averages(self, dataset: str, row: grid.Row, metric: str = METRIC) -> Dict[int, float]:
    """Average over blocks of each finished seed."""
    return {seed: float(np.nanmean(self.blocks(cell, metric)))
            for seed, cell in self.of(dataset, row).items()}

  def per_user(self, cell: grid.Cell, metric: str = METRIC) -> Dict[tuple, float]:
    """Metric of each (block, user) in the incremental blocks of a cell."""
    values = {}
    for entry in self._results[cell]['blocks'][1:]:
      block = entry['block']
      path = cell.folder / 'per_user' / f'block_{block}.npz'
      try:
        with np.load(path, allow_pickle=False) as arrays:
          values.update({(block, int(user)): float(value)
                        for user, value in zip(arrays['user'], arrays[metric])})
      except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f'{path} is missing or damaged; its run makes it anew: '
                        f'{" ".join(cell.command[1:])}') from error
    return values


def rows(done: FinishedGrid, dataset: str, rows_of_table: Sequence[grid.Row], reference: grid.Row,
         stems: Sequence[str] = (), metric: str = METRIC) -> List[Dict[str, Any]]:
  """One line a row: blocks, average, interval over seeds, delta, and a test against its partner.

  Args:
    done: the grid.
    dataset: which data set.
    rows_of_table: which rows.
    reference: the row that they are relative to.
    stems: files with the paper's numbers, see `published.recall`.
    metric: what is compared.

  Returns:
    Dicts with label, seeds (how many are finished), blocks (means over seeds), average, low, high
    (95 % over seeds), delta (% to the reference, over common seeds), seconds (a block's), those of `_costs`,
    published (the paper's average), and for rows with a partner those of `against` and p_holm, corrected for the
    comparisons among these rows. A row without a finished seed has only label, seeds and published.
  """
  base = done.averages(dataset, reference, metric)
  lines = []
  for row in rows_of_table:
    mine = done.of(dataset, row)
    line: Dict[str, Any] = {'label': row.label, 'seeds': len(mine),
                            'published': published.recall(stems, dataset, row.label)}
    lines.append(line)
    if not mine:
      continue
    values = np.array([done.blocks(cell, metric) for cell in mine.values()])
    interval = significance.interval(np.nanmean(values, axis=1))
    line.update(
        blocks=np.nanmean(values, axis=0).tolist(), average=interval.mean, low=interval.low,
        high=interval.high, values=done.averages(dataset, row, metric),
        seconds=float(np.mean([entry['train_seconds'] for cell in mine.values()
                               for entry in done.results(cell)['blocks'][1:]])),
        **_costs(done, list(mine.values())))
    common = sorted(mine.keys() & base.keys())
    if common:
      line['delta'] = 100 * (sum(line['values'][s] for s in common)
                             / max(sum(base[s] for s in common), 1e-12) - 1)
    if row.partner:
      line.update(against(done, dataset, row, row.partner, metric) or {})
  correct(lines)
  return lines


def _costs(done: FinishedGrid, cells: Sequence[grid.Cell]) -> Dict[str, Optional[float]]:
  """Means over incremental blocks and seeds: best_epoch, best_seconds (up to it) and rebuilds of the sampler.

  A rebuild is made before epochs 0, f, 2 f, ... of a block, as far as it comes: for a reservoir, a ranking of all items
  for every user. What cannot be told is None.
  """
  epochs, seconds, rebuilds = [], [], []
  for cell in cells:
    results = done.results(cell)
    config = results['config']
    every = config.get(config.get('sampler'), {}).get('refresh_epochs')
    seconds += done.seconds_to_best(cell)
    for entry in results['blocks'][1:]:
      if 'best_epoch' in entry:
        epochs.append(entry['best_epoch'])
      if every and 'epochs' in entry:
        rebuilds.append(-(-entry['epochs'] // every))
  return {name: float(np.mean(values)) if values else None for name, values in (
      ('best_epoch', epochs), ('best_seconds', seconds), ('rebuilds', rebuilds))}


def correct(lines: Sequence[Dict[str, Any]]) -> None:
  """Adds p_holm to the lines that have a p_value."""
  tested = [line for line in lines if 'p_value' in line]
  for line, p_value in zip(tested, significance.holm([line['p_value'] for line in tested])):
    line['p_holm'] = float(p_value)


def comparable_seeds(lines: Sequence[Dict[str, Any]]) -> int:
  """How many seeds every line is finished for; 0 if they are not the same ones, or fewer than two.

  Otherwise no line may be called the best: one seed is chance, and a missing run might be better.
  """
  seeds = [set(line.get('values', ())) for line in lines]
  return len(seeds[0]) if seeds and all(one == seeds[0] for one in seeds) and len(seeds[0]) > 1 else 0


def against(done: FinishedGrid, dataset: str, row: grid.Row, partner: grid.Row,
            metric: str = METRIC) -> Optional[Dict[str, Any]]:
  """Compares a row with its partner on their common seeds; None if there is none.

  The test is Wilcoxon's over users, each with their mean over blocks and seeds (`significance.by_user`). The interval
  is over seeds, which share their base block.

  Returns:
    partner, gain (%), gain_low and gain_high (95 % over seeds, None for one seed), common_seeds,
    p_value, difference (mean over users) and users (how many).
  """
  mine, other = done.of(dataset, row), done.of(dataset, partner)
  seeds = sorted(mine.keys() & other.keys())
  if not seeds:
    return None
  ours = [float(np.nanmean(done.blocks(mine[s], metric))) for s in seeds]
  theirs = [float(np.nanmean(done.blocks(other[s], metric))) for s in seeds]
  gains = significance.interval([100 * (a / max(b, 1e-12) - 1) for a, b in zip(ours, theirs)])
  users = [[done.per_user(side[seed], metric) for seed in seeds] for side in (mine, other)]
  known, (first, second) = significance.by_user(users)
  test = significance.paired_wilcoxon(first, second)
  return {'partner': partner.label, 'gain': gains.mean, 'gain_low': gains.low,
          'gain_high': gains.high, 'common_seeds': len(seeds), 'p_value': test.p_value,
          'difference': test.mean_difference, 'users': len(known)}


def grid_table(lines: Sequence[Dict[str, Any]], reference: str, costs: bool = False) -> Dict[str, Any]:
  """The lines as heads and cells that `outputs` writes.

  Args:
    lines: from `rows`.
    reference: label of what they are relative to.
    costs: with columns for what the way to the best epoch took.
  """
  def column(name):
    return [line.get(name) for line in lines]
  def spans(low, high, digits):
    return [None if line.get(low) is None else f'{line[low]:.{digits}f} to {line[high]:.{digits}f}'
            for line in lines]
  width = max((len(line.get('blocks', [])) for line in lines), default=0)
  columns = {
      'method': column('label'),
      **{f'block {k + 1}': [line['blocks'][k] if line['seeds'] else None for line in lines] for k in range(width)},
      'average': column('average'), '95 % interval': spans('low', 'high', 4), f'% to {reference}': column('delta'),
      'against': column('partner'), 'gain %': column('gain'), 'gain 95 %': spans('gain_low', 'gain_high', 1),
      'p': column('p_value'), 'p (Holm)': column('p_holm'), 's/block': column('seconds'),
      **({'epochs to best': column('best_epoch'), 's to best': column('best_seconds'),
          'rebuilds/block': column('rebuilds')} if costs else {}),
      'seeds': column('seeds'), 'published': column('published')}
  # A single seed has no intervals, and not every table has tests or published numbers.
  columns = {head: values for head, values in columns.items() if any(value is not None for value in values)}
  return {'heads': list(columns), 'cells': [list(cells) for cells in zip(*columns.values())]}
