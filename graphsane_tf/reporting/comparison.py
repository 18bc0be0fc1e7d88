"""Tables of methods from the run folders of a grid."""
from typing import Any, Dict, List, Sequence

import numpy as np

from graphsane_tf.evaluation import significance
from graphsane_tf.training import grid


def _per_user(cell: grid.Cell, metric: str) -> Dict[tuple, float]:
  """Metric of each (seed, block, user) in the incremental blocks of a cell."""
  found = {}
  for block in range(1, 1 + len(cell.results()['blocks'][1:])):
    with np.load(cell.folder / 'per_user' / f'block_{block}.npz', allow_pickle=False) as arrays:
      found.update({(cell.seed, block, int(user)): float(value)
                    for user, value in zip(arrays['user'], arrays[metric])})
  return found


def rows(cells: Sequence[grid.Cell], labels: Sequence[str], dataset: str,
         reference: str, metric: str = 'recall@20') -> List[Dict[str, Any]]:
  """One row a method: blocks, average, interval over seeds, delta, and a test against its partner.

  Args:
    cells: a grid; cells that are not finished are counted as missing.
    labels: rows of the table, in order.
    dataset: which data set.
    reference: the row that deltas are relative to.
    metric: what is compared.

  Returns:
    Dicts with label, seeds, blocks (means over seeds), average, low, high, delta, seconds (a block's
    mean), partner and p_value (Wilcoxon over users and seeds against the row without SANE).
  """
  by_label = {label: [c for c in cells if c.label == label and c.dataset == dataset
                      and c.results() is not None] for label in labels}
  table = []
  for label in labels:
    mine = by_label[label]
    if not mine:
      table.append({'label': label, 'seeds': 0})
      continue
    blocks = np.array([[entry['test'][metric] for entry in cell.results()['blocks'][1:]]
                       for cell in mine])
    interval = significance.interval(blocks.mean(axis=1))
    seconds = np.mean([[entry['train_seconds'] for entry in cell.results()['blocks'][1:]]
                       for cell in mine])
    row = {'label': label, 'seeds': len(mine), 'blocks': blocks.mean(axis=0).tolist(),
           'average': interval.mean, 'low': interval.low, 'high': interval.high,
           'values': blocks.mean(axis=1).tolist(), 'seconds': float(seconds)}
    partner = label.replace('-SANE*', '') if label.endswith('*') else None
    if partner and by_label.get(partner):
      row.update(_against(mine, by_label[partner], metric), partner=partner)
    table.append(row)
  base = next((row.get('average') for row in table if row['label'] == reference), None)
  for row in table:
    if base and row['seeds']:
      row['delta'] = 100 * (row['average'] / base - 1)
  return table


def _against(mine: Sequence[grid.Cell], other: Sequence[grid.Cell], metric: str) -> Dict[str, float]:
  """Paired Wilcoxon test over users, blocks and common seeds."""
  first = {k: v for cell in mine for k, v in _per_user(cell, metric).items()}
  second = {k: v for cell in other for k, v in _per_user(cell, metric).items()}
  keys = sorted(first.keys() & second.keys())
  test = significance.paired_wilcoxon(
      np.array([first[k] for k in keys]), np.array([second[k] for k in keys]))
  return {'p_value': test.p_value, 'difference': test.mean_difference, 'pairs': test.pairs}


def markdown(table: Sequence[Dict[str, Any]], title: str) -> str:
  """The table as Markdown, missing rows named as such."""
  width = max((len(row.get('blocks', [])) for row in table), default=3)
  heads = ['method', *[f'block {k + 1}' for k in range(width)], 'average', '95 % interval', 'delta %',
           'p (SANE vs without)', 's/block', 'seeds']
  lines = [f'**{title}**', '', '| ' + ' | '.join(heads) + ' |', '|' + '---|' * len(heads)]
  for row in table:
    if not row['seeds']:
      lines.append(f'| {row["label"]} |' + ' not run |' + ' |' * (len(heads) - 2))
      continue
    interval = '' if row['low'] is None else f'{row["low"]:.4f} to {row["high"]:.4f}'
    p_value = f'{row["p_value"]:.2g}' if 'p_value' in row else ''
    cells = [row['label'], *[f'{v:.4f}' for v in row['blocks']], f'{row["average"]:.4f}', interval,
             f'{row.get("delta", 0.):+.1f}', p_value, f'{row["seconds"]:.1f}', str(row['seeds'])]
    lines.append('| ' + ' | '.join(cells) + ' |')
  return '\n'.join(lines) + '\n'
