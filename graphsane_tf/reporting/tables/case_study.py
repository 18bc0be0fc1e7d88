"""The case study: users whose interests move against the others, by negative sampler."""
from typing import Any, Dict, List, Sequence

from graphsane_tf.evaluation import significance
from graphsane_tf.reporting import wording
from graphsane_tf.reporting.tables import samplers
from graphsane_tf.reporting.tables.base import Table, line_of

_NOTE = ('The 15 % of users with the largest interest shift (K-means with 10 clusters on SGCT\'s item embeddings) '
         'against the other 85 %; users with rows in a block and in the one before. Old positives: share of items '
         'from earlier blocks among the negatives of one replayed epoch with the finished model; "in its own '
         'slots" is without uniform ones.')
# One sampler and seed: group to what was measured, from `reporting.case_study.study_seed`.
Study = Dict[str, Dict[str, Any]]


def compare(studies: Dict[str, List[Study]], reference: str) -> List[Dict[str, Any]]:
  """Means over seeds, relative to the reference sampler.

  Args:
    studies: label to one study a seed.
    reference: label of the uniform sampler.

  Returns:
    One dict a label: label, seeds, and for each group a dict of users (a seed's mean), recall, low,
    high, gain (% of recall), old_share, sampler_old_share, ratio (of old_share to the reference's).
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
          'recall': recall.mean if recall else None, 'low': recall.low if recall else None,
          'high': recall.high if recall else None,
          'gain': 100 * (recall.mean / base.mean - 1) if recall and base and base.mean else None,
          'old_share': old.mean, 'sampler_old_share': mean(label, group, 'sampler_old_share').mean,
          'ratio': old.mean / base_old.mean if base_old and base_old.mean else None}
    lines.append(line)
  return lines


def _table(lines: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
  groups = {'high': 'top 15', 'rest': 'other 85'}
  heads = ['sampler', *[f'{what}, {name}' for name in groups.values() for what in ('Recall@20', 'change %')],
           *[f'{what}, {name}' for name in groups.values()
             for what in ('old positives', 'ratio to uniform', 'in its own slots')], 'seeds']
  cells = [[line['label'], *[line[group][name] for group in groups for name in ('recall', 'gain')],
            *[line[group][name] for group in groups for name in ('old_share', 'ratio', 'sampler_old_share')],
            line['seeds']] for line in lines]
  return {'heads': heads, 'cells': cells}


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
    return [f'{shown.dataset}: with SANE the Recall@20 of the 15 % of users with the largest interest shift '
            f'changed by {line["high"]["gain"]:+.1f} %, that of the others by {line["rest"]["gain"]:+.1f} % '
            f'({wording.counted(line["seeds"])}, no test){old}.']
