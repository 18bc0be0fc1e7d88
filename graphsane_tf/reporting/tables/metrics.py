"""Average ranks of methods over metrics, and how often SANE wins."""
from typing import Any, Dict, List, Sequence

import numpy as np
from scipy import stats

from graphsane_tf.evaluation.metrics import METRICS
from graphsane_tf.reporting import published, wording
from graphsane_tf.reporting.comparison import FinishedGrid
from graphsane_tf.reporting.tables.base import Shown, Table
from graphsane_tf.reporting.tables.main import Main
from graphsane_tf.runs.grid import Row

# What the paper counts: 6 data sets x 4 metrics x 4 cut-offs x 3 distillers.
PUBLISHED_WINS = {'cases': 288, 'wins': 226, 'wins_5': 193}
# The abstract's mean gains of SANE over six data sets, %.
PUBLISHED_GAINS = {'GraphSAIL': 11.2, 'SGCT': 8.3, 'LWC-KD': 6.4}
_HEADLINE = ('Gain of SANE in test Recall@20 in each data set (averages over blocks and common seeds), and the mean '
             'over data sets. "From its table": the same mean over the data sets of the published main table, which '
             'does not give the numbers of the published abstract.')
_RANKS = ('Rank 1 is the best of the six; averages over blocks and seeds are ranked in each data set, then ranks '
          'are averaged over data sets.')
_WINS = ('Every metric (Recall, Precision, MAP, NDCG) at every cut-off, averages over blocks and seeds, each '
         'distiller with SANE against the same without.')
_COUNTS = ('cases', 'wins', 'wins_5', 'losses', 'losses_5')


def _common_seeds(done: FinishedGrid, dataset: str, rows: Sequence[Row]) -> List[int]:
  """Seeds for which every one of the rows is finished."""
  return sorted(set.intersection(*(set(done.of(dataset, row)) for row in rows)))


def _mean(done: FinishedGrid, dataset: str, row: Row, metric: str, seeds: Sequence[int]) -> float:
  values = done.averages(dataset, row, metric)
  return float(np.mean([values[seed] for seed in seeds]))


def average_ranks(done: FinishedGrid, rows: Sequence[Row]) -> List[Dict[str, Any]]:
  """Mean rank of the rows, 1 the best, over data sets, by metric at 20.

  A data set counts if all of them are finished for at least one common seed; averages over its blocks and
  common seeds are ranked, equal ones share their mean rank.

  Returns:
    One dict a row: label, datasets, ranks and published ({metric: rank}).
  """
  seeds = {dataset: _common_seeds(done, dataset, rows) for dataset in done.datasets}
  used = [dataset for dataset in done.datasets if seeds[dataset]]
  if not used:
    return []
  means = {metric: np.mean([stats.rankdata([-_mean(done, dataset, row, f'{metric}@20', seeds[dataset])
                                            for row in rows]) for dataset in used], axis=0)
           for metric in METRICS}
  return [{'label': row.label, 'datasets': used, 'ranks': {metric: float(means[metric][k]) for metric in METRICS},
           'published': published.ranks(row.label)} for k, row in enumerate(rows)]


def spread(done: FinishedGrid, rows: Sequence[Row]) -> Dict[str, List[float]]:
  """Ranks of each row in every (data set, seed, block, metric at 20), for a box plot.

  Only rows that are finished for some seed of some data set take part; {} if fewer than two do.
  """
  rows = [row for row in rows if any(done.of(dataset, row) for dataset in done.datasets)]
  if len(rows) < 2:
    return {}
  ranks: Dict[str, List[float]] = {row.label: [] for row in rows}
  for dataset in done.datasets:
    for seed in _common_seeds(done, dataset, rows):
      for metric in METRICS:
        values = np.array([done.blocks(done.of(dataset, row)[seed], f'{metric}@20') for row in rows])
        for of_block in stats.rankdata(-values, axis=0).T:
          for row, rank in zip(rows, of_block):
            ranks[row.label].append(float(rank))
  return {label: values for label, values in ranks.items() if values}


def wins(done: FinishedGrid, rows: Sequence[Row]) -> List[Dict[str, Any]]:
  """How often a row is ahead of its partner, over metrics and cut-offs.

  Averages over blocks and common seeds are compared.

  Args:
    done: the grid.
    rows: rows with partners.

  Returns:
    One dict a data set and one named 'all': dataset, cases, wins (> 0), wins_5 (> 5 %), losses (< 0),
    losses_5 (< -5 %), and seeds, the fewest that a comparison rests on.
  """
  lines: List[Dict[str, Any]] = []
  for dataset in done.datasets:
    gains, seeds_used = [], []
    for row, partner in [(row, row.partner) for row in rows if row.partner]:
      seeds = _common_seeds(done, dataset, (row, partner))
      if not seeds:
        continue
      seeds_used.append(len(seeds))
      for metric in done.results(done.of(dataset, row)[seeds[0]])['average']:
        plain, ours = (_mean(done, dataset, side, metric, seeds) for side in (partner, row))
        gains.append(ours / plain - 1 if plain > 0 else float(ours > 0))
    if gains:
      lines.append({'dataset': dataset, **_count(np.array(gains)), 'seeds': min(seeds_used)})
  if len(lines) > 1:
    lines.append({'dataset': 'all', **{name: sum(line[name] for line in lines) for name in _COUNTS},
                  'seeds': min(line['seeds'] for line in lines)})
  return lines


