"""What a table is: rows of a grid, and what is built, drawn and said from their finished runs."""
import dataclasses
from typing import Any, Dict, List, Optional, Sequence, Tuple

from graphsane_tf.errors import UserError
from graphsane_tf.reporting import comparison, published, wording
from graphsane_tf.reporting.comparison import FinishedGrid
from graphsane_tf.runs.grid import Row

_INTERVALS = 'Intervals: 95 %, Student\'s t over seeds; a single seed has none.'
_TESTED = ('p: Wilcoxon signed-rank test over users, each with their mean over blocks and seeds, two-sided; '
           'p (Holm): corrected for the comparisons of this table.')
_COSTS = ('Epochs and seconds to best: up to the epoch that validation chose, means over blocks and seeds; rebuilds: '
          'of the sampler in a block, each of which ranks all items where it has a reservoir.')


@dataclasses.dataclass(frozen=True)
class Shown:
  """A table ready to be shown.

  Attributes:
    source: where it comes from.
    dataset: data set, '' if it is over all of them.
    stem: name of its files.
    title, note: text above and below.
    table: 'heads' and 'cells'.
    data: the numbers behind it.
    best: head of the column whose largest value may be called the best, or ''.
  """
  source: 'Table'
  dataset: str
  stem: str
  title: str
  note: str
  table: Dict[str, Any]
  data: Any
  best: str = ''


class Table:
  """A table of methods; a subclass that sets `title` and `rows` has all the rest.

  Attributes:
    title: what it shows.
    rows: its lines.
    reference: the row that changes are relative to; the first unless it is set.
    published: stems of the files in graphsane_tf/reporting/paper_results with its numbers, the first that has a value
      counts.
    in_paper: whether it is one of the paper's, which `--what=all` means.
    figure: whether the paper shows it as a picture; its pages then have that, too.
    costs: whether it shows what the way to the best epoch took: epochs, seconds, rebuilds of the sampler.
    told: how the report names a change in its sentences, with {label} and {partner} of the row.
  """
  title: str = ''
  rows: Tuple[Row, ...] = ()
  reference: Row
  published: Tuple[str, ...] = ()
  in_paper: bool = False
  figure: bool = False
  costs: bool = False
  told: str = '{label} changes {partner}'

  def __init__(self, name: str):
    """Names the table as the registry does.

    Raises:
      UserError: if it has no rows, two of the same label, or relates one to a row that it does not have.
    """
    self.name = name
    labels = [row.label for row in self.rows]
    if not labels or len(set(labels)) < len(labels):
      raise UserError(f'table {name} needs rows, each with a label of its own; it has {labels}.')
    self.reference = getattr(self, 'reference', None) or self.rows[0]
    for row in (self.reference, *(row.partner for row in self.rows)):
      if row is not None and row not in self.rows:
        raise UserError(f'table {name} compares with {row.label}, which is none of its rows: add it.')

  def build(self, done: FinishedGrid, analyses=None) -> List[Shown]:
    """What the finished runs give, for every data set.

    Args:
      done: the grid.
      analyses: an `analyses.Analyses`, for what needs the runs' models; None leaves that out.
    """
    return [shown for dataset in done.datasets for shown in self.build_for(done, dataset, analyses)]

  def build_for(self, done: FinishedGrid, dataset: str, analyses=None) -> List[Shown]:
    """The same for one data set; [] if no row is finished."""
    del analyses
    return self.lines_for(done, dataset, self.rows, self.reference)

  def lines_for(self, done: FinishedGrid, dataset: str, rows: Sequence[Row], reference: Row, name: str = ''
               ) -> List[Shown]:
    """A table of some of its rows, relative to one of them; `name` tells it from others of the same data set."""
    lines = comparison.rows(done, dataset, rows, reference, self.published)
    if not any(line['seeds'] for line in lines):
      return []
    notes = [_INTERVALS]
    if any('p_value' in line for line in lines):
      notes.append(_TESTED)
    if any(line['published'] is not None for line in lines):
      notes.append(published.DIFFERENCE)
    if self.costs:
      notes.append(_COSTS)
    return [self.show(dataset, comparison.grid_table(lines, reference.label, self.costs), lines, ' '.join(notes),
                      title=f'{self.title}{name and f": {name}"}, {dataset}, test Recall@20',
                      stem=f'{self.name}-{name}-{dataset}'.replace(' ', '-') if name else '',
                      best='average' if comparison.comparable_seeds(lines) else '')]

  def show(self, dataset: str, table: Dict[str, Any], data: Any, note: str, *, title: str = '', stem: str = '',
           best: str = '') -> Shown:
    """A `Shown` of this table, named by the table and the data set unless told otherwise."""
    return Shown(self, dataset, stem or f'{self.name}-{dataset}', title or f'{self.title}, {dataset}', note,
                 table, data, best)

  def pictures(self, drawn, shown: Shown) -> List[Tuple[str, str]]:
    """SVG and caption of each picture that belongs to what was built.

    Args:
      drawn: a `figures.Figures`.
      shown: from `build`.
    """
    return [(drawn.recall_by_block(shown.data), f'Recall by block and method, {shown.dataset}; a thin line is the '
             '95 % interval of the average over seeds, if there are several')]

  def sentences(self, shown: Shown) -> List[str]:
    """What the numbers say, for the top of the report."""
    return [wording.gain(shown.dataset, line, self.told.format(**line)) for line in shown.data
            if 'gain' in line]


def line_of(lines: Sequence[Dict[str, Any]], row: Row) -> Optional[Dict[str, Any]]:
  """What `comparison.rows` found for a row, None if no seed of it is finished."""
  return next((line for line in lines if line['label'] == row.label and line['seeds']), None)
