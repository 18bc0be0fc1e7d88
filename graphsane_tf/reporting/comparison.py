"""Tables of methods from the run folders of a grid."""
from typing import Any, Dict, List, Optional, Sequence
import zipfile
import zlib

import numpy as np

from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import significance
from graphsane_tf.reporting import published
from graphsane_tf.reporting.specs import TABLES, Table
from graphsane_tf.training import grid

METRIC = 'recall@20'


class FinishedGrid:
  """The finished cells of a grid, by data set and row."""

  def __init__(self, cells: Sequence[grid.Cell], extra: Sequence[str] = ()):
    """Reads the results that are there.

    Args:
      cells: from `grid.cells`.
      extra: the flags that all cells were given.
    """
    self._extra = extra
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
    name = grid.cell_name(row.flags, self._extra)
    return {cell.seed: cell for cell in self._results
            if cell.dataset == dataset and cell.name == name and cell.base is not None}

  def results(self, cell: grid.Cell) -> Dict[str, Any]:
    return self._results[cell]

  def blocks(self, cell: grid.Cell, metric: str) -> np.ndarray:
    """[num_blocks] test metric of the incremental blocks of a cell."""
    return np.array([entry['test'].get(metric, np.nan)
                     for entry in self._results[cell]['blocks'][1:]])

  def averages(self, dataset: str, row: grid.Row, metric: str = METRIC) -> Dict[int, float]:
    """Average over blocks of each finished seed."""
    return {seed: float(np.nanmean(self.blocks(cell, metric)))
            for seed, cell in self.of(dataset, row).items()}

  def per_user(self, cell: grid.Cell, metric: str = METRIC) -> Dict[tuple, float]:
    """Metric of each (block, user) in the incremental blocks of a cell."""
    found = {}
    for entry in self._results[cell]['blocks'][1:]:
      block = entry['block']
      path = cell.folder / 'per_user' / f'block_{block}.npz'
      try:
        with np.load(path, allow_pickle=False) as arrays:
          found.update({(block, int(user)): float(value)
                        for user, value in zip(arrays['user'], arrays[metric])})
      except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f'{path} is missing or damaged; its run makes it anew: '
                        f'{" ".join(cell.command[1:])}') from error
    return found


def rows(done: FinishedGrid, table: Table, dataset: str, metric: str = METRIC
        ) -> List[Dict[str, Any]]:
  """One row a method: blocks, average, interval over seeds, delta, and a test against its partner.

  Args:
    done: the grid.
    table: which rows, and what they are relative to.
    dataset: which data set.
    metric: what is compared.

  Returns:
    Dicts with label, seeds (how many are finished), blocks (means over seeds), average, low, high
    (95 % over seeds), delta (% to the table's reference, over common seeds), seconds (a block's),
    published (the paper's average), and for rows with a partner those of `against`. A row without a
    finished seed has only label, seeds and published.
  """
  by_label = {row.label: row for row in table.rows}
  base = done.averages(dataset, by_label[table.reference], metric)
  found = []
  for row in table.rows:
    mine = done.of(dataset, row)
    line = {'label': row.label, 'seeds': len(mine),
            'published': published.recall(table.published, dataset, row.label)}
    found.append(line)
    if not mine:
      continue
    values = np.array([done.blocks(cell, metric) for cell in mine.values()])
    interval = significance.interval(np.nanmean(values, axis=1))
    line.update(
        blocks=np.nanmean(values, axis=0).tolist(), average=interval.mean, low=interval.low,
        high=interval.high, values={seed: float(np.nanmean(done.blocks(cell, metric)))
                                    for seed, cell in mine.items()},
        seconds=float(np.mean([entry['train_seconds'] for cell in mine.values()
                               for entry in done.results(cell)['blocks'][1:]])))
    common = sorted(mine.keys() & base.keys())
    if common:
      line['delta'] = 100 * (sum(line['values'][s] for s in common)
                             / max(sum(base[s] for s in common), 1e-12) - 1)
    if row.partner:
      line.update(against(done, dataset, row, by_label[row.partner], metric) or {})
  return found


def against(done: FinishedGrid, dataset: str, row: grid.Row, partner: grid.Row,
            metric: str = METRIC) -> Optional[Dict[str, Any]]:
  """Compares a row with its partner on their common seeds; None if there is none.

  The test is Wilcoxon's over (block, user) pairs, each with the mean over seeds: seeds are not new
  users, and counting each of them as one would make p too small. The interval is over seeds, which
  share their base block.

  Returns:
    partner, gain (%), gain_low and gain_high (95 % over seeds, None for one seed), common_seeds,
    p_value, difference (mean over users) and pairs.
  """
  mine, other = done.of(dataset, row), done.of(dataset, partner)
  seeds = sorted(mine.keys() & other.keys())
  if not seeds:
    return None
  ours = [float(np.nanmean(done.blocks(mine[s], metric))) for s in seeds]
  theirs = [float(np.nanmean(done.blocks(other[s], metric))) for s in seeds]
  gains = significance.interval([100 * (a / max(b, 1e-12) - 1) for a, b in zip(ours, theirs)])
  users = [[done.per_user(side[seed], metric) for seed in seeds] for side in (mine, other)]
  keys = sorted(set.intersection(*(set(values) for side in users for values in side)))
  first, second = (np.array([np.mean([values[key] for values in side]) for key in keys])
                   for side in users)
  test = significance.paired_wilcoxon(first, second)
  return {'partner': partner.label, 'gain': gains.mean, 'gain_low': gains.low,
          'gain_high': gains.high, 'common_seeds': len(seeds), 'p_value': test.p_value,
          'difference': test.mean_difference, 'pairs': test.pairs}


def grid_table(name: str, found: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  """The rows as heads and cells that `outputs` writes.

  Args:
    name: of the table, a key of `TABLES`.
    found: from `rows`.
  """
  table = TABLES[name]
  width = max((len(row.get('blocks', [])) for row in found), default=0)
  tested = any('p_value' in row for row in found)
  printed = any(row['published'] is not None for row in found)
  heads = ['method', *[f'block {k + 1}' for k in range(width)], 'average', '95 % interval',
           f'% to {table.reference}']
  if tested:
    heads += ['against', 'gain %', 'gain 95 %', 'p']
  heads += ['s/block', 'seeds'] + (['published'] if printed else [])
  cells = []
  for row in found:
    if not row['seeds']:
      line = [row['label']] + [None] * (len(heads) - 1)
      line[heads.index('seeds')] = 0
    else:
      line = [row['label'], *row['blocks'], row['average'], _span(row['low'], row['high'], 4),
              row.get('delta')]
      if tested:
        line += [row.get('partner'), row.get('gain'),
                 _span(row.get('gain_low'), row.get('gain_high'), 1), row.get('p_value')]
      line += [row['seconds'], row['seeds']] + ([None] if printed else [])
    if printed:
      line[-1] = row['published']
    cells.append(line)
  # A single seed has no intervals: columns that would stay empty are left out.
  keep = [k for k in range(len(heads)) if any(line[k] is not None for line in cells)]
  return {'heads': [heads[k] for k in keep], 'cells': [[line[k] for k in keep] for line in cells]}


def _span(low: Optional[float], high: Optional[float], digits: int) -> Optional[str]:
  return None if low is None else f'{low:.{digits}f} to {high:.{digits}f}'
