"""SANE beyond the main table: on other backbones, and with replay instead of a distiller."""
from typing import Dict, Tuple

from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import DISTILLERS, FINE_TUNE, with_sane
from graphsane_tf.runs.grid import Row

_REPLAYS = (Row('Uniform replay', {'replay': 'uniform'}), Row('Inv_degree replay', {'replay': 'inverse_degree'}))


def _rows(label: str, backbone: str, methods: Tuple[Row, ...]) -> Tuple[Row, ...]:
  """Fine-tuning of a backbone, and each method without and with SANE."""
  def on(row):
    return Row(f'{label} {row.label}', {**row.overrides, 'backbone': backbone})
  plain = [on(row) for row in methods]
  return (on(FINE_TUNE), *(row for one in plain for row in (one, with_sane(one))))


class Backbones(Table):
  """Recall of each block, a table a backbone, each relative to its own fine-tuning.

  MGCCF's distillers are in the main table.
  """
  title = 'SANE on other backbones, and with replay'
  parts: Dict[str, Tuple[Row, ...]] = {
      'MGCCF': _rows('MGCCF', 'mgccf', _REPLAYS),
      'LightGCN': _rows('LightGCN', 'lightgcn', (*DISTILLERS, *_REPLAYS)),
      'PinSage': _rows('PinSage', 'pinsage', (*DISTILLERS, *_REPLAYS))}
  rows = tuple(row for part in parts.values() for row in part)
  told = 'SANE changed {partner}'

  def build_for(self, done, dataset, analyses=None):
    del analyses
    return [shown for name, part in self.parts.items() for shown in self.lines_for(done, dataset, part, part[0], name)]
