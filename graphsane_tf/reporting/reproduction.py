"""From a grid's folders to the paper's tables, as files and as one report."""
import dataclasses
from typing import Any, Callable, Dict, List, Sequence

from graphsane_tf.reporting import comparison, learned, movers, outputs, published, ranks
from graphsane_tf.reporting.comparison import FinishedGrid
from graphsane_tf.reporting.specs import TABLES
from graphsane_tf.training import grid

_INTERVALS = 'Intervals: 95 %, Student\'s t over seeds; a single seed has none.'
_TESTED = ('p: Wilcoxon signed-rank test over (block, user) pairs, each with its mean over seeds, '
           'two-sided, not corrected for the number of comparisons.')
_RANKS = ('Rank 1 is the best of the six; averages over blocks and seeds are ranked in each data '
          'set, then ranks are averaged over data sets.')
_WINS = ('Every metric (Recall, Precision, MAP, NDCG) at every cut-off, averages over blocks and '
         'seeds, each distiller with SANE against the same without.')
_CASE = ('The 15 % of users with the largest interest shift (K-means with 10 clusters on SGCT\'s '
         'item embeddings) against the other 85 %; users with rows in a block and in the one '
         'before. Old positives: share of items from earlier blocks among the negatives of one '
         'replayed epoch with the finished model; "in its own slots" is without uniform ones.')


@dataclasses.dataclass(frozen=True)
class Shown:
  """A table ready to be shown.

  Attributes:
    name: key of `TABLES`.
    dataset: data set, '' if it is over all of them.
    stem: name of its files.
    title, note: text above and below.
    table: 'heads' and 'cells'.
    data: the numbers behind it.
  """
  name: str
  dataset: str
  stem: str
  title: str
  note: str
  table: Dict[str, Any]
  data: Any


def tables(done: FinishedGrid, names: Sequence[str], analyses) -> List[Shown]:
  """Every table asked for that has at least one finished row.

  Args:
    done: the grid.
    names: keys of `TABLES`.
    analyses: an `analyses.Analyses`; None leaves the case study out.
  """
  found = []
  for name in names:
    title = TABLES[name].title
    if name == 'metrics':
      found += _metrics(done, title)
      continue
    for dataset in done.datasets:
      if name == 'case_study':
        rows = analyses.case_study(dataset) if analyses else []
        if rows:
          found.append(Shown(name, dataset, f'{name}-{dataset}', f'{title}, {dataset}', _CASE,
                             _case_table(rows), rows))
        continue
      if name == 'movers':
        rows = movers.rows(done, dataset)
        if rows:
          found.append(Shown(name, dataset, f'{name}-{dataset}', f'{title}, {dataset}, test Recall@20',
                             movers.NOTE, movers.table(rows), rows))
        continue
      rows = comparison.rows(done, TABLES[name], dataset)
      if any(row['seeds'] for row in rows):
        notes = [_INTERVALS]
        if any('p_value' in row for row in rows):
          notes.append(_TESTED)
        if any(row['published'] is not None for row in rows):
          notes.append(published.DIFFERENCE)
        found.append(Shown(name, dataset, f'{name}-{dataset}',
                           f'{title}, {dataset}, test Recall@20', ' '.join(notes),
                           comparison.grid_table(name, rows), rows))
      rows = learned.rows(done, dataset) if name == 'variants' else []
      if rows:
        found.append(Shown(name, dataset, f'learned-{dataset}',
                           f'What the adaptive reservoir learned, {dataset}', learned.NOTE,
                           learned.table(rows), rows))
  return found


def _case_table(rows):
  from graphsane_tf.reporting import case_study  # pylint: disable=g-import-not-at-top
  return case_study.table(rows)


def _metrics(done: FinishedGrid, title: str) -> List[Shown]:
  found = []
  average, counted = ranks.average_ranks(done), ranks.wins(done)
  if average:
    found.append(Shown('metrics', '', 'metrics-ranks', f'{title}: average ranks over '
                       f'{", ".join(average[0]["datasets"])}', f'{_RANKS} {published.DIFFERENCE}',
                       ranks.rank_table(average), {'ranks': average, 'spread': ranks.spread(done)}))
  if counted:
    found.append(Shown('metrics', '', 'metrics-wins', f'{title}: how often SANE is ahead',
                       f'{_WINS} {published.DIFFERENCE}', ranks.wins_table(counted), counted))
  return found


def write(shown: Sequence[Shown], workdir, log: Callable[[str], None]) -> None:
  """Writes and prints the tables."""
  for table in shown:
    log('\n' + outputs.write(workdir, table.stem, table.table, table.title, table.note, table.data))


def plan(cells: Sequence[grid.Cell], jobs: int) -> str:
  """What a grid would do: every cell, finished or not, with an estimate."""
  lines, total, rough = [], 0., False
  taken = grid.seconds_taken(cells)
  for cell in cells:
    place = f'{cell.dataset}  seed {cell.seed}  {cell.name}'
    if cell in taken:
      lines.append(f'done   {place}')
      continue
    seconds, known = grid.estimate(cell, taken)
    total += seconds
    rough = rough or not known
    lines.append(f'to do  {place}  about {grid.duration(seconds)}{"" if known else " (rough)"}')
  todo = sum(line.startswith('to do') for line in lines)
  source = 'a rough table' if rough else 'finished cells'
  time = grid.duration(total / max(1, jobs))
  lines.append(f'{todo} of {len(cells)} cells to do, about {time} with --jobs={jobs} (from '
               f'{source}).' if todo else f'all {len(cells)} cells are done.')
  return '\n'.join(lines)
