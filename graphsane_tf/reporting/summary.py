"""Conclusions in sentences, computed from the numbers, also when SANE does not help."""
from typing import Any, List, Sequence

from graphsane_tf.reporting import comparison, specs
from graphsane_tf.reporting.reproduction import Shown

_LEVEL = .05


def verdict(row) -> str:
  """'helps', 'hurts' or 'makes no clear difference', for a row with a partner.

  Several seeds: the interval of the gain over seeds must leave out zero and the test over users
  must agree. One seed: the test over users decides.
  """
  sure = row['p_value'] < _LEVEL
  if row['gain_low'] is not None:
    sure = sure and (row['gain_low'] > 0 or row['gain_high'] < 0)
  # The two may point different ways where a few users carry the mean.
  if not sure or row['gain'] * row['difference'] <= 0:
    return 'makes no clear difference'
  return 'helps' if row['gain'] > 0 else 'hurts'


def gain_sentence(dataset: str, row) -> str:
  """'drift: SANE changed SGCT by +1.2 % (95 % interval ..., p = ...): it helps.'"""
  span = (f'95 % interval {row["gain_low"]:+.1f} to {row["gain_high"]:+.1f} % over '
          f'{row["common_seeds"]} seeds' if row['gain_low'] is not None else
          'one seed, no interval')
  what = (f'SANE changed {row["partner"]}' if row['label'] == specs.with_sane(row['partner']) else
          f'{row["label"]} changes {row["partner"]}')
  return (f'{dataset}: {what} by {row["gain"]:+.1f} % in Recall@20 ({span}; '
          f'Wilcoxon p = {row["p_value"]:.2g} over {row["pairs"]:,} user-block pairs): '
          f'{"it" if row["common_seeds"] > 1 else "on this one seed it"} {verdict(row)}.')


def _best(dataset: str, what: str, rows) -> List[str]:
  done = sorted((row for row in rows if row['seeds']), key=lambda row: -row['average'])
  if len(done) < 2:
    return []
  first, second = done[:2]
  return [f'{dataset}: the best {what} is {first["label"]} with Recall@20 {first["average"]:.4f}, '
          f'then {second["label"]} with {second["average"]:.4f}.']


def _time(dataset: str, rows) -> List[str]:
  by_label = {row['label']: row for row in rows if row['seeds']}
  found = []
  sane, plain = by_label.get('SGCT+SANE'), by_label.get('SGCT+Uniform')
  if sane and plain and plain['seconds']:
    change = 100 * (sane['seconds'] / plain['seconds'] - 1)
    found.append(f'{dataset}: a block of SGCT with SANE trained in {sane["seconds"]:.1f} s, '
                 f'{change:+.0f} % to uniform negatives (until early stopping).')
  full = by_label.get('Full retraining')
  if full and sane and sane['seconds']:
    found.append(f'{dataset}: full retraining takes {full["seconds"] / sane["seconds"]:.1f} times '
                 f'the time of SGCT+SANE and reaches Recall@20 {full["average"]:.4f} against '
                 f'{sane["average"]:.4f}.')
  return found


def _case(dataset: str, rows) -> List[str]:
  row = next((row for row in rows if row['label'] == 'SGCT+SANE'), None)
  if not row or row['high']['gain'] is None or row['rest']['gain'] is None:
    return []
  ratio = row['high']['ratio']
  more = '' if ratio is None else (f'; old positives are {ratio:.1f} times as frequent among their '
                                   'negatives as with uniform ones')
  return [f'{dataset}: with SANE the Recall@20 of the 15 % of users with the largest interest '
          f'shift changed by {row["high"]["gain"]:+.1f} %, that of the others by '
          f'{row["rest"]["gain"]:+.1f} % (no test){more}.']


def _spread(dataset: str, what: str, rows) -> List[str]:
  found = []
  for name in dict.fromkeys(row['label'].split(' ')[0] for row in rows if row['seeds']):
    values = {row['label'].split('=')[-1]: row['average'] for row in rows
              if row['seeds'] and row['label'].startswith(f'{name} ')}
    if len(values) > 1:
      best, worst = max(values, key=values.get), min(values, key=values.get)
      change = 100 * (values[best] / max(values[worst], 1e-12) - 1)
      found.append(f'{dataset}: over {what} the Recall@20 of {name} spans {change:.1f} % (best at '
                   f'{best}, worst at {worst}).')
  return found


def conclusions(shown: Sequence[Shown]) -> List[str]:
  """One sentence for each thing the tables can tell, main table first."""
  found: List[str] = []
  for table in shown:
    data: Any = table.data
    if table.name in ('main', 'clustering'):
      found += [gain_sentence(table.dataset, row) for row in data if 'gain' in row]
      if table.name == 'main':
        found += _best(table.dataset, 'method of the main table', data)
    elif table.stem == 'metrics-wins' and data:
      last = data[-1]
      found.append(f'SANE is ahead in {last["wins"]} of {last["cases"]} comparisons over all '
                   f'metrics and cut-offs, by more than 5 % in {last["wins_5"]}, and behind in '
                   f'{last["losses"]}.')
    elif table.name == 'samplers':
      found += _best(table.dataset, 'sampler on SGCT', data)
    elif table.name == 'time':
      found += _time(table.dataset, data)
    elif table.name == 'case_study':
      found += _case(table.dataset, data)
    elif table.name in ('clusters_k', 'reservoir_q'):
      found += _spread(table.dataset, {'clusters_k': 'K', 'reservoir_q': '|Q|'}[table.name], data)
  return found


def scope(done: comparison.FinishedGrid, shown: Sequence[Shown]) -> List[str]:
  """What was run: data sets, seeds, tables, and what is missing."""
  finished = len(done.cells) - len(done.missing())
  parts = []
  for dataset in done.datasets:
    seeds = sorted({cell.seed for cell in done.cells if cell.dataset == dataset}
                   - {cell.seed for cell in done.missing() if cell.dataset == dataset})
    parts.append(f'{dataset} ({len(seeds)} {"seed" if len(seeds) == 1 else "seeds"} complete)')
  titles = dict.fromkeys(specs.TABLES[table.name].title for table in shown)
  found = [f'Data sets: {", ".join(parts)}.',
           f'{finished} of {len(done.cells)} runs of the grid are finished.',
           f'Tables: {"; ".join(titles) or "none yet"}.']
  if done.missing():
    names = [f'{cell.dataset}/seed{cell.seed}/{cell.name}' for cell in done.missing()]
    found.append(f'Not finished, so not in any number here: {", ".join(names[:12])}'
                 + (f' and {len(names) - 12} more.' if len(names) > 12 else '.'))
  return found
