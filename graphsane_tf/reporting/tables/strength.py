"""How strong each distiller is beside the ranking loss: the ratio of their gradients, by term."""
from typing import Any, Dict, List

import numpy as np

from graphsane_tf.reporting import comparison, wording
from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import GRAPHSAIL, LWCKD, SGCT
from graphsane_tf.runs.grid import Row

# The strength that is asked for; what the losses have to be multiplied by for it tells what they have by themselves.
_ASKED = 1.
_NOTE = ("Norm of the distiller's gradient on the embedding tables over that of the ranking losses, with the weights "
         'as they are configured, before any scaling: means over seeds of the last 8 of the first 32 steps of a block. '
         'A term stands alone in its row. From then on the block is trained at a ratio of 1.')


def _row(label: str, plain: Row, **overrides: Any) -> Row:
  return Row(label, {**plain.overrides, 'kd_strength': _ASKED,
                     **{name.replace('__', '.'): value for name, value in overrides.items()}})


def _term(name: str) -> Row:
  """GraphSAIL with one of its terms alone."""
  return _row(f'GraphSAIL, {name}', GRAPHSAIL,
              **{f'graphsail__{other}_weight': 0. for other in ('self', 'local', 'global') if other != name})


class Strength(Table):
  """The ratio of each block, a line a distiller."""
  title = 'How strong distillers are beside the ranking loss'
  rows = (_row('LSP_s', Row('', {'kd': 'lsp'})), _row('GraphSAIL', GRAPHSAIL), _term('self'), _term('local'),
          _term('global'), _row('SGCT', SGCT), _row('LWC-KD', LWCKD))

  def build_for(self, done, dataset, analyses=None):
    del analyses
    lines = ratios(done, dataset, self.rows)
    if not lines:
      return []
    width = max(len(line['ratios']) for line in lines)
    table = {'heads': ['method', *[f'ratio, block {block + 1}' for block in range(width)], 'seeds'],
             'cells': [[line['label'], *[f'{ratio:.2g}' for ratio in line['ratios']], line['seeds']] for line in lines]}
    return [self.show(dataset, table, lines, _NOTE)]

  def pictures(self, drawn, shown):
    return []

  def sentences(self, shown):
    return [f'{shown.dataset}: the gradient of {line["label"]} is {np.mean(line["ratios"]):.2g} of that of the ranking '
            f'loss ({wording.counted(line["seeds"])}).' for line in shown.data]


def ratios(done: comparison.FinishedGrid, dataset: str, rows) -> List[Dict[str, Any]]:
  """One dict a finished row: label, ratios (of each incremental block, means over seeds) and seeds."""
  lines = []
  for row in rows:
    cells = done.of(dataset, row).values()
    # A run whose distiller had no gradient that could be scaled has a scale of exactly 1.
    values = [[_ASKED / entry['kd_scale'] if entry['kd_scale'] != 1. else 0.
               for entry in done.results(cell)['blocks'][1:]] for cell in cells]
    if values:
      lines.append({'label': row.label, 'ratios': np.mean(values, axis=0).tolist(), 'seeds': len(values)})
  return lines