def headline(done: FinishedGrid, rows: Sequence[Row]) -> List[Dict[str, Any]]:
  """The abstract's sentence: how much SANE adds to each method on average over data sets.

  Args:
    done: the grid.
    rows: rows with partners.

  Returns:
    One dict a row that is finished somewhere, beside its partner: label (of the partner), gains ({data set: %}), mean,
    seeds (the fewest), published (the abstract's) and from_table (the mean over the published main table), or None.
  """
  lines = []
  for row, partner in [(row, row.partner) for row in rows if row.partner]:
    gains, seeds_used = {}, []
    for dataset in done.datasets:
      seeds = _common_seeds(done, dataset, (row, partner))
      if seeds:
        ours, plain = (_mean(done, dataset, side, 'recall@20', seeds) for side in (row, partner))
        gains[dataset] = 100 * (ours / max(plain, 1e-12) - 1)
        seeds_used.append(len(seeds))
    if gains:
      printed = [100 * (with_sane / without - 1) for dataset in published.datasets('main')
                 if (with_sane := published.recall(('main',), dataset, row.label))
                 and (without := published.recall(('main',), dataset, partner.label))]
      lines.append({'label': partner.label, 'gains': gains, 'mean': float(np.mean(list(gains.values()))),
                    'seeds': min(seeds_used), 'published': PUBLISHED_GAINS.get(partner.label),
                    'from_table': float(np.mean(printed)) if printed else None})
  return lines


def _headline_table(lines: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  datasets = list(dict.fromkeys(dataset for line in lines for dataset in line['gains']))
  heads = ['method', *[f'{dataset}, %' for dataset in datasets], 'mean, %', 'abstract, %', 'from its table, %', 'seeds']
  return {'heads': heads, 'cells': [
      [line['label'], *[line['gains'].get(dataset) for dataset in datasets], line['mean'], line['published'],
       line['from_table'], line['seeds']] for line in lines]}


def _count(gains: np.ndarray) -> Dict[str, int]:
  return {'cases': len(gains), 'wins': int((gains > 0).sum()), 'wins_5': int((gains > .05).sum()),
          'losses': int((gains < 0).sum()), 'losses_5': int((gains < -.05).sum())}


def _rank_table(lines: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  heads = ['method', *[f'{metric}@20' for metric in METRICS], *[f'published {metric}@20' for metric in METRICS]]
  cells = [[line['label'], *[line['ranks'][m] for m in METRICS], *[line['published'].get(m) for m in METRICS]]
           for line in lines]
  return {'heads': heads, 'cells': cells}


def _wins_table(lines: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  """With the paper's counts as the last line."""
  heads = ['data set', 'comparisons', 'SANE ahead', 'ahead by > 5 %', 'SANE behind', 'behind by > 5 %']
  cells = [[line['dataset'], *[line[name] for name in _COUNTS]] for line in lines]
  cells.append(['published (6 data sets)', *[PUBLISHED_WINS.get(name) for name in _COUNTS]])
  return {'heads': heads, 'cells': cells}


class Metrics(Table):
  """The main table's methods over all metrics and data sets."""
  title = 'Ranks and wins over all metrics'
  rows = Main.rows
  published = ('metric_ranks',)
  in_paper = True
  figure = True
  # Rows with a partner, and before each the partner.
  with_partner = tuple(row for row in Main.rows if row.partner)
  pairs = tuple(side for row in with_partner for side in (row.partner, row))

  def build(self, done, analyses=None):
    del analyses
    # Of a single data set they are pages of that, as other tables are.
    only = done.datasets[0] if len(done.datasets) == 1 else ''

    def add(table, data, note, stem, title):
      shown.append(self.show('', table, data, f'{note} {published.DIFFERENCE}',
                             stem=f'{self.name}-{stem}{only and f"-{only}"}',
                             title=f'{self.title}: {title}{only and f", {only}"}'))

    shown: List[Shown] = []
    ranks, counts = average_ranks(done, self.pairs), wins(done, self.with_partner)
    if ranks:
      over = '' if only else f' over {", ".join(ranks[0]["datasets"])}'
      add(_rank_table(ranks), {'ranks': ranks, 'spread': spread(done, self.rows)}, _RANKS, 'ranks',
          f'average ranks{over}')
    if counts:
      add(_wins_table(counts), counts, _WINS, 'wins', 'how often SANE is ahead')
    gains = headline(done, self.with_partner)
    if gains:
      add(_headline_table(gains), {'headline': gains}, _HEADLINE, 'headline', 'what SANE adds on average')
    return shown

  def pictures(self, drawn, shown):
    if isinstance(shown.data, list) or not shown.data.get('spread'):
      return []
    marked = {row.label for row in self.with_partner}
    return [(drawn.rank_boxes(shown.data['spread'], marked, 'with SANE'),
             'Ranks of the methods over data sets, seeds, blocks and metrics at 20')]

  def sentences(self, shown):
    if not isinstance(shown.data, list):
      lines = shown.data.get('headline', [])
      if not lines:
        return []
      told = ', '.join(f'{line["label"]} by {line["mean"]:+.1f} %' for line in lines)
      count = len({dataset for line in lines for dataset in line['gains']})
      return [f'On average over {count} {"data set" if count == 1 else "data sets"} SANE changed {told} in Recall@20 '
              f'({wording.counted(min(line["seeds"] for line in lines))}; the paper\'s abstract: '
              f'{", ".join(f"{value:+.1f} %" for value in PUBLISHED_GAINS.values())} over six).']
    last = shown.data[-1]
    seeds = 'On one seed ' if last['seeds'] == 1 else ''
    return [f'{seeds}SANE is ahead in {last["wins"]} of {last["cases"]} comparisons over all metrics and '
            f'cut-offs, by more than 5 % in {last["wins_5"]}, and behind in {last["losses"]}.']
