"""What the adaptive reservoir has learned in each block."""
from typing import Any, Dict, List, Sequence

import numpy as np

from graphsane_tf.reporting.comparison import FinishedGrid
from graphsane_tf.reporting.specs import TABLES

NOTE = ('First rank: where the band begins, smallest and largest over seeds. Concentration: of the '
        'Dirichlet distribution around a user\'s long-run shares, in interactions, mean over seeds.')


def rows(done: FinishedGrid, dataset: str) -> List[Dict[str, Any]]:
  """One dict a method and block, for the methods whose reservoir is learned.

  Returns:
    Dicts with label, block, first (of each seed), concentration (their mean) and seeds.
  """
  found = []
  for row in TABLES['variants'].rows:
    if not row.label.endswith(' adaptive'):
      continue
    by_block: Dict[int, List[Dict[str, Any]]] = {}
    for cell in done.of(dataset, row).values():
      for entry in done.results(cell)['blocks'][1:]:
        if 'concentration' in entry.get('sampler', {}):
          by_block.setdefault(entry['block'], []).append(entry['sampler'])
    for block, each in sorted(by_block.items()):
      found.append({
          'label': row.label, 'block': block, 'first': [one['first_rank'] for one in each],
          'concentration': float(np.mean([one['concentration'] for one in each])),
          'seeds': len(each)})
  return found


def table(found: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  """Heads and cells of `rows`."""
  def span(values):
    low, high = min(values), max(values)
    return str(low) if low == high else f'{low} to {high}'
  heads = ['method', 'block', 'first rank', 'concentration', 'seeds']
  return {'heads': heads, 'cells': [
      [row['label'], row['block'], span(row['first']), row['concentration'], row['seeds']]
      for row in found]}
