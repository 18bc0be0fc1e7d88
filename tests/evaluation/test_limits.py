"""Sizes, ends of lists and other rims of the evaluation, against loops."""
import warnings

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import backbones
from graphsane_tf.config import default_config
from graphsane_tf.evaluation import forgetting, metrics, protocol, ranking
from graphsane_tf.reporting import audit
from graphsane_tf.graph import csr, views


@pytest.mark.parametrize('threads,num_items,users', [
    # 24 << 20 scores for all threads, in multiples of 64 users, 64 to 512; tiles of 65,536 items.
    (1, 10, 512), (1, 49_152, 512), (1, 49_153, 448), (1, 65_536, 384), (1, 10**9, 384),
    (2, 65_536, 192), (2, 60_000, 192), (4, 65_536, 64), (64, 65_536, 64), (2, 0, 512)])
def test_users_ranked_at_a_time(monkeypatch, threads, num_items, users):
  monkeypatch.setattr(ranking, '_threads', lambda on_device: threads)
  assert ranking.user_chunk_size(num_items) == users


def test_threads(monkeypatch):
  monkeypatch.setattr(ranking.parallel, 'cores', lambda: 7)
  assert ranking._threads(False) == 7
  assert ranking._threads(True) == 3


class _Counted(ranking.Scorer):
  """Scores that are the item's number, and notes of what was asked for."""

  def __init__(self, num_users, num_items):
    self.num_users, self.num_items = num_users, num_items
    self.tiles, self.asked = [], []

  def tile(self, start, stop):
    self.tiles.append((start, stop))

    def write(users, out):
      assert out.shape == (len(users), stop - start)
      self.asked.append((start, users.tolist()))
      out[:] = np.arange(start, stop)

    return write


@pytest.mark.parametrize('num_items,item_tile,tiles', [
    (10, 100, [(0, 10)]), (10, 10, [(0, 10)]), (10, 9, [(0, 5), (5, 10)]),
    (10, 4, [(0, 4), (4, 8), (8, 10)]), (7, 3, [(0, 3), (3, 6), (6, 7)]),
    (3, 1, [(0, 1), (1, 2), (2, 3)]), (0, 5, [])])
def test_tiles_are_about_equal_and_none_is_larger_than_asked_for(num_items, item_tile, tiles):
  scorer = _Counted(5, num_items)
  # User 1 has seen the last item, if there is one.
  pairs = (np.array([1]), np.array([num_items - 1])) if num_items else (np.zeros(0, int),) * 2
  seen = csr.from_pairs(*pairs, 5, max(num_items, 1))
  ids, scores = ranking.top_k(scorer, np.array([1, 3, 4]), seen, 2, 2, item_tile)
  assert scorer.tiles == tiles
  assert sorted(scorer.asked) == sorted(
      (start, users) for start, _ in tiles for users in ([1, 3], [4]))
  best = [*range(num_items)][::-1] + [-1] * 3
  wanted = np.array([best[1:3], best[:2], best[:2]]) if num_items else np.full((3, 2), -1)
  np.testing.assert_array_equal(ids, wanted)
  np.testing.assert_array_equal(scores, np.where(wanted < 0, -np.inf, wanted))


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('length,k', [(1, 1), (5, 2), (40, 2), (33, 2), (32, 2), (12, 30)])
def test_shortened_lists_against_a_walk(monkeypatch, seed, length, k):
  """At most 16 k entries are looked at; a list serves if k are left of them, or if it ends there."""
  monkeypatch.setattr(ranking, '_CHUNK_FLOATS', 1)  # Chunks of 64 users.
  rng = np.random.default_rng(seed)
  num_items, listed = 50, np.flatnonzero(rng.random(150) < .9)
  items = np.stack([rng.permutation(num_items) for _ in listed])[:, :length].astype(np.int32)
  for row in range(0, len(items), 3):  # Lists that end early.
    items[row, rng.integers(length + 1):] = -1
  seen = rng.random((150, num_items)) < rng.random((150, 1))
  table = csr.from_pairs(*np.nonzero(seen), 150, num_items)
  users = np.sort(rng.permutation(150)[:140])
  ids, found = ranking.shortened(ranking.Lists(listed, items), users, table, k, num_items)
  assert ids.dtype == np.int32 and 0 < found.sum() < len(found)
  for user, row, ok in zip(users, ids, found):
    place = np.flatnonzero(listed == user)
    if not len(place):
      assert not ok and (row == -1).all()
      continue
    looked = items[place[0]][:16 * k]
    left = [item for item in looked if item >= 0 and not seen[user, item]][:k]
    np.testing.assert_array_equal(row, left + [-1] * (k - len(left)))
    assert ok == (len(left) == k or looked[-1] < 0)


def test_no_warning_where_nothing_is_held_out():
  held = csr.Csr(np.array([0, 0, 2]), np.array([1, 3]), 4)
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    for denominator in ('relevant', 'truncated'):
      for ideal in ('k', 'relevant'):
        found = metrics.per_user(np.array([[1, 2], [3, 0]]), held, metrics.Options(
            (1, 2), denominator, ideal))
        for name, (nothing, value) in found.items():
          assert np.isnan(nothing) and value > 0, name


def test_an_unknown_item_number_is_no_other_users_item():
  """Items beyond all held-out ones must not look like items of the next user."""
  held = csr.Csr(np.array([0, 1, 2]), np.array([1, 0]), 2)
  found = metrics.per_user(np.array([[2, 3], [7, 0]]), held, metrics.Options((1, 2)))
  np.testing.assert_array_equal(found['recall@1'], [0., 0.])
  np.testing.assert_array_equal(found['recall@2'], [0., 1.])


