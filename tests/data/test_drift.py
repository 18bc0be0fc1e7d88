"""Tests of the planted-drift generator."""
import numpy as np
import pytest

from graphsane_tf.data import drift
from graphsane_tf.errors import UserError

SEEDS = (0, 1)


def _blocks(log):
  """[num_rows] block of each row, cut at 60, 70, 80 and 90 % of the rows."""
  rows = len(log)
  cuts = np.array([6, 7, 8, 9]) * rows // 10
  return np.searchsorted(cuts, np.arange(rows), side='right')


def _first(values):
  return np.unique(values, return_index=True)[1]


@pytest.fixture(scope='module', params=SEEDS)
def drawn(request):
  return drift.generate('default', request.param), drift.truth('default', request.param)


def test_is_deterministic_and_depends_on_the_seed():
  first, again, other = (drift.generate('small', seed) for seed in (3, 3, 4))
  for name in ('user', 'item', 'time', 'user_ids', 'item_ids', 'item_category', 'category_names'):
    np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
  assert first.fingerprint == again.fingerprint != other.fingerprint
  assert len(first.fingerprint) == 64


@pytest.mark.parametrize('size,users,items,rows', [
    ('small', 260, 400, 12_000), ('default', 2_500, 2_000, 120_000)])
def test_sizes_and_types(size, users, items, rows):
  log = drift.generate(size)
  assert (log.num_users, log.num_items, len(log)) == (users, items, rows)
  assert log.user.dtype == log.item.dtype == log.item_category.dtype == np.int32
  assert log.time.dtype == np.int64
  assert log.user_ids.dtype == log.item_ids.dtype == object


def test_large_size_is_drawn_in_seconds():
  log = drift.generate('large')
  assert (log.num_users, log.num_items, len(log)) == (20_000, 12_000, 1_000_000)


def test_unknown_size_is_refused():
  with pytest.raises(UserError, match='huge'):
    drift.generate('huge')


def test_rows_are_sorted_unique_and_numbered_by_first_row(drawn):
  log, _ = drawn
  assert (np.diff(log.time) >= 0).all()
  pairs = log.user.astype(np.int64) * log.num_items + log.item
  assert len(np.unique(pairs)) == len(log)
  for numbers, count in ((log.user, log.num_users), (log.item, log.num_items)):
    assert len(_first(numbers)) == count
    assert (np.diff(_first(numbers)) > 0).all()
  assert (np.diff(_first(log.item_category[log.item])) > 0).all()
  assert log.user_ids[0].startswith('u') and len(set(log.user_ids)) == log.num_users
  assert log.item_ids[0].startswith('i') and len(set(log.item_ids)) == log.num_items
  assert sorted(log.category_names) == [f'category-{number}' for number in range(10)]


def test_hidden_categories_change_nothing_else():
  shown, hidden = drift.generate('small'), drift.generate('small', hide_categories=True)
  assert hidden.item_category is None and hidden.category_names is None
  np.testing.assert_array_equal(shown.item, hidden.item)
  np.testing.assert_array_equal(shown.item_category, drift.truth('small').item_category)
  assert shown.fingerprint != hidden.fingerprint


def test_a_known_share_moves_at_known_times(drawn):
  _, planted = drawn
  assert planted.mover.mean() == pytest.approx(0.30)
  np.testing.assert_array_equal(np.bincount(planted.move_time), [1750, 250, 250, 250])
  assert (planted.user_join_block[planted.mover] == 0).all()
  stays = ~planted.mover
  assert (planted.lost_category[stays] == -1).all() and (planted.move_time[stays] == 0).all()
  assert (planted.gained_category[stays] == -1).all()
  assert (planted.lost_category != planted.gained_category)[planted.mover].all()
  np.testing.assert_array_equal(
      planted.lost_category[planted.mover], planted.main_category[planted.mover])


def _share(log, block, rows_of, category_of, at):
  """Share of the rows of `rows_of` users in block `at` that lie in each user's category."""
  rows = rows_of[log.user] & (block == at)
  return (log.item_category[log.item[rows]] == category_of[log.user[rows]]).mean()


@pytest.mark.parametrize('move', [1, 2, 3])
def test_movers_interests_move_exactly_at_their_time(drawn, move):
  log, planted = drawn
  block, movers = _blocks(log), planted.move_time == move
  for at in range(5):
    lost = _share(log, block, movers, planted.lost_category, at)
    gained = _share(log, block, movers, planted.gained_category, at)
    high, low = (gained, lost) if at >= move else (lost, gained)
    assert high == pytest.approx(0.65, abs=0.05)
    assert low == pytest.approx(0.15 / 8, abs=0.02)


def test_stayers_interests_stay(drawn):
  log, planted = drawn
  block = _blocks(log)
  for at in range(5):
    share = _share(log, block, ~planted.mover, planted.main_category, at)
    assert share == pytest.approx(0.65, abs=0.03)


def test_newcomers_in_each_block(drawn):
  log, planted = drawn
  block = _blocks(log)
  np.testing.assert_array_equal(planted.user_join_block, block[_first(log.user)])
  np.testing.assert_array_equal(planted.item_join_block, block[_first(log.item)])
  assert np.bincount(planted.user_join_block).tolist() == [2200, 75, 75, 75, 75]
  new_items = np.bincount(planted.item_join_block)
  assert (abs(new_items[1:] - 40) <= 4).all()


def test_most_users_have_several_rows_in_each_block(drawn):
  log, planted = drawn
  counts = np.bincount(log.user * 5 + _blocks(log), minlength=log.num_users * 5).reshape(-1, 5)
  for at in range(1, 5):
    assert (counts[planted.user_join_block < at, at] >= 4).mean() > 0.9
  assert (counts[:, 1:].max(axis=1) <= 7).all()


def test_popularity_is_skewed_inside_a_category(drawn):
  log, _ = drawn
  counts = np.bincount(log.item, minlength=log.num_items)
  for category in range(10):
    inside = np.sort(counts[log.item_category == category])[::-1]
    assert inside[:20].sum() > 0.25 * inside.sum()
    assert inside[0] > 4 * np.median(inside)


def test_styles_leave_one_factor_each_but_one_inside_a_category(drawn):
  """Four styles share out a user's rows: three factors stand far above those of shuffled columns.

  A fourth, weaker one is how many rows a user has; without tastes it would be the only one.
  """
  log, _ = drawn
  matrix = np.zeros((log.num_users, log.num_items))
  matrix[log.user, log.item] = 1
  rng = np.random.default_rng(0)
  for category in range(10):
    inside = matrix[:, log.item_category == category]
    inside = inside[inside.sum(axis=1) >= 15]
    inside = inside[:, inside.sum(axis=0) > 0.02 * len(inside)]
    shuffled = rng.permuted(inside, axis=0)
    largest = np.linalg.eigvalsh(np.corrcoef(inside.T))[::-1]
    chance = np.linalg.eigvalsh(np.corrcoef(shuffled.T))[-1]
    assert (largest > 2 * chance).sum() == 3
