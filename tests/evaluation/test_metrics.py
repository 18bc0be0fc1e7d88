"""Tests of the metrics against hand-computed cases and a plain oracle."""
import math

import numpy as np
import pytest

from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import metrics
from graphsane_tf.graph import csr

LOG3 = 1 / math.log2(3)


def _held(lists):
  indptr = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
  return csr.Csr(indptr, np.array([item for one in lists for item in one], dtype=np.int64), 2000)


def _one(ranked, relevant, k, **options):
  values = metrics.per_user(np.array([ranked]), _held([relevant]), metrics.Options((k,), **options))
  return {name.split('@')[0]: value[0] for name, value in values.items()}


def test_hand_computed_case():
  """Hits at ranks 1 and 3 of 4; three relevant items, one of them never ranked."""
  value = _one([7, 8, 9, 1], [9, 7, 1000], 4)
  ideal = 1 + LOG3 + 0.5 + 1 / math.log2(5)
  assert value['recall'] == pytest.approx(2 / 3)
  assert value['precision'] == pytest.approx(2 / 4)
  assert value['map'] == pytest.approx((1 + 2 / 3) / 3)
  assert value['ndcg'] == pytest.approx(1.5 / ideal)


def test_hand_computed_variants():
  truncated = _one([7, 8], [7, 8, 9], 2, map_denominator='truncated')
  assert truncated['map'] == pytest.approx(1.0)
  assert _one([7, 8], [7, 8, 9], 2)['map'] == pytest.approx(2 / 3)
  assert _one([8, 7, 6], [7], 3, map_denominator='truncated')['map'] == pytest.approx(0.5)
  assert _one([7, 8, 6], [7], 3, ndcg_ideal='relevant')['ndcg'] == pytest.approx(1.0)
  assert _one([7, 8, 6], [7], 3)['ndcg'] == pytest.approx(1 / (1 + LOG3 + 0.5))
  assert _one([8, 7, 6], [7, 5], 3, ndcg_ideal='relevant')['ndcg'] == pytest.approx(
      LOG3 / (1 + LOG3))


def test_an_empty_slot_is_no_hit_for_the_last_item_of_the_user_before():
  """The key of (user 1, item -1) would be that of (user 0, last item)."""
  values = metrics.per_user(np.array([[0, 1], [-1, -1]]), _held([[5], [3]]), metrics.Options((2,)))
  np.testing.assert_array_equal(values['recall@2'], [0, 0])
  values = metrics.per_user(np.array([[0, 5], [-1, -1]]), _held([[5], [3]]), metrics.Options((2,)))
  np.testing.assert_array_equal(values['recall@2'], [1, 0])


def _oracle(ranked, relevant, k, map_denominator, ndcg_ideal):
  hits = [int(item in relevant) for item in ranked[:k]]
  precision = [sum(hits[:rank + 1]) / (rank + 1) for rank in range(k)]
  ideal = k if ndcg_ideal == 'k' else min(k, len(relevant))
  below = len(relevant) if map_denominator == 'relevant' else min(k, len(relevant))
  return {
      f'recall@{k}': sum(hits) / len(relevant), f'precision@{k}': sum(hits) / k,
      f'map@{k}': sum(hit * value for hit, value in zip(hits, precision)) / below,
      f'ndcg@{k}': sum(hit / math.log2(rank + 2) for rank, hit in enumerate(hits)) / sum(
          1 / math.log2(rank + 2) for rank in range(ideal))}


@pytest.mark.parametrize('map_denominator', ['relevant', 'truncated'])
@pytest.mark.parametrize('ndcg_ideal', ['k', 'relevant'])
def test_agrees_with_the_oracle(map_denominator, ndcg_ideal):
  rng = np.random.default_rng(0)
  ranked = np.stack([rng.permutation(40)[:20] for _ in range(60)])
  ranked[::7, 12:] = -1
  lists = [rng.permutation(60)[:rng.integers(0, 30)] for _ in range(60)]
  options = {'map_denominator': map_denominator, 'ndcg_ideal': ndcg_ideal}
  values = metrics.per_user(ranked, _held(lists), metrics.Options(**options))
  means = metrics.evaluate(ranked, _held(lists), metrics.Options(**options))
  assert len(values) == len(means) == 16
  for k in (5, 10, 15, 20):
    wanted = [_oracle(row.tolist(), set(one.tolist()), k, **options)
              for row, one in zip(ranked, lists) if len(one)]
    for name in wanted[0]:
      expected = [value[name] for value in wanted]
      some = np.array([len(one) > 0 for one in lists])
      np.testing.assert_allclose(values[name][some], expected, rtol=1e-12)
      assert np.isnan(values[name][~some]).all()
      assert means[name] == pytest.approx(np.mean(expected))


def test_users_without_held_out_items_do_not_count():
  ranked = np.array([[1, 2], [1, 2], [1, 2]])
  means = metrics.evaluate(ranked, _held([[1], [], [9]]), metrics.Options((2,)))
  assert means['recall@2'] == 0.5
  assert means['precision@2'] == 0.25


def test_nothing_held_out():
  assert metrics.evaluate(np.zeros((2, 5), int), _held([[], []]), metrics.Options((5,))) == {}
  assert metrics.evaluate(np.zeros((0, 5), int), _held([]), metrics.Options((5,))) == {}


@pytest.mark.parametrize('options', [
    {'cutoffs': (5, 21)}, {'cutoffs': (0,)}, {'cutoffs': ()}, {'map_denominator': 'k'},
    {'ndcg_ideal': 'best'}])
def test_wrong_options_are_refused(options):
  with pytest.raises(UserError):
    metrics.evaluate(np.zeros((1, 20), int), _held([[1]]), metrics.Options(**options))
