"""The strongest simple models, refitted at every block, beside the graph model with and without a memory."""
from typing import Any, Dict, List

import numpy as np

from graphsane_tf.evaluation import significance
from graphsane_tf.reporting import comparison, wording
from graphsane_tf.reporting.comparison import METRIC, FinishedGrid
from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import FINE_TUNE, SGCT, with_sane
from graphsane_tf.runs.grid import Row

_NAMES = {'popularity': 'Popularity, all history', 'recent_popularity': 'Popularity, recent',
          'last_popularity': 'Popularity, last block', 'neighbours': 'Item neighbours', 'ease': 'EASE', 'ials': 'iALS'}
PEERS = tuple(Row(label, {'peer': name}, alone=True) for name, label in _NAMES.items())
_NOTE = ('Peers are refitted to all rows so far at every block, have no seeds, and their settings are those that rank '
         'the validation rows of the blocks so far best; their seconds are those of all settings tried. Untouched '
         "base: the base block's model on later blocks, for the users and items that it knows.")
# Without a memory, whatever the flags of the whole grid say: `--extra=--config=strong` has one.
_PLAIN = Row(FINE_TUNE.label, {**FINE_TUNE.overrides, 'memory': 'none'})
_ADAPTIVE = Row('SGCT-SANE adaptive', {**with_sane(SGCT, sane_variant='adaptive').overrides, 'memory': 'none'},
                partner=_PLAIN)
# The base block's weights stay; the graph that they work on is today's.
_GRAPH_ONLY = Row("Base weights, today's graph", {'train.epochs': 0, 'memory': 'none'}, partner=_PLAIN)


def remembering(row: Row, memory: str = 'ease') -> Row:
  """The row with a memory, tested against the row without."""
  return Row(f'{row.label} + memory', {**row.overrides, 'memory': memory}, partner=row)


def untouched(done: FinishedGrid, dataset: str, row: Row) -> List[Dict[str, Any]]:
  """A line of the base block's model on the test rows of later blocks; [] if no run tells."""
  values = {}
  for seed, cell in done.of(dataset, row).items():
    recall = done.results(cell)['blocks'][0].get('on_blocks', {}).get('recall', [])[1:]
    if recall and None not in recall:
      values[seed] = np.array(recall)
  if not values:
    return []
  interval = significance.interval([float(one.mean()) for one in values.values()])
  return [{'label': 'Untouched base', 'seeds': len(values), 'blocks': np.mean(list(values.values()), axis=0).tolist(),
           'average': interval.mean, 'low': interval.low, 'high': interval.high, 'seconds': 0., 'published': None,
           'values': {seed: float(one.mean()) for seed, one in values.items()}}]


class Peers(Table):
  """Recall of each block: simple models, and ours. `--extra=--config=strong`."""
  title = 'Against simple models'
  rows = (*PEERS, *(row for plain in (_GRAPH_ONLY, _PLAIN, _ADAPTIVE) for row in (plain, remembering(plain))))

  def build_for(self, done, dataset, analyses=None):
    shown = super().build_for(done, dataset, analyses)
    for part in shown:
      part.data.extend(untouched(done, dataset, _PLAIN))
    return [self.show(part.dataset, comparison.grid_table(part.data, self.reference.label), part.data,
                      f'{part.note} {_NOTE}', title=part.title) for part in shown]

  def sentences(self, shown):
    finished = [line for line in shown.data if line['seeds']]
    simple = [line for line in finished if line['label'] in _NAMES.values()]
    ours = [line for line in finished if line['label'] not in _NAMES.values()]
    if not simple or not ours:
      return []
    best, own = (max(lines, key=lambda line: line['average']) for lines in (simple, ours))
    return [f'{shown.dataset}: the best simple model is {best["label"]} with {METRIC} {best["average"]:.4f}; ours is '
            f'{own["label"]} with {own["average"]:.4f} ({100 * (own["average"] / best["average"] - 1):+.1f} %, '
            f'{wording.counted(own["seeds"])}).']
