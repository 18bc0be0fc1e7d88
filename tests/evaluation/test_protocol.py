"""Tests of the evaluation of a block."""
import graphsane_tf  # Selects legacy Keras.
import numpy as np
import pytest

from graphsane_tf.evaluation import metrics, protocol, ranking
from graphsane_tf.graph import csr

# Three known users, four known items; the score of item i for user u is VALUES[u, i].
VALUES = np.array([[4, 3, 2, 1], [1, 2, 3, 4], [4, 1, 1, 1]], np.float32)
SEEN = csr.from_pairs([0, 2], [0, 3], 3, 4)  # User 0 saw item 0, user 2 saw item 3.
POPULARITY = np.array([1, 5, 2, 5])
SCORER = ranking.DotProduct(VALUES, np.eye(4, dtype=np.float32))


def _evaluate(held_user, held_item, **options):
  return protocol.evaluate_block(
      SCORER, SEEN, np.array(held_user, int), np.array(held_item, int), POPULARITY,
      metrics.Options((1, 2), **options))


def test_known_and_new_users_are_kept_apart():
  # User 0: list 1, 2. User 2: list 0, 1. Users 3 and 7 are new: list 1, 3. Item 9 is unknown.
  result = _evaluate([7, 0, 0, 2, 3, 3], [3, 2, 9, 1, 1, 8])
  assert result.metrics['recall@1'] == 0
  assert result.metrics['recall@2'] == pytest.approx((1 / 2 + 1) / 2)
  assert result.metrics['precision@2'] == pytest.approx(0.5)
  assert result.new_users['recall@1'] == pytest.approx((0 + 1 / 2) / 2)
  assert result.new_users['recall@2'] == pytest.approx((1 + 1 / 2) / 2)
  assert result.coverage == {
      'users': 4, 'users_known': 2, 'interactions': 6, 'interactions_known_users': 3,
      'items_known': pytest.approx(4 / 6)}
  np.testing.assert_array_equal(result.per_user['user'], [0, 2])
  np.testing.assert_allclose(result.per_user['recall@2'], [0.5, 1])


def test_only_known_or_only_new_users():
  known = _evaluate([1], [3])
  assert known.new_users == {} and known.metrics['recall@1'] == 1
  new = _evaluate([5], [1])
  assert new.metrics == {} and new.new_users['recall@1'] == 1
  assert len(new.per_user['user']) == 0


def test_nothing_held_out():
  result = _evaluate([], [])
  assert result.metrics == result.new_users == {}
  assert result.coverage['users'] == 0 and result.coverage['items_known'] == 0


def test_lists_longer_than_the_catalogue():
  result = protocol.evaluate_block(
      SCORER, SEEN, np.array([0, 5]), np.array([3, 0]), POPULARITY)
  assert result.metrics['recall@5'] == result.new_users['recall@20'] == 1


@pytest.mark.parametrize('length', [3, 40, 330])
@pytest.mark.parametrize('num_items', [30, 260])
def test_lists_that_leave_out_less_change_nothing(length, num_items, monkeypatch):
  rng = np.random.default_rng(1)
  # Whole numbers: many scores are equal.
  scorer = ranking.DotProduct(rng.integers(-1, 2, (150, 4)), rng.integers(-1, 2, (num_items, 4)))
  degree = rng.integers(num_items, size=150)
  indptr = np.concatenate([[0], np.cumsum(degree)])
  indices = np.concatenate([np.sort(rng.permutation(num_items)[:d]) for d in degree])
  # The lists leave out the first half of a user's seen items; some users have none.
  half = np.concatenate([np.arange(d) < d // 2 for d in degree])
  fewer = csr.Csr(np.concatenate([[0], np.cumsum(degree // 2)]), indices[half], num_items)
  listed = np.flatnonzero(rng.random(150) < .8)
  lists = ranking.Lists(
      listed, ranking.top_k(scorer, listed, fewer, min(length, num_items))[0])
  pairs = np.unique(rng.integers(180 * 300, size=2000))
  arguments = (scorer, csr.Csr(indptr, indices, num_items), pairs // 300, pairs % 300,
               np.arange(num_items))
  plain = protocol.evaluate_block(*arguments)
  ranked, original = [], ranking.top_k

  def spy(scorer, users, *others):
    ranked.extend(users)
    return original(scorer, users, *others)

  monkeypatch.setattr(ranking, 'top_k', spy)
  shared = protocol.evaluate_block(*arguments, lists=lists)
  assert shared.metrics == plain.metrics and shared.coverage == plain.coverage
  for name, values in plain.per_user.items():
    np.testing.assert_array_equal(shared.per_user[name], values)
  # Only those are ranked whose lists are too short or missing.
  if length > num_items:
    assert not set(ranked) & set(listed)
  assert set(ranked) >= set(plain.per_user['user']) - set(listed)
