"""A synthetic log in which it is known who changed interests, when, and from what to what.

The timeline is ten segments of exactly one tenth of the rows each: the base block is the first
six, the incremental blocks 1, 2, 3 and 4 are the last four (cuts at 60, 70, 80 and 90 %).

Planted, with the numbers:

* Categories and styles. Items are dealt evenly to the categories (6, 10, 20 for the sizes small,
  default, large) and inside a category to its styles (3, 4, 4).
* Popularity. Inside a category an item is drawn in proportion to rank^-0.8, ranks at random.
* Interests. A user's interactions fall with probability 0.65 in a main category, 0.20 in a
  secondary one, and 0.15 evenly over the other categories.
* Taste. In each category a user has one favourite style, which gets 0.70 of his draws there; the
  other styles share the rest evenly. Popularity decides inside the style.
* Movers. Exactly 30 % of all users (drawn among those present in the base block), a third each at
  the start of block 1, 2 and 3: the main category becomes another one, which is neither the old
  main nor the secondary one, and the old main category falls to the background level of the rest.
* Newcomers. 3 % of the users and 2 % of the items arrive in each of the blocks 1 to 4; the rest is
  there from the start. A new item has the mean popularity of its category.
* Activity. A user gets in each segment of his presence a share of the segment's rows between 0.75
  and 1.25 of the average, rounded up or down: 3 to 7 rows in nearly all cases.

A user never meets an item twice: a repeated draw is drawn again in the same category. Users far
into a small category therefore move down its popularity ranks, but keep the planted
category shares.
"""
import dataclasses
import hashlib

import numpy as np

from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError

_START = 1_577_836_800  # 2020-01-01, UTC.
_SEGMENT_SECONDS = 30 * 86_400
_FIRST_BLOCK_SEGMENT = 5  # Block b >= 1 is segment 5 + b.
_MAX_REDRAWS = 400


@dataclasses.dataclass(frozen=True)
class _Size:
  users: int
  items: int
  rows: int
  categories: int
  styles: int


_SIZES = {
    'small': _Size(users=260, items=400, rows=12_000, categories=6, styles=3),
    'default': _Size(users=2_500, items=2_000, rows=120_000, categories=10, styles=4),
    'large': _Size(users=20_000, items=12_000, rows=1_000_000, categories=20, styles=4),
}


@dataclasses.dataclass(frozen=True)
class DriftTruth:
  """What was planted, in the numbering of the `Interactions` of the same size and seed.

  Attributes:
    mover: [num_users] bool, whether the user changes his main category.
    move_time: [num_users] int32, the block whose rows are the first after the move (1, 2 or 3); 0
      for a stayer.
    lost_category: [num_users] int32, the mover's old main category; -1 for a stayer.
    gained_category: [num_users] int32, the mover's new main category; -1 for a stayer.
    main_category: [num_users] int32, the main category at the user's arrival.
    user_join_block: [num_users] int32, the block of the user's first row (0 is the base block).
    item_category: [num_items] int32, also when the log hides it.
    item_join_block: [num_items] int32, the block of the item's first row.
  """
  mover: np.ndarray
  move_time: np.ndarray
  lost_category: np.ndarray
  gained_category: np.ndarray
  main_category: np.ndarray
  user_join_block: np.ndarray
  item_category: np.ndarray
  item_join_block: np.ndarray


def generate(size: str = 'default', seed: int = 0, hide_categories: bool = False) -> Interactions:
  """Draws the log; the same size and seed always give the same one.

  Args:
    size: 'small' (260 users, 400 items, 12,000 rows), 'default' (2,500 users, 2,000 items, 120,000
      rows) or 'large' (20,000 users, 12,000 items, 1,000,000 rows).
    seed: seed of all draws.
    hide_categories: leaves the items' categories out of the log.

  Returns:
    The log.
  """
  return _build(size, seed, hide_categories)[0]


def truth(size: str = 'default', seed: int = 0) -> DriftTruth:
  """The planted truth behind `generate(size, seed)`."""
  return _build(size, seed, False)[1]