def test_new_users_of_a_small_catalogue():
  """Three items by popularity, then nothing: nothing is listed twice."""
  scorer = ranking.DotProduct(np.eye(1, 3), np.eye(3))
  nothing = csr.from_pairs(np.zeros(0, int), np.zeros(0, int), 1, 3)
  for item, rank in ((0, 2), (1, 1), (2, 3)):
    found = protocol.evaluate_block(scorer, nothing, np.array([4]), np.array([item]),
                                    np.array([5, 9, 5]), metrics.Options((1, 2, 3, 5)))
    for k in (1, 2, 3, 5):
      assert found.new_users[f'recall@{k}'] == (k >= rank)
      assert found.new_users[f'precision@{k}'] == pytest.approx((k >= rank) / k)


def test_groups_of_pairs():
  users, table = protocol.group(np.array([7, 2, 7, 2, 9]), np.array([5, 1, 0, 8, 3]))
  assert users.tolist() == [2, 7, 9] and table.num_columns == 9
  assert [table.indices[a:b].tolist() for a, b in zip(table.indptr, table.indptr[1:])] == [
      [1, 8], [5, 0], [3]]
  users, table = protocol.group(np.zeros(0, int), np.zeros(0, int))
  assert len(users) == 0 and (table.num_rows, table.num_columns) == (0, 0)


def test_zero_masked_lists_of_many_users():
  rng = np.random.default_rng(0)
  user_vectors, item_vectors = rng.normal(size=(700, 3)), rng.normal(size=(30, 3))
  seen = rng.random((700, 30)) < .3
  users = rng.permutation(700)[:650]
  found = audit.zero_masked_top(user_vectors, item_vectors, users,
                                csr.from_pairs(*np.nonzero(seen), 700, 30), 8)
  scores = np.where(seen, 0., user_vectors @ item_vectors.T)[users]
  np.testing.assert_array_equal(found, np.argsort(-scores, axis=1, kind='stable')[:, :8])


@pytest.mark.parametrize('at_once', [1, 4, 7, 100])
def test_noisy_representations_of_all_nodes_in_parts(monkeypatch, at_once):
  """Without dropout and with every neighbour drawn there is no noise."""
  monkeypatch.setattr(audit, '_NODES_AT_ONCE', at_once)
  config = default_config().model
  config.update({'embedding_dim': 3, 'dropout': 0., 'fanout': (20, 20), 'num_knn': 20})
  edges = csr.from_pairs(*np.nonzero(np.random.default_rng(0).random((7, 9)) < .5), 7, 9)
  backbone, graph = backbones.REGISTRY['mgccf'](7, 9, config, (0,)), views.Graph(edges, 20)
  found = audit.noisy_representer(backbone, graph)(tf.constant([1, 2]))
  for one, other in zip(found, backbone.representer(graph)()):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_figures_of_the_audit(monkeypatch):
  """Means over draws and blocks, the change against the first line, the largest span of draws."""
  values = {1: [[.2], [.3], [.1], [.1, .3], [.4, .4]], 3: [[.4], [.3], [.5], [.2, .5], [.2, .6]]}
  names = [name for name, _ in audit.VARIANTS]
  monkeypatch.setattr(audit, 'audit_block',
                      lambda run, index: dict(zip(names, values[index])))
  found = audit.audit(None, [1, 3])
  assert found['heads'] == ['evaluation', 'block 1', 'block 3', 'average', 'change %', 'span of draws']
  expected = [[.2, .4, .3, 0., None], [.3, .3, .3, 0., None], [.1, .5, .3, 0., None],
              [.2, .35, .275, -25 / 3, .3], [.4, .4, .4, 100 / 3, .4]]
  assert [line[0] for line in found['cells']] == names
  for line, numbers in zip(found['cells'], expected):
    assert line[1:] == [None if number is None else pytest.approx(number, abs=1e-9)
                        for number in numbers]
  values[1][0], values[3][0] = [0.], [0.]
  assert audit.audit(None, [1, 3])['cells'][1][4] is None


def test_random_recall_of_users_who_have_seen_nearly_everything():
  """Fewer unseen items than places in a list: all of them are found."""
  seen = csr.from_pairs(np.repeat([0, 1], [3, 4]), np.array([0, 1, 2, 0, 1, 2, 3]), 2, 4)
  user, item = np.array([0, 1]), np.array([3, 9])
  assert forgetting.random_recall(seen, user, item, 2, 4, 2) == pytest.approx(.5)
  assert forgetting.random_recall(seen, user[:1], item[:1], 1, 4, 1) == 1.


def test_each_figure_has_its_own_entries_of_the_matrices():
  """Every entry is another power of two: a figure tells which ones it is made of."""
  recall = 2. ** np.arange(9).reshape(3, 3)
  chance = 2. ** np.arange(9, 18).reshape(3, 3)
  found = forgetting.summarise(recall, chance)
  # The best of models 0 and 1 on block 0 is 2^3, of model 1 on block 1 is 2^4; the last has 2^6 and 2^7.
  assert found['average_forgetting'] == ((2**3 - 2**6) + (2**4 - 2**7)) / 2
  assert found['backward_transfer'] == ((2**6 - 2**0) + (2**7 - 2**4)) / 2
  assert found['forward_transfer'] == ((2**1 - 2**10) + (2**5 - 2**14)) / 2
