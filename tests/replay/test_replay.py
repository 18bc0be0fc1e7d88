"""Which old rows are replayed, and how often."""
import numpy as np
import pytest

from graphsane_tf import replay
from graphsane_tf.config import default_config, resolved
from graphsane_tf.blocks.stream import Block
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError
from graphsane_tf.replay.base import weighted_rows
from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.context import BlockContext

_HISTORY = 300


def _context(replayed=None) -> BlockContext:
  """300 old rows: user 0 has 200 of them, users 1 to 10 have ten each; then 20 rows of a block."""
  rng = np.random.default_rng(0)
  user = np.concatenate([np.zeros(200, np.int32), np.repeat(np.arange(1, 11, dtype=np.int32), 10)])
  item = np.concatenate([np.arange(200), np.tile(np.arange(10), 10)]).astype(np.int32)
  order = rng.permutation(_HISTORY)
  user = np.concatenate([user[order], np.full(20, 11, np.int32)])
  item = np.concatenate([item[order], np.arange(20, dtype=np.int32)])
  log = Interactions(user, item, np.arange(len(user)), np.arange(12).astype(object),
                     np.arange(200).astype(object))
  return contexts.cut(log, Block(1, slice(_HISTORY, 320), slice(0, 0), slice(0, 0), 12, 200),
                      Block(0, slice(0, _HISTORY), slice(0, 0), slice(0, 0), 11, 200), replayed)


def _users():
  """[300] users of the old rows."""
  return _context().log_users[:_HISTORY]


def _policy(name, seed=0, **options):
  c = default_config()
  c.update_from_flattened_dict({f'replay_options.{k}': v for k, v in options.items()})
  return replay.REGISTRY[name](resolved(c), (seed, 1))


@pytest.mark.parametrize('name', sorted(set(replay.REGISTRY) - {'none'}))
class TestEveryPolicy:

  def test_draws_its_share_of_different_old_rows(self, name):
    rows = _policy(name, ratio=.2).rows(_users())
    assert len(rows) == 60 == len(set(rows.tolist()))
    assert rows.min() >= 0 and rows.max() < _HISTORY

  def test_same_seed_same_rows(self, name):
    first, again, other = (_policy(name, seed, ratio=.2).rows(_users()) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert set(first.tolist()) != set(other.tolist())

  def test_window_keeps_to_the_newest_rows(self, name):
    rows = _policy(name, ratio=.2, window=.25).rows(_users())
    assert len(rows) == 60 and rows.min() >= 225
    assert len(_policy(name, ratio=.9, window=.25).rows(_users())) == 75

  def test_nothing_and_everything(self, name):
    assert len(_policy(name, ratio=0.).rows(_users())) == 0
    np.testing.assert_array_equal(_policy(name, ratio=1.).rows(_users()), np.arange(_HISTORY))

  def test_replayed_pairs_are_true_edges_and_never_negatives(self, name):
    own = len(_context().users)
    context = _context(_policy(name, ratio=.2).rows(_users()))
    edges = set(zip(context.log_users.tolist(), context.log_items.tolist()))
    pairs = list(zip(context.users.tolist(), context.items.tolist()))
    assert len(pairs) == own + 60 and set(pairs) <= edges
    assert context.positives.matrix().sum() == own + 60
    assert context.block.matrix().sum() == own

  def test_a_wrong_share_is_one_sentence(self, name):
    with pytest.raises(UserError, match='replay_options.ratio is 2.0'):
      _policy(name, ratio=2.)


def test_none_replays_nothing():
  assert len(_policy('none', ratio=.5).rows(_users())) == 0


def _share_of_user_0(name, **options):
  users = _users()
  return np.mean([(users[_policy(name, seed, **options).rows(users)] == 0).mean()
                  for seed in range(40)])


def test_inverse_degree_prefers_users_with_few_rows():
  # User 0 has two thirds of the rows. By inverse degree each of the 11 users is as likely at first.
  assert _share_of_user_0('uniform', ratio=.1) == pytest.approx(2 / 3, abs=.05)
  once = _share_of_user_0('inverse_degree', ratio=.02)
  assert once == pytest.approx(1 / 11, abs=.04)
  assert _share_of_user_0('inverse_degree', ratio=.1, exponent=3.) < .01
  assert _share_of_user_0('inverse_degree', ratio=.1, exponent=0.) == pytest.approx(2 / 3, abs=.05)


def test_weighted_rows_follow_the_probabilities_of_successive_draws():
  weight = np.array([1., 2., 5.])
  rng = np.random.default_rng(0)
  count = 20_000
  included = np.bincount(
      np.concatenate([weighted_rows(weight, 2, rng) for _ in range(count)]), minlength=3) / count
  share = weight / weight.sum()
  expected = [share[i] + sum(share[j] * weight[i] / (8. - weight[j]) for j in range(3) if j != i)
              for i in range(3)]
  np.testing.assert_allclose(included, expected, atol=.015)
