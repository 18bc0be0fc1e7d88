"""The case study: users whose interests move against the others, by negative sampler."""
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from scipy import stats

from graphsane_tf.evaluation import significance
from graphsane_tf.reporting import comparison, wording
from graphsane_tf.reporting.tables import samplers
from graphsane_tf.reporting.tables.base import Table, line_of

_NOTE = ('The 15 % of users with the largest interest shift (K-means with 10 clusters on SGCT\'s item embeddings) '
         'against the other 85 %; users with rows in a block and in the one before. Old positives: share of items '
         'from earlier blocks among the negatives of one replayed epoch with the finished model; "in its own '
         'slots" is without uniform ones. Intervals: 95 %, Student\'s t over seeds. p: Mann-Whitney test, two-sided, '
         'of whether the change of a user against uniform negatives, mean over blocks and seeds, is the same in both '
         'groups; p (Holm): corrected for the samplers of this table.')
# One sampler and seed: group to what was measured, from `reporting.case_study.study_seed`.
Study = Dict[str, Any]


def compare(studies: Dict[str, List[Study]], reference: str) -> List[Dict[str, Any]]:
  """Means over seeds, relative to the reference sampler.

  Args:
    studies: label to one study a seed.
    reference: label of the uniform sampler.

  Returns:
    One dict a label: label, seeds, for each group a dict of users (a seed's mean), recall, recall_span and
    old_share_span (95 % over seeds, None for one), gain (% of recall), old_share, sampler_old_share, ratio (of
    old_share to the reference's), and for all but the reference those of `between`.
  """
  def mean(label, group, name):
    values = [study[group][name] for study in studies.get(label, [])
              if study[group][name] is not None]
    return significance.interval(values) if values else None
  lines = []
  for label, of_seeds in studies.items():
    line: Dict[str, Any] = {'label': label, 'seeds': len(of_seeds)}
    for group in ('high', 'rest'):
      recall, base = mean(label, group, 'recall'), mean(reference, group, 'recall')
      old, base_old = mean(label, group, 'old_share'), mean(reference, group, 'old_share')
      line[group] = {
          'users': mean(label, group, 'users').mean,
          'recall': recall.mean if recall else None, 'recall_span': _span(recall), 'old_share_span': _span(old),
          'gain': 100 * (recall.mean / base.mean - 1) if recall and base and base.mean else None,
          'old_share': old.mean, 'sampler_old_share': mean(label, group, 'sampler_old_share').mean,
          'ratio': old.mean / base_old.mean if base_old and base_old.mean else None}
    if label != reference:
      line.update(between(of_seeds, studies.get(reference, [])))
    lines.append(line)
  comparison.correct(lines)
  return lines


def _span(interval: Optional[significance.Interval]) -> Optional[Tuple[float, float]]:
  if interval is None or interval.low is None or interval.high is None:
    return None
  return interval.low, interval.high


def between(ours: Sequence[Study], plain: Sequence[Study]) -> Dict[str, float]:
  """Whether a sampler changes the recall of one group by more than that of the other.

  The change of a user is the mean over the blocks and seeds that count them in the group; ranks of the two groups'
  changes are compared. Who is in one group in one block and in the other in the next has a change in each.

  Args:
    ours: one study a seed.
    plain: the same of the reference; studies of one seed are compared.

  Returns:
    change_gap (mean change of the group that moves minus that of the others) and p_value; {} where one has no users.
  """
  changes = {}
  by_seed = {study['seed']: study for study in plain if 'seed' in study}
  pairs = [(study, by_seed[study['seed']]) for study in ours if study.get('seed') in by_seed]
  for group in ('high', 'rest'):
    of_key: Dict[tuple, List[float]] = {}
    for mine, other in pairs:
      recalls, base = mine[group].get('recalls', {}), other[group].get('recalls', {})
      for key in recalls.keys() & base.keys():
        of_key.setdefault(key, []).append(recalls[key] - base[key])
    _, (changes[group],) = significance.by_user([[{key: float(np.mean(values)) for key, values in of_key.items()}]])
  if not all(len(values) for values in changes.values()):
    return {}
  test = stats.mannwhitneyu(changes['high'], changes['rest'])
  return {'change_gap': float(changes['high'].mean() - changes['rest'].mean()), 'p_value': float(test.pvalue)}


def _table(lines: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  groups = {'high': 'top 15', 'rest': 'other 85'}
  def told(span):
    return None if span is None else f'{span[0]:.4f} to {span[1]:.4f}'
  columns: Dict[str, List[Any]] = {'sampler': [line['label'] for line in lines]}
  for group, name in groups.items():
    columns.update({
        f'Recall@20, {name}': [line[group]['recall'] for line in lines],
        f'95 % interval, {name}': [told(line[group]['recall_span']) for line in lines],
        f'change %, {name}': [line[group]['gain'] for line in lines]})
  columns.update({
      'gap of changes': [line.get('change_gap') for line in lines], 'p': [line.get('p_value') for line in lines],
      'p (Holm)': [line.get('p_holm') for line in lines]})
  for group, name in groups.items():
    columns.update({
        f'old positives, {name}': [line[group]['old_share'] for line in lines],
        f'interval of old positives, {name}': [told(line[group]['old_share_span']) for line in lines],
        f'ratio to uniform, {name}': [line[group]['ratio'] for line in lines],
        f'in its own slots, {name}': [line[group]['sampler_old_share'] for line in lines]})
  columns['seeds'] = [line['seeds'] for line in lines]
  columns = {head: values for head, values in columns.items() if any(value is not None for value in values)}
  return {'heads': list(columns), 'cells': [list(cells) for cells in zip(*columns.values())]}


class CaseStudy(Table):
  """Recall and old positives of two groups of users, a line a sampler."""
  title = 'Case study: users whose interests move'
  rows = samplers.ROWS
  in_paper = True

  def build_for(self, done, dataset, analyses=None):
    lines = compare(analyses.case_study(dataset, self.rows, self.reference),
                    self.reference.label) if analyses else []
    return [self.show(dataset, _table(lines), lines, _NOTE)] if lines else []

  def pictures(self, drawn, shown):
    return [(drawn.case_study(shown.data), f'Users whose interests move, by sampler, {shown.dataset}')]

  def sentences(self, shown):
    line = line_of(shown.data, samplers.SANE)
    if not line or line['high']['gain'] is None or line['rest']['gain'] is None:
      return []
    ratio = line['high']['ratio']
    old = '' if ratio is None else (f'; old positives are {ratio:.1f} times as frequent among their negatives as '
                                    'with uniform ones')
    test = 'no test' if 'p_value' not in line else (
        f'Mann-Whitney p = {line["p_value"]:.2g} between the groups\' changes, with Holm\'s correction '
        f'{line["p_holm"]:.2g}')
    return [f'{shown.dataset}: with SANE the Recall@20 of the 15 % of users with the largest interest shift '
            f'changed by {line["high"]["gain"]:+.1f} %, that of the others by {line["rest"]["gain"]:+.1f} % '
            f'({wording.counted(line["seeds"])}, {test}){old}.']
