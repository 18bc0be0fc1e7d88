"""Kinds of SANE on every base method, and what the adaptive reservoir has learned in each block."""
from typing import Any, Dict, List, Sequence

import numpy as np

from graphsane_tf.reporting.comparison import FinishedGrid
from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import DISTILLERS, FINE_TUNE, with_sane
from graphsane_tf.runs.grid import Row

_LEARNED = ('First rank: where the band begins, smallest and largest over seeds. Concentration: of the Dirichlet '
            'distribution around a user\'s long-run shares, in interactions, mean over seeds.')
_BASES = (FINE_TUNE, *DISTILLERS)
_ADAPTIVE = {plain: with_sane(plain, '{}-SANE adaptive', sane_variant='adaptive') for plain in _BASES}


def learned(done: FinishedGrid, dataset: str, rows: Sequence[Row]) -> List[Dict[str, Any]]:
  """One dict a row and block.

  Args:
    done: the grid.
    dataset: which data set.
    rows: rows whose reservoir is learned.

  Returns:
    Dicts with label, block, first (of each seed), concentration (their mean) and seeds.
  """
  lines = []
  for row in rows:
    by_block: Dict[int, List[Dict[str, Any]]] = {}
    for cell in done.of(dataset, row).values():
      for entry in done.results(cell)['blocks'][1:]:
        if 'concentration' in entry.get('sampler', {}):
          by_block.setdefault(entry['block'], []).append(entry['sampler'])
    for block, reports in sorted(by_block.items()):
      lines.append({'label': row.label, 'block': block, 'first': [report['first_rank'] for report in reports],
                    'concentration': float(np.mean([report['concentration'] for report in reports])),
                    'seeds': len(reports)})
  return lines


def _learned_table(lines: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  def span(values):
    low, high = min(values), max(values)
    return str(low) if low == high else f'{low} to {high}'
  return {'heads': ['method', 'block', 'first rank', 'concentration', 'seeds'], 'cells': [
      [line['label'], line['block'], span(line['first']), line['concentration'], line['seeds']]
      for line in lines]}


class Variants(Table):
  """Recall of each block, the kinds of SANE beside each base method."""
  title = 'Kinds of SANE'
  rows = tuple(row for plain in _BASES for row in (
      plain, with_sane(plain, '{}-SANE paper', sane_variant='paper'), with_sane(plain), _ADAPTIVE[plain]))

  def build_for(self, done, dataset, analyses=None):
    shown = super().build_for(done, dataset, analyses)
    lines = learned(done, dataset, tuple(_ADAPTIVE.values()))
    if lines:
      shown.append(self.show(dataset, _learned_table(lines), lines, _LEARNED, stem=f'learned-{dataset}',
                             title=f'What the adaptive reservoir learned, {dataset}'))
    return shown

  def pictures(self, drawn, shown):
    return []

  def sentences(self, shown):
    return []
