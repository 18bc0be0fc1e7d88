"""Which old rows are replayed, and how often."""
import numpy as np
import pytest

from graphsane_tf import replay
from graphsane_tf.errors import UserError
from graphsane_tf.replay.base import weighted_rows
from graphsane_tf.testing import replays
from graphsane_tf.testing.replays import policy, users


@pytest.mark.parametrize('name', sorted(set(replay.REGISTRY) - {'none'}))
class TestEveryPolicy(replays.Suite):

  def test_another_seed_gives_other_rows(self, name):
    first, other = (policy(name, seed, ratio=.2).rows(users()) for seed in (0, 1))
    assert set(first.tolist()) != set(other.tolist())

  def test_a_wrong_share_is_one_sentence(self, name):
    with pytest.raises(UserError, match='replay_options.ratio is 2.0'):
      policy(name, ratio=2.)


def test_none_replays_nothing():
  assert len(policy('none', ratio=.5).rows(users())) == 0


def _share_of_user_0(name, **options):
  owners = users()
  return np.mean([(owners[policy(name, seed, **options).rows(owners)] == 0).mean()
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


@pytest.mark.parametrize('count', [0, 1, 250, 500])
def test_weighted_rows_are_those_whose_clocks_ring_first(count):
  weight = np.random.default_rng(1).random(500) + .1
  found = weighted_rows(weight, count, np.random.default_rng(2))
  clock = np.random.default_rng(2).exponential(size=500) / weight
  assert sorted(found) == sorted(np.argsort(clock)[:count])
