"""Average ranks of methods over metrics, and how often SANE wins."""
from typing import Any, Dict, List, Sequence

import numpy as np
from scipy import stats

from graphsane_tf.evaluation.metrics import METRICS
from graphsane_tf.reporting import published
from graphsane_tf.reporting.comparison import FinishedGrid
from graphsane_tf.reporting.specs import DISTILLERS, TABLES, with_sane
from graphsane_tf.training.grid import Row

# What the paper counts: 6 data sets x 4 metrics x 4 cut-offs x 3 distillers.
PUBLISHED_WINS = {'cases': 288, 'wins': 226, 'wins_5': 193}
_PAIRED = tuple(label for name, _ in DISTILLERS for label in (name, with_sane(name)))


def _row(label: str) -> Row:
  return next(row for row in TABLES['main'].rows if row.label == label)


def _common_seeds(done: FinishedGrid, dataset: str, labels: Sequence[str]) -> List[int]:
  """Seeds for which every one of the rows is finished."""
  return sorted(set.intersection(*(set(done.of(dataset, _row(label))) for label in labels)))


def average_ranks(done: FinishedGrid) -> List[Dict[str, Any]]:
  """Mean rank of the six methods with a partner, 1 the best, over data sets, by metric at 20.

  A data set counts if all six are finished for at least one common seed; averages over its blocks
  and common seeds are ranked, equal ones share their mean rank.

  Returns:
    One dict a method: label, datasets, ranks and published ({metric: rank}).
  """
  by_metric = {metric: [] for metric in METRICS}
  used = []
  for dataset in done.datasets:
    seeds = _common_seeds(done, dataset, _PAIRED)
    if not seeds:
      continue
    used.append(dataset)
    for metric in METRICS:
      values = [np.mean([done.averages(dataset, _row(label), f'{metric}@20')[s] for s in seeds])
                for label in _PAIRED]
      by_metric[metric].append(stats.rankdata(-np.array(values)))
  if not used:
    return []
  means = {metric: np.mean(ranks, axis=0) for metric, ranks in by_metric.items()}
  return [{'label': label, 'datasets': used,
           'ranks': {metric: float(means[metric][k]) for metric in METRICS},
           'published': published.ranks(label)} for k, label in enumerate(_PAIRED)]


def spread(done: FinishedGrid) -> Dict[str, List[float]]:
  """Ranks of each main-table method in every (data set, seed, block, metric at 20), for a box plot.

  Only methods that are finished for every seed of some data set take part; {} if fewer than two do.
  """
  labels = [row.label for row in TABLES['main'].rows
            if any(done.of(dataset, row) for dataset in done.datasets)]
  found: Dict[str, List[float]] = {label: [] for label in labels}
  for dataset in done.datasets:
    if len(labels) < 2:
      return {}
    for seed in _common_seeds(done, dataset, labels):
      for metric in METRICS:
        values = np.array([done.blocks(done.of(dataset, _row(label))[seed], f'{metric}@20')
                           for label in labels])
        for ranks in stats.rankdata(-values, axis=0).T:
          for label, rank in zip(labels, ranks):
            found[label].append(float(rank))
  return {label: ranks for label, ranks in found.items() if ranks}


def wins(done: FinishedGrid) -> List[Dict[str, Any]]:
  """How often SANE is ahead of the same distiller without it, over metrics and cut-offs.

  Averages over blocks and common seeds are compared.

  Returns:
    One dict a data set and one named 'all': dataset, cases, wins (> 0), wins_5 (> 5 %), losses
    (< 0), losses_5 (< -5 %).
  """
  found = []
  for dataset in done.datasets:
    gains = []
    for name, _ in DISTILLERS:
      labels = (name, with_sane(name))
      seeds = _common_seeds(done, dataset, labels)
      if not seeds:
        continue
      cell = done.of(dataset, _row(name))[seeds[0]]
      for metric in done.results(cell)['average']:
        plain, sane = (np.mean([done.averages(dataset, _row(label), metric)[s] for s in seeds])
                       for label in labels)
        gains.append(sane / plain - 1 if plain > 0 else float(sane > 0))
    if gains:
      found.append({'dataset': dataset, **_count(np.array(gains))})
  if len(found) > 1:
    found.append({'dataset': 'all', **{key: sum(row[key] for row in found)
                                       for key in found[0] if key != 'dataset'}})
  return found


def _count(gains: np.ndarray) -> Dict[str, int]:
  return {'cases': len(gains), 'wins': int((gains > 0).sum()), 'wins_5': int((gains > .05).sum()),
          'losses': int((gains < 0).sum()), 'losses_5': int((gains < -.05).sum())}


def rank_table(found: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  """Heads and cells of `average_ranks`."""
  heads = ['method', *[f'{metric}@20' for metric in METRICS],
           *[f'published {metric}@20' for metric in METRICS]]
  cells = [[row['label'], *[row['ranks'][m] for m in METRICS],
            *[row['published'].get(m) for m in METRICS]] for row in found]
  return {'heads': heads, 'cells': cells}


def wins_table(found: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  """Heads and cells of `wins`, with the paper's counts as the last line."""
  heads = ['data set', 'comparisons', 'SANE ahead', 'ahead by > 5 %', 'SANE behind',
           'behind by > 5 %']
  names = ('cases', 'wins', 'wins_5', 'losses', 'losses_5')
  cells = [[row['dataset'], *[row[name] for name in names]] for row in found]
  cells.append(['published (6 data sets)', *[PUBLISHED_WINS.get(name) for name in names]])
  return {'heads': heads, 'cells': cells}
