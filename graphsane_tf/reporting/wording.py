"""Conclusions in sentences, computed from the numbers, also when a method does not help."""
from typing import Any, Dict, List, Sequence

from graphsane_tf.reporting import comparison

_LEVEL = .05


def counted(seeds: int) -> str:
  """'one seed' or '3 seeds'."""
  return 'one seed' if seeds == 1 else f'{seeds} seeds'


def verdict(line: Dict[str, Any]) -> str:
  """'helps', 'hurts' or 'makes no clear difference', for a line with a partner.

  Several seeds: the interval of the gain over seeds must leave out zero and the test over users,
  corrected for the comparisons of the table, must agree. One seed: the test over users decides.
  """
  sure = line['p_holm'] < _LEVEL
  if line['gain_low'] is not None:
    sure = sure and (line['gain_low'] > 0 or line['gain_high'] < 0)
  # The two may point different ways where a few users carry the mean.
  if not sure or line['gain'] * line['difference'] <= 0:
    return 'makes no clear difference'
  return 'helps' if line['gain'] > 0 else 'hurts'


def gain(dataset: str, line: Dict[str, Any], change: str) -> str:
  """'drift: SANE changed SGCT by +1.2 % (95 % interval ..., p = ...): it helps.'

  Args:
    dataset: name of the data set.
    line: of a row with a partner, from `comparison.rows`.
    change: 'SANE changed SGCT', say.
  """
  span = (f'95 % interval {line["gain_low"]:+.1f} to {line["gain_high"]:+.1f} % over '
          f'{counted(line["common_seeds"])}' if line['gain_low'] is not None else 'one seed, no interval')
  return (f'{dataset}: {change} by {line["gain"]:+.1f} % in Recall@20 ({span}; Wilcoxon p = '
          f'{line["p_value"]:.2g}, with Holm\'s correction {line["p_holm"]:.2g}, over {line["users"]:,} '
          f'users): {"it" if line["common_seeds"] > 1 else "on this one seed it"} {verdict(line)}.')


def best(dataset: str, what: str, lines: Sequence[Dict[str, Any]]) -> List[str]:
  """'drift: the best sampler on SGCT is ...'; [] unless all lines are finished for the same seeds."""
  seeds = comparison.comparable_seeds(lines)
  if not seeds or len(lines) < 2:
    return []
  first, second = sorted(lines, key=lambda line: -line['average'])[:2]
  return [f'{dataset}: over {counted(seeds)} the best {what} is {first["label"]} with Recall@20 '
          f'{first["average"]:.4f}, then {second["label"]} with {second["average"]:.4f}.']


def scope(done: comparison.FinishedGrid, titles: Sequence[str]) -> List[str]:
  """What was run: data sets, seeds, tables, and what is missing.

  Args:
    done: the grid.
    titles: of the tables that are shown.
  """
  missing = done.missing()
  parts = []
  for dataset in done.datasets:
    seeds = ({cell.seed for cell in done.cells if cell.dataset == dataset}
             - {cell.seed for cell in missing if cell.dataset == dataset})
    parts.append(f'{dataset} ({len(seeds)} {"seed" if len(seeds) == 1 else "seeds"} complete)')
  lines = [f'Data sets: {", ".join(parts)}.',
           f'{len(done.cells) - len(missing)} of {len(done.cells)} runs of the grid are finished.',
           f'Tables: {"; ".join(dict.fromkeys(titles)) or "none yet"}.']
  if missing:
    names = [f'{cell.dataset}/seed{cell.seed}/{cell.name}' for cell in missing]
    lines.append(f'Not finished, so not in any number here: {", ".join(names[:12])}'
                 + (f' and {len(names) - 12} more.' if len(names) > 12 else '.'))
  return lines
