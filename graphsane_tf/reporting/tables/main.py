"""The main table: updates of the model, and distillers with and without SANE."""
from graphsane_tf.reporting import wording
from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import DISTILLERS, FINE_TUNE, LWCKD, SANE, SGCT
from graphsane_tf.reporting.tables.peers import PEERS
from graphsane_tf.runs.grid import Row

# Rows whose learning curves the report draws, and the one whose users it shows.
CURVES = (FINE_TUNE, SGCT, SANE[SGCT], LWCKD, SANE[LWCKD])
EXAMPLES = SANE[SGCT]


class Main(Table):
  """Recall of each block, a line a method."""
  title = 'Incremental methods with and without SANE'
  rows = (FINE_TUNE, Row('LSP_s', {'kd': 'lsp'}), Row('Uniform replay', {'replay': 'uniform'}),
          Row('Inv_degree replay', {'replay': 'inverse_degree'}),
          *(row for plain in DISTILLERS for row in (plain, SANE[plain])), *PEERS)
  published = ('per_block', 'main')
  in_paper = True
  told = 'SANE changed {partner}'

  def sentences(self, shown):
    return [*super().sentences(shown), *wording.best(shown.dataset, 'method of the main table', shown.data)]
