"""Loss ablation: a distiller alone, with hard clusters, with SANE."""
from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import FINE_TUNE, LWCKD, SANE, SGCT, with_sane


class Ablation(Table):
  """Recall of each block, a line a set of losses."""
  title = 'Loss ablation'
  rows = (FINE_TUNE, *(row for plain in (SGCT, LWCKD) for row in (
      plain, with_sane(plain, '{}-hard-cluster', clusters='kmeans'), SANE[plain])))
  published = ('ablation_sgct', 'ablation_lwckd')
  in_paper = True

  def sentences(self, shown):
    return []
