"""What each part of the strong recipe is worth: one taken away or added at a time. `--extra=--config=strong`."""
from typing import Any

from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import LWCKD, SGCT, with_sane
from graphsane_tf.runs.grid import Row

STRONG = Row('Strong')


def _other(label: str, **overrides: Any) -> Row:
  """The recipe with other fields, tested against it; a dot of a field's name is written as __."""
  return Row(label, {name.replace('__', '.'): value for name, value in overrides.items()}, partner=STRONG)


class Strong(Table):
  """Recall of each block, a line a change of one part."""
  title = 'Parts of the strong recipe'
  rows = (STRONG,
          _other('memory: none', memory='none'),
          _other('memory: popularity', memory='popularity'),
          _other('memory: neighbours', memory='knn'),
          _other('loss: BPR', train__loss='bpr'),
          _other('backbone: MGCCF', backbone='mgccf'),
          *(Row(f'negatives: SANE {variant}', with_sane(STRONG, sane_variant=variant).overrides, partner=STRONG)
            for variant in ('paper', 'band', 'adaptive')),
          _other('distiller: SGCT', **SGCT.overrides),
          _other('distiller: SGCT, strength 0.5', kd_strength=.5, **SGCT.overrides),
          _other('distiller: LWC-KD', **LWCKD.overrides),
          _other('replay: uniform', replay='uniform'),
          _other('new rows: neighbours', model__new_rows='neighbours'),
          _other('epoch 0 a candidate', train__epoch_zero=True),
          _other('full retraining', full_retrain=True))

  def pictures(self, drawn, shown):
    return []

  def sentences(self, shown):
    return []
