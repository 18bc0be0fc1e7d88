"""A log that grows by files, against a plain loop over rows."""
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from graphsane_tf.data import growing
from graphsane_tf.errors import UserError


def table(rows, columns=('user', 'item', 'timestamp', 'category')):
  """Rows of tuples as the readers give them."""
  names = list(columns)[:len(rows[0])] if rows else list(columns)[:3]
  arrays = list(zip(*rows)) if rows else [[] for _ in names]
  kinds = {'timestamp': pa.int64(), 'rating': pa.float64()}
  return pa.table({name: pa.array(values, kinds.get(name, pa.string())) for name, values in zip(names, arrays)})


def basket(user, time):
  users = pd.util.hash_array(np.array([user], object))
  return int(growing.basket_keys(users, np.array([time]))[0])


class Plain:
  """The same log as lists, one row at a time."""

  def __init__(self):
    self.rows, self.users, self.items, self.category = [], [], [], {}

  def append(self, rows):
    newest = max([time for _, _, time in self.rows], default=-10**9)
    seen = {(user, item): time for user, item, time in self.rows}
    counts = dict.fromkeys(('rows', 'users', 'items', 'late', 'repeated', 'already_used', 'recategorised'), 0)
    before = dict(self.category)
    for user, item, time, category in sorted(rows, key=lambda row: (row[2], basket(*row[::2]))):
      if category != 'unknown' and (item not in before or time >= newest):
        self.category[item] = category
      if (user, item) in seen:
        counts['already_used' if seen[user, item] == time and (user, item, time) in self.rows[:self.known] else
               'repeated'] += 1
        continue
      seen[user, item] = time
      self.rows.append((user, item, time))
      counts['rows'] += 1
      counts['late'] += time < newest
      for name, known, kind in ((user, self.users, 'users'), (item, self.items, 'items')):
        if name not in known:
          known.append(name)
          counts[kind] += 1
    counts['recategorised'] = sum(before[item] != self.category[item] for item in before)
    self.known = len(self.rows)
    return counts

  known = 0


def raw_rows(log):
  return list(zip(log.user_ids[log.user], log.item_ids[log.item], log.time.tolist()))