def _build(size: str, seed: int, hide_categories: bool) -> tuple[Interactions, DriftTruth]:
  """Draws the log in planting numbers, then renumbers everything by first row."""
  if size not in _SIZES:
    raise UserError(f'size {size!r} is unknown; choose one of {", ".join(_SIZES)}.')
  shape = _SIZES[size]
  rng = np.random.default_rng(seed)
  users, items = _plant_users(rng, shape), _plant_items(rng, shape)
  user, item, segment, time = _draw_rows(rng, shape, users, items)

  user, user_order = _number_by_first_row(user)
  item, item_order = _number_by_first_row(item)
  category = items['category'][item_order]
  _, category_order = _number_by_first_row(category)
  category_number = np.full(shape.categories + 1, -1, np.int32)  # The last one is "none": -1.
  category_number[category_order] = np.arange(len(category_order))
  category = category_number[category]
  move_time = users['move_time'][user_order]
  moves = move_time > 0
  main, gained = users['main'][user_order], users['gained'][user_order]
  block = np.maximum(segment - _FIRST_BLOCK_SEGMENT, 0).astype(np.int32)

  planted = DriftTruth(
      mover=moves, move_time=move_time,
      lost_category=category_number[np.where(moves, main, -1)],
      gained_category=category_number[np.where(moves, gained, -1)],
      main_category=category_number[main],
      user_join_block=block[_first_rows(user)], item_category=category,
      item_join_block=block[_first_rows(item)])
  digest = hashlib.sha256()
  for array in (user, item, time, user_order, item_order, category):
    digest.update(np.ascontiguousarray(array, '<i8').tobytes())
  digest.update(b'hidden' if hide_categories else b'shown')
  log = Interactions(
      user=user, item=item, time=time, user_ids=_names('u%05d', user_order),
      item_ids=_names('i%05d', item_order),
      item_category=None if hide_categories else category,
      category_names=None if hide_categories else _names('category-%d', category_order),
      name=f'drift-{size}', fingerprint=digest.hexdigest())
  return log, planted


def _plant_users(rng, shape: _Size) -> dict[str, np.ndarray]:
  """Draws every user's arrival, activity, interests, tastes and move.

  Returns:
    join_segment [users]; activity [users]; main, secondary, gained [users] categories; taste
    [users, categories], the favourite style; move_time [users].
  """
  count, categories = shape.users, shape.categories
  joins = _arrivals(rng, count, 0.03)
  # Three different categories per user: main, secondary and the one a mover gains.
  three = np.argsort(rng.random((count, categories)), axis=1)[:, :3]
  movers = rng.permutation(np.flatnonzero(joins == 0))[:round(0.30 * count)]
  move_time = np.zeros(count, np.int32)
  move_time[movers] = 1 + np.arange(len(movers)) % 3
  return {
      'join_segment': joins, 'activity': rng.uniform(0.75, 1.25, count),
      'main': three[:, 0], 'secondary': three[:, 1], 'gained': three[:, 2],
      'taste': rng.integers(shape.styles, size=(count, categories)), 'move_time': move_time}


