"""How much a number that people choose matters: clusters K and the size of the reservoir |Q|."""
from typing import Dict, Sequence, Tuple

from graphsane_tf.reporting import comparison
from graphsane_tf.reporting.tables.base import Table, line_of
from graphsane_tf.reporting.tables.methods import LWCKD, SGCT
from graphsane_tf.runs.grid import Row

# Name of a curve to its rows by the value of the field.
Curves = Dict[str, Dict[int, Row]]


def _curves(letter: str, field: str, values: Sequence[int]) -> Curves:
  return {f'{plain.label}-SANE': {
      value: Row(f'{plain.label}-SANE {letter}={value}', {**plain.overrides, 'sampler': 'sane', field: value})
      for value in values} for plain in (SGCT, LWCKD)}


def _rows(curves: Curves) -> Tuple[Row, ...]:
  return tuple(row for points in curves.values() for row in points.values())


class Sensitivity(Table):
  """Recall over one field of the configuration, a curve a distiller.

  Attributes:
    curves: its rows by curve and value.
    symbol: of the field.
  """
  curves: Curves = {}
  symbol = ''
  in_paper = True
  figure = True

  def _points(self, shown):
    """Curve to value to line, of the rows that are finished."""
    return {name: {value: line for value, row in points.items() if (line := line_of(shown.data, row))}
            for name, points in self.curves.items()}

  def pictures(self, drawn, shown):
    return [(drawn.sensitivity(self._points(shown), self.symbol), shown.title)]

  def sentences(self, shown):
    seeds = comparison.comparable_seeds(shown.data)
    told = []
    for name, points in self._points(shown).items() if seeds else ():
      best, worst = (choose(points, key=lambda value: points[value]['average']) for choose in (max, min))
      change = 100 * (points[best]['average'] / max(points[worst]['average'], 1e-12) - 1)
      told.append(f'{shown.dataset}: over {self.symbol} the Recall@20 of {name} spans {change:.1f} % (best at '
                  f'{best}, worst at {worst}, {seeds} seeds).')
    return told


class ClustersK(Sensitivity):
  """Number of clusters."""
  title = 'Number of clusters K'
  curves = _curves('K', 'clustering.num_clusters', (5, 10, 15, 20, 25))
  rows = _rows(curves)
  reference = curves['SGCT-SANE'][10]
  published = ('sensitivity_k',)
  symbol = 'K'


class ReservoirQ(Sensitivity):
  """Size of the reservoir."""
  title = 'Size of the reservoir |Q|'
  curves = _curves('Q', 'sane.size', (50, 100, 300))
  rows = _rows(curves)
  reference = curves['SGCT-SANE'][100]
  published = ('sensitivity_q',)
  symbol = '|Q|'