@pytest.mark.parametrize('seed', range(4))
def test_files_are_appended_as_a_loop_over_rows_would(seed):
  rng = np.random.default_rng(seed)
  log, plain = growing.empty(), Plain()
  for day in range(4):
    count = 60
    # Half of the times lie before those of earlier files, and pairs repeat.
    rows = [(f'u{rng.integers(12)}', f'i{rng.integers(10)}', int(rng.integers(100) + 50 * day),
             f'c{rng.integers(3)}' if rng.random() < .8 else 'unknown') for _ in range(count)]
    halves = [table(rows[:count // 2]), table(rows[count // 2:])]
    before = raw_rows(log)
    log, arrival = growing.append(log, halves, 'day.csv')
    counts = plain.append(rows)
    assert raw_rows(log) == plain.rows and raw_rows(log)[:len(before)] == before
    assert log.user_ids.tolist() == plain.users and log.item_ids.tolist() == plain.items
    names = dict(zip(log.item_ids, log.category_names[log.item_category]))
    assert names == {item: plain.category.get(item, 'unknown') for item in plain.items}
    assert {name: getattr(arrival, name) for name in counts} == counts
    assert log.user.dtype == log.item.dtype == np.int32


def test_the_whole_grown_log_brings_only_what_is_new():
  rows = [('u1', 'a', 1), ('u2', 'b', 2), ('u1', 'c', 3)]
  log, _ = growing.append(growing.empty(), [table(rows)], 'day.csv')
  grown, arrival = growing.append(log, [table([*rows, ('u3', 'a', 4)])], 'log.csv')
  assert raw_rows(grown) == [*rows, ('u3', 'a', 4)]
  assert (arrival.rows, arrival.already_used, arrival.repeated, arrival.users, arrival.items) == (1, 3, 0, 1, 0)
  assert grown.fingerprint != log.fingerprint


def test_nothing_new_leaves_the_log_alone():
  log, _ = growing.append(growing.empty(), [table([('u', 'a', 1)])], 'day.csv')
  for tables in ([], [table([])], [table([('u', 'a', 1)])]):
    same, arrival = growing.append(log, tables, 'day.csv')
    assert same is log and arrival.rows == 0


def test_ratings_and_ids_that_are_not_wanted():
  rows = [('u1', 'a', 1, 5.), ('u2', 'b', 2, 1.), ('u3', 'b', 3, 4.), ('u1', 'c', 4, None)]
  tables = [table(rows, ('user', 'item', 'timestamp', 'rating'))]
  log, arrival = growing.append(growing.empty(), tables, 'day.csv', 4., (['u3'], []))
  assert raw_rows(log) == [('u1', 'a', 1)]
  assert (arrival.rows, arrival.unrated, arrival.unwanted, arrival.repeated) == (1, 2, 1, 0)


def test_the_order_of_one_time_does_not_depend_on_the_file_and_keeps_baskets_whole():
  rng = np.random.default_rng(0)
  rows = [(f'u{user}', f'i{item}', time) for time in (0, 86400) for user in range(40)
          for item in rng.permutation(9)[:3]]
  rows = list({row[:2]: row for row in rows}.values())
  log, _ = growing.append(growing.empty(), [table(rows)], 'day.csv')
  shuffled = [rows[place] for place in rng.permutation(len(rows))]
  other, _ = growing.append(growing.empty(), [table(shuffled)], 'day.csv')
  order = [(user, time) for user, _, time in raw_rows(log)]
  assert order == [(user, time) for user, _, time in raw_rows(other)] and log.time.tolist() == sorted(log.time)
  assert sorted(raw_rows(log)) == sorted(raw_rows(other)) == sorted(rows)
  baskets = list(dict.fromkeys(order))
  assert order == sorted(order, key=baskets.index), 'a basket stands together'
  first, second = ([user for user, time in baskets if time == one] for one in (0, 86400))
  assert first != sorted(first) and first != second and set(first) == set(second)


@pytest.mark.parametrize('users, items', [(['u0', 'u3', 'nobody'], []), ([], ['i1']), (['u2'], ['i0', 'i4'])])
def test_forgetting(users, items):
  rng = np.random.default_rng(0)
  rows = [(f'u{rng.integers(6)}', f'i{rng.integers(8)}', time, f'c{rng.integers(3)}') for time in range(80)]
  log, _ = growing.append(growing.empty(), [table(rows)], 'day.csv')
  shrunk = growing.forget(log, users, items)
  left = [row for row in raw_rows(log) if row[0] not in users and row[1] not in items]
  assert raw_rows(shrunk.log) == left
  assert shrunk.log.user_ids.tolist() == list(dict.fromkeys(row[0] for row in left))
  assert shrunk.log.item_ids.tolist() == list(dict.fromkeys(row[1] for row in left))
  assert log.user_ids[shrunk.users].tolist() == shrunk.log.user_ids.tolist()
  assert log.item_ids[shrunk.items].tolist() == shrunk.log.item_ids.tolist()
  assert [row for row, kept in zip(raw_rows(log), shrunk.kept_rows) if kept] == left
  category = dict(zip(log.item_ids, log.category_names[log.item_category]))
  names = shrunk.log.category_names[shrunk.log.item_category]
  assert [category[item] for item in shrunk.log.item_ids] == names.tolist()


def test_forgetting_everybody_is_refused():
  log, _ = growing.append(growing.empty(), [table([('u', 'a', 1)])], 'day.csv')
  with pytest.raises(UserError, match='delete the store'):
    growing.forget(log, ['u'], [])


def test_a_kept_log_goes_to_disk_and_back(tmp_path):
  assert growing.read(tmp_path / 'log', 0).number == -1
  log, _ = growing.append(growing.empty(), [table([('u', 'a', 10), ('v', 'b', 3700), ('u', 'b', 7300)])], 'day.csv')
  parts = [{'first_row': 0, 'rows': 1}, {'first_row': 1, 'rows': 2}]
  kept = growing.KeptLog(0, 0, log, parts)
  kept.write(tmp_path / 'log')
  growing.KeptLog(1, 1, growing.empty(), []).write(tmp_path / 'log')
  back = growing.read(tmp_path / 'log', 0)
  assert raw_rows(back.interactions) == raw_rows(log) and back.parts == parts and back.number == 0
  assert back.interactions.fingerprint == log.fingerprint
  assert kept.cuts().tolist() == [0, 1] and kept.cuts(3600).tolist() == [0, 1, 2]
  (tmp_path / 'log' / '0' / 'users.parquet').write_bytes(b'damage')
  with pytest.raises(UserError, match='damaged'):
    growing.read(tmp_path / 'log', 0)
