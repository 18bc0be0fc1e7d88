"""A data set in a small table, beside the paper's counts where there are any."""
from typing import List, Sequence, Tuple

import numpy as np

from graphsane_tf.blocks.stream import BlockStream
from graphsane_tf.data import SOURCES
from graphsane_tf.data.interactions import Interactions

_SECONDS_PER_MONTH = 365.2425 / 12 * 86400
_TOLERANCE = 0.01


def percent_new(ids: np.ndarray, cuts: Sequence[int]) -> float:
  """The average share of an incremental block's users (or items) never seen before, in percent.

  Args:
    ids: [num_rows] numbers by first appearance, in time order.
    cuts: [num_blocks + 1] first row of each block and the number of rows; block 0 is the base.
  """
  # Numbers follow first appearance, so what was seen before a row is a prefix of them.
  shares = [np.mean(np.unique(ids[start:stop]) > ids[:start].max())
            for start, stop in zip(cuts[1:-1], cuts[2:])]
  return 100 * float(np.mean(shares))


def describe(interactions: Interactions, name: str) -> str:
  """A table of counts; a line `warning: ...` for each that is over 1 % off the paper's.

  Args:
    interactions: the cleaned log.
    name: the data set's name, which decides whether the paper's counts stand beside.

  Returns:
    Lines without a trailing newline.
  """
  source = SOURCES[name]
  paper = source.paper
  edges = len(interactions)
  cuts = BlockStream(interactions).cuts
  months = (interactions.time[-1] - interactions.time[0]) / _SECONDS_PER_MONTH
  rows: List[Tuple[str, str, float, str]] = [
      ('edges', ',.0f', edges, 'edges'),
      ('users', ',.0f', interactions.num_users, 'users'),
      ('items', ',.0f', interactions.num_items, 'items'),
      ('average user degree', '.2f', edges / interactions.num_users, 'average_user_degree'),
      ('average item degree', '.2f', edges / interactions.num_items, 'average_item_degree'),
      ('new users per block, %', '.2f', percent_new(interactions.user, cuts), 'percent_new_users'),
      ('new items per block, %', '.2f', percent_new(interactions.item, cuts), 'percent_new_items'),
      ('time span, months', '.1f', months, 'months'),
  ]
  lines = [f'{name:<24}{"here":>14}' + (f'{"paper":>14}' if paper else '')]
  for label, form, value, field in rows:
    beside = f'{format(getattr(paper, field), form):>14}' if paper else ''
    lines.append(f'{label:<24}{format(value, form):>14}{beside}')
  first, last = interactions.time[[0, -1]].astype('datetime64[s]')
  lines.append(f'from {first} to {last} UTC; categories: '
               f'{0 if interactions.category_names is None else len(interactions.category_names)}')
  if paper:
    warnings = []
    for label, _, value, field in rows[:3]:
      expected = getattr(paper, field)
      if abs(value - expected) > _TOLERANCE * expected:
        warnings.append(f'warning: {value:,} {label} where the paper has {expected:,} '
                        f'({100 * (value / expected - 1):+.1f} %).')
    lines += warnings
    if warnings and source.note:
      lines.append(f'note: {source.note}')
  return '\n'.join(lines)
