"""`clean` against a plain Python oracle, row by row."""
import collections
import datetime

import numpy as np
import pyarrow as pa
import pytest

from graphsane_tf.data import cleaning
from graphsane_tf.data import SOURCES
from graphsane_tf.data import ordering
from graphsane_tf.data import recipes
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from tests.data import raw_files


def log_table(seed=0, **kwargs):
  users, items, times = raw_files.random_log(seed=seed, **kwargs)
  random = np.random.default_rng(seed + 100)
  return pa.table({'user': users, 'item': [f'i{item}' for item in items], 'timestamp': times,
                   'rating': random.integers(1, 6, len(users)).astype(float),
                   'category': [f'c{item % 4}' for item in items]})


def oracle(table, recipe):
  """The rows that should be left, as (user, item, time, category), in order."""
  rows = [(str(row['user']), row['item'], row['timestamp'], row['category'], row['rating'])
          for row in table.to_pylist()]
  newest = max(row[2] for row in rows)
  if recipe.min_rating is not None:
    rows = [row for row in rows if row[4] >= recipe.min_rating]
  if recipe.last_years is not None:
    day = datetime.datetime.fromtimestamp(newest, datetime.timezone.utc)
    since = day.replace(year=day.year - recipe.last_years).timestamp()
    rows = [row for row in rows if row[2] >= since]
  rows = sorted(rows, key=lambda row: row[2])
  kept = {}
  for position, row in enumerate(rows):
    if recipe.duplicates == 'last' or row[:2] not in kept:
      kept[row[:2]] = position
  rows = [rows[position] for position in sorted(kept.values())]
  while True:
    before = len(rows)
    users = collections.Counter(row[0] for row in rows)
    rows = [row for row in rows if users[row[0]] >= recipe.min_user_interactions]
    items = collections.Counter(row[1] for row in rows)
    rows = [row for row in rows if items[row[1]] >= recipe.min_item_interactions]
    if len(rows) == before:
      return [row[:4] for row in rows]


def rows_of(result):
  return list(zip(result.user_ids[result.user], result.item_ids[result.item],
                  result.time.tolist(),
                  result.category_names[result.item_category[result.item]]))


@pytest.mark.parametrize('seed, large', [(0, 1 << 24), (1, 1 << 24), (2, 1 << 24), (1, 1)])
@pytest.mark.parametrize('recipe', [
    recipes.Recipe(),
    recipes.Recipe(duplicates='first'),
    recipes.Recipe(min_rating=4, duplicates='first'),
    recipes.Recipe(min_user_interactions=10, min_item_interactions=12),
    recipes.Recipe(min_rating=2, last_years=1, duplicates='last', min_user_interactions=4,
                   min_item_interactions=5),
], ids=str)
def test_against_oracle(recipe, seed, large, monkeypatch):
  """In memory and, from `large` rows on, through DuckDB."""
  monkeypatch.setattr(ordering, 'LARGE', large)
  monkeypatch.setattr(cleaning, '_BATCH_ROWS', 90)
  table = log_table(seed, num_rows=500, days=800 if recipe.last_years else 30)
  pieces = [table.slice(start, 37) for start in range(0, len(table), 37)]
  result = cleaning.clean(iter(pieces), recipe, 'log')
  expected = oracle(table, recipe)
  assert 0 < len(expected) < len(table)
  assert rows_of(result) == expected
  assert result.user.dtype == result.item.dtype == np.int32 and result.time.dtype == np.int64
  whole = cleaning.clean(table, recipe, 'other name')
  assert whole.fingerprint == result.fingerprint and len(whole.fingerprint) == 64


