"""Loss ablation: a distiller alone, with hard clusters, with SANE."""
import dataclasses

from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import FINE_TUNE, LWCKD, SANE, SGCT, with_sane

# Whether a row has a loss, from what it sets.
_LOSSES = {
    'BPR': lambda row: True,
    'KD': lambda row: 'kd' in row.overrides,
    'SANE': lambda row: 'sampler' in row.overrides,
    'KL': lambda row: 'sampler' in row.overrides and 'clusters' not in row.overrides,
    'end to end': lambda row: 'clusters' not in row.overrides,
}


class Ablation(Table):
  """Recall of each block, a line a set of losses."""
  title = 'Loss ablation'
  rows = (FINE_TUNE, *(row for plain in (SGCT, LWCKD) for row in (
      plain, with_sane(plain, '{}-hard-cluster', clusters='kmeans'), SANE[plain])))
  published = ('ablation_sgct', 'ablation_lwckd')
  in_paper = True

  def build_for(self, done, dataset, analyses=None):
    return [dataclasses.replace(shown, table=self._marked(shown.table))
            for shown in super().build_for(done, dataset, analyses)]

  def _marked(self, table):
    """The table with a check mark for each loss, after the method's name."""
    marks = [['✓' if has(row) else '' for has in _LOSSES.values()] for row in self.rows]
    return {'heads': [table['heads'][0], *_LOSSES, *table['heads'][1:]],
            'cells': [[cells[0], *mark, *cells[1:]] for cells, mark in zip(table['cells'], marks)]}

  def sentences(self, shown):
    return []
