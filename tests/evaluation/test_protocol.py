"""Tests of the evaluation of a block."""
import graphsane_tf  # Selects legacy Keras.
import numpy as np
import pytest

from graphsane_tf.evaluation import protocol

# Three known users, four known items; the score of item i for user u is VALUES[u, i].
VALUES = np.array([[4, 3, 2, 1], [1, 2, 3, 4], [4, 1, 1, 1]], np.float32)
SEEN = np.array([0, 1, 1, 2]), np.array([0, 3])  # User 0 saw item 0, user 2 saw item 3.
POPULARITY = np.array([1, 5, 2, 5])


def _evaluate(held_user, held_item, **options):
  return protocol.evaluate_block(
      VALUES, np.eye(4, dtype=np.float32), SEEN, np.array(held_user, int),
      np.array(held_item, int), POPULARITY, cutoffs=(1, 2), **options)


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
      VALUES, np.eye(4, dtype=np.float32), SEEN, np.array([0, 5]), np.array([3, 0]), POPULARITY)
  assert result.metrics['recall@5'] == result.new_users['recall@20'] == 1


@pytest.mark.parametrize('chunk,tile', [(1, 1), (64, 64), (512, 8192)])
def test_is_repeatable_whatever_the_sizes(chunk, tile):
  rng = np.random.default_rng(0)
  users, items = rng.normal(size=(150, 24)), rng.normal(size=(260, 24))
  seen = np.arange(151) * 4, rng.integers(260, size=600)
  pairs = np.unique(rng.integers(180 * 300, size=900))
  arguments = users, items, seen, pairs // 300, pairs % 300, np.arange(260)
  first = protocol.evaluate_block(*arguments)
  again = protocol.evaluate_block(*arguments, user_chunk=chunk, item_tile=tile)
  assert first.metrics == again.metrics and first.new_users == again.new_users
  assert first.coverage == again.coverage
