"""What the paper's hypothesis predicts: the prior helps the users whose interests have moved."""
from typing import Any, Dict, List, Sequence

import numpy as np

from graphsane_tf.data import SOURCES
from graphsane_tf.data.sources import Drift
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.evaluation import significance
from graphsane_tf.reporting import comparison
from graphsane_tf.reporting.comparison import METRIC, FinishedGrid
from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import SGCT
from graphsane_tf.reporting.tables.parts import ADAPTIVE, NO_PRIOR, REVERSED_PRIOR
from graphsane_tf.runs import grid

_NOTE = ('Real shift: users whose counts in the block are at least three times as likely with a moving '
         'interest as with a constant one. Planted: users of drift who move in the block. Gain and '
         'Wilcoxon\'s p are against the same reservoir without prior, over users with their means over '
         'the blocks in which they are in the group, and over seeds; p (Holm): corrected for the comparisons of '
         'this table.')


def _planted(data: Dict[str, Any]) -> Dict[int, np.ndarray]:
  """Users of drift who move in each block; {} for other data.

  Args:
    data: how the log of a run was made, from its results.
  """
  spec = DataSpec.from_json(data)
  source = spec.source() if spec.dataset in SOURCES else None
  if not isinstance(source, Drift):
    return {}
  truth = source.truth()
  return {block: np.flatnonzero(truth.move_time == block) for block in (1, 2, 3)}


def _groups(done: FinishedGrid, cell: grid.Cell) -> Dict[str, set]:
  """(block, user) pairs of each group, by its name."""
  shifted = done.per_user(cell, 'shifted')
  groups = {'real shift': {key for key, value in shifted.items() if value},
            'no shift': {key for key, value in shifted.items() if not value}}
  planted = _planted(done.results(cell)['data'])
  if planted:
    movers = {(block, int(user)) for block, users in planted.items() for user in users}
    groups['planted movers'] = movers & set(shifted)
    groups['others'] = set(shifted) - movers
  return groups


def compare(done: FinishedGrid, dataset: str, rows: Sequence[grid.Row]) -> List[Dict[str, Any]]:
  """One dict a row and group; [] until the adaptive row and its control are there.

  Returns:
    Dicts with label, group, users (how many), recall (mean over them), seeds, and, but for the
    control itself, gain (%), p_value and p_holm against it.
  """
  cells = {row: done.of(dataset, row) for row in rows}
  seeds = sorted(set(cells[ADAPTIVE]) & set(cells[NO_PRIOR]))
  if not seeds:
    return []
  lines = []
  # Users' shifts are estimated in each seed's own clusters: they count where that seed says so.
  groups = {seed: _groups(done, cells[ADAPTIVE][seed]) for seed in seeds}
  for group in groups[seeds[0]]:
    values = {}
    for row in rows:
      mine = [seed for seed in seeds if seed in cells[row]]
      of_seeds: Dict[tuple, List[float]] = {}
      for seed in mine:
        for key, value in done.per_user(cells[row][seed], METRIC).items():
          if key in groups[seed][group]:
            of_seeds.setdefault(key, []).append(value)
      if mine:
        values[row] = {key: float(np.mean(of_key)) for key, of_key in of_seeds.items()}
    for row, recalls in values.items():
      users, (recall,) = significance.by_user([[recalls]])
      line = {'label': row.label, 'group': group, 'users': len(users), 'seeds': len(seeds),
              'recall': float(recall.mean()) if users else None}
      if row is not NO_PRIOR and recalls.keys() & values[NO_PRIOR].keys():
        _, (ours, theirs) = significance.by_user([[recalls], [values[NO_PRIOR]]])
        line['gain'] = float(100 * (ours.mean() / max(theirs.mean(), 1e-12) - 1))
        line['p_value'] = significance.paired_wilcoxon(ours, theirs).p_value
      lines.append(line)
  comparison.correct(lines)
  return lines


def _table(lines: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  heads = ['users', 'method', 'Recall@20', '% to no prior', 'p', 'p (Holm)', 'number', 'seeds']
  return {'heads': heads, 'cells': [
      [line['group'], line['label'], line['recall'], line.get('gain'), line.get('p_value'), line.get('p_holm'),
       line['users'], line['seeds']] for line in lines]}


class Movers(Table):
  """Recall of groups of users, a line a prior."""
  title = 'The prior, for users with and without a real shift'
  rows = (SGCT, ADAPTIVE, NO_PRIOR, REVERSED_PRIOR)

  def build_for(self, done, dataset, analyses=None):
    lines = compare(done, dataset, self.rows)
    return [self.show(dataset, _table(lines), lines, _NOTE, title=f'{self.title}, {dataset}, test Recall@20')
            ] if lines else []

  def pictures(self, drawn, shown):
    return []

  def sentences(self, shown):
    return []