def _plant_items(rng, shape: _Size) -> dict[str, np.ndarray]:
  """Draws every item's arrival, category, style and popularity.

  Returns:
    join_segment, category, style and weight, each [items].
  """
  number = np.arange(shape.items)
  category = number % shape.categories
  style = (number // shape.categories) % shape.styles
  by_category = np.lexsort((rng.random(shape.items), category))
  sizes = np.bincount(category)
  rank = np.empty(shape.items)
  rank[by_category] = number - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
  weight = rank ** -0.8
  joins = _arrivals(rng, shape.items, 0.02)
  mean = np.bincount(category, weight) / sizes
  weight = np.where(joins > 0, mean[category], weight)
  return {'join_segment': joins, 'category': category, 'style': style, 'weight': weight}


def _arrivals(rng, count: int, share: float) -> np.ndarray:
  """[count] segment of arrival: `share` in each of the segments 6 to 9, the others in 0."""
  each = round(share * count)
  joins = np.zeros(count, np.int64)
  late = rng.permutation(count)[:4 * each]
  joins[late] = _FIRST_BLOCK_SEGMENT + 1 + np.arange(4 * each) // each
  return joins


def _draw_rows(rng, shape: _Size, users, items):
  """Draws the rows in time order, with planting numbers.

  Returns:
    user, item (int64), segment (int64) and time (int64), each [rows].
  """
  user, segment = _draw_users(rng, shape, users)
  position = segment + rng.random(len(user))
  order = np.argsort(position, kind='stable')
  user, segment, position = user[order], segment[order], position[order]
  time = _START + (position * _SEGMENT_SECONDS).astype(np.int64)

  moved = (users['move_time'][user] > 0) & (
      segment >= _FIRST_BLOCK_SEGMENT + users['move_time'][user])
  main = np.where(moved, users['gained'][user], users['main'][user])
  category = _draw_categories(rng, shape, main, users['secondary'][user])
  item = _draw_items(rng, shape, users, items, user, segment, category)
  kept = item >= 0
  return user[kept], item[kept], segment[kept], time[kept]


def _draw_users(rng, shape: _Size, users) -> tuple[np.ndarray, np.ndarray]:
  """Shares out each segment's rows among the users who are there.

  Systematic sampling: a user's count is his expected count rounded up or down.

  Returns:
    user [rows] and segment [rows].
  """
  segments = np.arange(10)
  present = users['join_segment'][:, None] <= segments
  weight = users['activity'][:, None] * present
  per_segment = shape.rows // 10
  upper = np.cumsum(weight, axis=0) / weight.sum(axis=0) * per_segment
  upper[-1] = per_segment
  upper = np.floor(upper + rng.random(10) * (upper < per_segment)).clip(max=per_segment)
  counts = np.diff(upper, axis=0, prepend=0).astype(np.int64)
  user = np.repeat(np.tile(np.arange(shape.users), 10), counts.T.ravel())
  return user, np.repeat(segments, per_segment)


def _draw_categories(rng, shape: _Size, main: np.ndarray, secondary: np.ndarray) -> np.ndarray:
  """[rows] category of each row: main 0.65, secondary 0.20, else one of the others."""
  low, high = np.minimum(main, secondary), np.maximum(main, secondary)
  other = rng.integers(shape.categories - 2, size=len(main))
  other += other >= low
  other += other >= high
  draw = rng.random(len(main))
  return np.where(draw < 0.65, main, np.where(draw < 0.85, secondary, other))


def _draw_items(rng, shape: _Size, users, items, user, segment, category) -> np.ndarray:
  """Draws each row's item in its category; pairs met before are drawn again.

  Args:
    rng: the generator.
    shape: the size.
    users: the planted users.
    items: the planted items.
    user: [rows], in time order.
    segment: [rows].
    category: [rows].

  Returns:
    [rows] int64 item numbers; -1 where no unmet item was found.
  """
  styles, block = shape.styles, np.maximum(segment - _FIRST_BLOCK_SEGMENT, 0)
  group = items['category'] * styles + items['style']
  sizes = np.bincount(group)
  # Late items come first in their group, so that the last one of a group is always there.
  order = np.lexsort((-items['join_segment'], group))
  last = np.cumsum(sizes) - 1
  blocks = np.arange(5)[:, None]
  there = items['join_segment'][order] <= np.where(blocks > 0, blocks + _FIRST_BLOCK_SEGMENT, 0)
  edges = np.cumsum(np.where(there, items['weight'][order], 0.0).ravel())

  item = np.full(len(user), -1, np.int64)
  met = np.array([-1])  # Sorted keys of the pairs drawn so far.
  pending = np.arange(len(user))
  for _ in range(_MAX_REDRAWS):
    favourite = users['taste'][user[pending], category[pending]]
    style = (favourite + rng.integers(1, styles, size=len(pending))) % styles
    style = np.where(rng.random(len(pending)) < 0.70, favourite, style)
    drawn_group = category[pending] * styles + style
    upper = block[pending] * shape.items + last[drawn_group]
    lower = upper - sizes[drawn_group]
    start = np.where(lower >= 0, edges[lower], 0.0)
    target = start + rng.random(len(pending)) * (edges[upper] - start)
    place = np.minimum(np.searchsorted(edges, target, side='right'), upper)
    drawn = order[place % shape.items]
    pair = user[pending] * shape.items + drawn
    fresh = np.zeros(len(pending), bool)
    fresh[np.unique(pair, return_index=True)[1]] = True
    fresh &= met[np.searchsorted(met, pair, side='right') - 1] != pair
    met = np.sort(np.concatenate([met, pair[fresh]]), kind='stable')
    item[pending[fresh]] = drawn[fresh]
    pending = pending[~fresh]
    if not len(pending):
      break
  return item


def _number_by_first_row(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Numbers values in the order of their first occurrence.

  Args:
    values: [rows] ints.

  Returns:
    [rows] int32 numbers, and [distinct] the value that each number stands for.
  """
  distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
  order = np.argsort(first)
  number = np.empty(len(distinct), np.int32)
  number[order] = np.arange(len(distinct))
  return number[inverse], distinct[order]


def _first_rows(numbers: np.ndarray) -> np.ndarray:
  """[distinct] first row of each number."""
  return np.unique(numbers, return_index=True)[1]


def _names(pattern: str, numbers: np.ndarray) -> np.ndarray:
  """[len(numbers)] object array of str."""
  return np.array([pattern % number for number in numbers], dtype=object)