def test_core_is_the_largest_one():
  """Brute force: no subset of the dropped users can come back."""
  table = log_table(4, num_rows=60, num_users=8, num_items=6)
  recipe = recipes.Recipe(min_user_interactions=4, min_item_interactions=4)
  pairs = {(row['user'], row['item']) for row in table.to_pylist()}
  best = 0
  for mask in range(1 << 8):
    left = {pair for pair in pairs if mask >> (pair[0] - 1) & 1}
    items = collections.Counter(item for _, item in left)
    left = {pair for pair in left if items[pair[1]] >= 4}
    users = collections.Counter(user for user, _ in left)
    if left and min(users.values()) >= 4:
      items = collections.Counter(item for _, item in left)
      best = max(best, len(left) if min(items.values()) >= 4 else 0)
  assert best and len(cleaning.clean(table, recipe, 'log')) == best


def test_numbers_follow_first_appearance_and_prefixes_agree():
  table = log_table(5)
  result = cleaning.clean(table, recipes.Recipe(duplicates='first'), 'log')
  firsts = [result.user, result.item, result.item_category]
  for numbers in firsts:
    _, first = np.unique(numbers, return_index=True)
    assert (np.diff(first) > 0).all() and numbers[0] == 0
  # What was known at some moment has the same numbers when the log ends there.
  moment = result.time[len(result) // 2]
  earlier = cleaning.clean(table.filter(pa.compute.less(table['timestamp'], moment)),
                           recipes.Recipe(duplicates='first'), 'log')
  rows = len(earlier)
  assert 0 < rows < len(result)
  np.testing.assert_array_equal(earlier.user, result.user[:rows])
  np.testing.assert_array_equal(earlier.item, result.item[:rows])
  np.testing.assert_array_equal(earlier.user_ids, result.user_ids[:earlier.num_users])
  np.testing.assert_array_equal(earlier.item_category, result.item_category[:earlier.num_items])


def test_ties_keep_file_order_and_first_category_wins():
  table = pa.table({'user': ['b', 'a', 'a', 'c'], 'item': ['x', 'x', 'y', 'x'],
                    'timestamp': [5, 5, 5, 1], 'category': ['p', 'q', 'r', 's']})
  result = cleaning.clean(table, recipes.Recipe(), 'log')
  assert list(result.user_ids) == ['c', 'b', 'a'] and list(result.item_ids) == ['x', 'y']
  assert list(result.category_names) == ['s', 'r']
  assert result.user.tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize('keep, time', [('first', 1), ('last', 9)])
def test_duplicates_go_by_time_not_by_file_order(keep, time):
  table = pa.table({'user': [1, 1, 1], 'item': [2, 2, 2], 'timestamp': [4, 9, 1]})
  assert cleaning.clean(table, recipes.Recipe(duplicates=keep), 'log').time.tolist() == [time]


def test_which_filter_left_nothing():
  table = log_table(0, num_rows=30)
  with pytest.raises(UserError, match='min_rating=6 left no rows'):
    cleaning.clean(table, recipes.Recipe(min_rating=6), 'log')
  with pytest.raises(UserError, match='min_user_interactions=99 and min_item_interactions=1 '):
    cleaning.clean(table, recipes.Recipe(min_user_interactions=99), 'log')
  with pytest.raises(UserError, match='has no rows'):
    cleaning.clean(table.slice(0, 0), recipes.Recipe(), 'log')
  with pytest.raises(UserError, match='no ratings'):
    cleaning.clean(table.drop_columns(['rating']), recipes.Recipe(min_rating=1), 'log')


def test_recipes():
  recipe = SOURCES['gowalla'].recipe
  assert (recipe.min_user_interactions, recipe.duplicates) == (20, 'first')
  assert recipe.override({'min_rating': None}) == recipe
  changed = recipe.override({'min_item_interactions': 3})
  assert changed.min_item_interactions == 3 and changed.digest() != recipe.digest()
  for wrong in ({'duplicates': 'some'}, {'min_user_interactions': 0}, {'colour': 1}):
    with pytest.raises(UserError):
      recipe.override(wrong)
  with pytest.raises(UserError, match='no data set called .nothing.'):
    DataSpec('nothing').source()
