"""What the paper's hypothesis predicts: the prior helps the users whose interests have moved."""
from typing import Any, Dict, List, Sequence

import numpy as np

from graphsane_tf.data import drift
from graphsane_tf.evaluation import significance
from graphsane_tf.reporting.comparison import METRIC, FinishedGrid
from graphsane_tf.reporting.specs import PRIORS, TABLES
from graphsane_tf.training import grid

NOTE = ('Real shift: users whose counts in the block are at least three times as likely with a moving '
        'interest as with a constant one. Planted: users of drift who move in the block. Gain and '
        'Wilcoxon\'s p are against the same reservoir without prior, over (block, user) pairs with '
        'their means over seeds.')
_CONTROL = 'adaptive, no prior'


def _planted(cell: grid.Cell) -> Dict[int, np.ndarray]:
  """Users of drift who move in each block; {} for other data."""
  data = {name: value for name, value in (flag.strip('-').split('=', 1) for flag in cell.flags
                                          if '=' in flag)}
  if data.get('dataset') != 'drift':
    return {}
  truth = drift.truth(data.get('drift_size', 'default'), int(data.get('drift_seed', 0)))
  return {block: np.flatnonzero(truth.move_time == block) for block in (1, 2, 3)}


def _groups(done: FinishedGrid, cell: grid.Cell) -> Dict[str, set]:
  """(block, user) pairs of each group, by its name."""
  shifted = done.per_user(cell, 'shifted')
  found = {'real shift': {key for key, value in shifted.items() if value},
           'no shift': {key for key, value in shifted.items() if not value}}
  planted = _planted(cell)
  if planted:
    movers = {(block, int(user)) for block, users in planted.items() for user in users}
    found['planted movers'] = movers & set(shifted)
    found['others'] = set(shifted) - movers
  return found


def rows(done: FinishedGrid, dataset: str) -> List[Dict[str, Any]]:
  """One dict a row of the table and group; [] until the adaptive row and its control are there.

  Returns:
    Dicts with label, group, pairs, recall (mean over pairs and seeds), seeds, and, but for the
    control itself, gain (%) and p_value against it.
  """
  by_label = {row.label: row for row in TABLES['movers'].rows}
  cells = {label: done.of(dataset, by_label[label]) for label in PRIORS}
  seeds = sorted(set(cells['adaptive']) & set(cells[_CONTROL]))
  if not seeds:
    return []
  found = []
  # A user's shift is estimated in each seed's own clusters: he counts where that seed says so.
  groups = {seed: _groups(done, cells['adaptive'][seed]) for seed in seeds}
  for name in groups[seeds[0]]:
    members = {seed: groups[seed][name] for seed in seeds}
    values = {}
    for label in PRIORS:
      mine = [seed for seed in seeds if seed in cells[label]]
      sums: Dict[tuple, List[float]] = {}
      for seed in mine:
        for key, value in done.per_user(cells[label][seed], METRIC).items():
          if key in members[seed]:
            sums.setdefault(key, []).append(value)
      if mine:
        values[label] = {key: float(np.mean(each)) for key, each in sums.items()}
    for label, mine in values.items():
      line = {'label': label, 'group': name, 'pairs': len(mine), 'seeds': len(seeds),
              'recall': float(np.mean(list(mine.values()))) if mine else None}
      keys = sorted(mine.keys() & values[_CONTROL].keys())
      if label != _CONTROL and keys:
        ours, theirs = (np.array([side[key] for key in keys]) for side in (mine, values[_CONTROL]))
        line['gain'] = float(100 * (ours.mean() / max(theirs.mean(), 1e-12) - 1))
        line['p_value'] = significance.paired_wilcoxon(ours, theirs).p_value
      found.append(line)
  return found


def table(found: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  """Heads and cells of `rows`."""
  heads = ['users', 'method', 'Recall@20', '% to no prior', 'p', 'pairs', 'seeds']
  return {'heads': heads, 'cells': [
      [row['group'], row['label'], row['recall'], row.get('gain'), row.get('p_value'), row['pairs'],
       row['seeds']] for row in found]}
