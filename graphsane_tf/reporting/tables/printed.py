"""The paper's settings as printed, and one field apart: `--extra=--config=paper`."""
from typing import Dict, Tuple

from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import FINE_TUNE, SGCT, with_sane
from graphsane_tf.runs.grid import Row


def _rows(scope: str) -> Tuple[Row, ...]:
  """Fine-tuning, SGCT and SGCT with two kinds of SANE; messages pass along the block's edges, or all so far."""
  def on(row):
    return Row(f'{row.label}, {scope}', {**row.overrides, 'model.graph_scope': scope})
  plain, distilled = on(FINE_TUNE), on(SGCT)
  return (plain, distilled, *(
      Row(f'SGCT-SANE {variant}, {scope}', {**with_sane(SGCT, sane_variant=variant).overrides,
                                            'model.graph_scope': scope}, partner=distilled)
      for variant in ('paper', 'band')))


class Printed(Table):
  """Recall of each block, a table a message graph, each relative to its own fine-tuning."""
  title = 'The printed settings'
  parts: Dict[str, Tuple[Row, ...]] = {f'{scope} graph': _rows(scope) for scope in ('block', 'accumulated')}
  rows = tuple(row for part in parts.values() for row in part)
  told = 'SANE changed {partner}'

  def build_for(self, done, dataset, analyses=None):
    del analyses
    return [shown for name, part in self.parts.items() for shown in self.lines_for(done, dataset, part, part[0], name)]
