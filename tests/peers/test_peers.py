"""Simple models against plain NumPy, and what must hold for every one of them."""
import numpy as np
import pytest
import scipy.sparse

from graphsane_tf import peers
from graphsane_tf.errors import UserError
from graphsane_tf.peers import base, ease, neighbours
from graphsane_tf.testing import peers as suite
from graphsane_tf.testing.peers import scores_of
from tests import logs


def _binary(rng, users=40, items=15, rate=.3):
  return scipy.sparse.csr_matrix((rng.random((users, items)) < rate).astype(np.float32))


@pytest.mark.parametrize('regularisation', [1., 50.])
def test_ease_is_the_constrained_least_squares_solution(regularisation):
  """Column by column: ridge regression of an item on all others."""
  profile = _binary(np.random.default_rng(0))
  weights = ease.ease_weights(ease.gram_matrix(profile), regularisation)
  dense = profile.toarray().astype(np.float64)
  for item in range(dense.shape[1]):
    others = np.delete(np.arange(dense.shape[1]), item)
    left = dense[:, others]
    expected = np.linalg.solve(left.T @ left + regularisation * np.eye(len(others)), left.T @ dense[:, item])
    np.testing.assert_allclose(weights[others, item], expected, atol=1e-4)
    assert weights[item, item] == 0


def test_ease_refuses_a_catalogue_that_is_too_large(monkeypatch):
  monkeypatch.setattr(ease, 'MAX_ITEMS', 10)
  with pytest.raises(UserError, match='15 items are more than the 10'):
    ease.gram_matrix(_binary(np.random.default_rng(0)))


@pytest.mark.parametrize('kept,shrinkage', [(4, 0.), (4, 10.), (100, 2.)])
def test_neighbours_against_a_loop(kept, shrinkage):
  profile = _binary(np.random.default_rng(1))
  weights = neighbours.cosine_weights(profile, kept, shrinkage).toarray()
  dense = profile.toarray()
  together = dense.T @ dense
  for item in range(15):
    root = np.sqrt(together[item, item] * np.diag(together))
    cosine = together[item] / (root + shrinkage + 1e-12)
    cosine[item] = 0.
    best = [other for other in np.argsort(-cosine, kind='stable')[:kept] if cosine[other] > 0]
    np.testing.assert_allclose(weights[best, item], cosine[best], rtol=1e-4)
    assert np.count_nonzero(weights[:, item]) == len(best)


def test_old_rows_lose_half_their_weight_in_a_half_life():
  context = logs.context_of(logs.random_log(rows=600), 2)
  weight = base.decay(context, 3.)
  rows = context.block_rows
  assert len(weight) == context.num_rows and weight[-1] == 1.
  assert weight[-1 - 3 * rows] == pytest.approx(.5) and weight[-1 - 6 * rows] == pytest.approx(.25)
  np.testing.assert_array_equal(base.decay(context, 0.), np.ones(context.num_rows))


def test_profiles_hold_the_weight_of_each_row():
  log = logs.random_log(rows=600)
  context = logs.context_of(log, 1)
  profile, weight = base.profiles(context, 2.).toarray(), base.decay(context, 2.)
  for row in (0, 17, context.num_rows - 1):
    assert profile[log.user[row], log.item[row]] == weight[row]
  assert np.count_nonzero(profile) == context.num_rows


def test_popularity_counts():
  log = logs.random_log(rows=600)
  context = logs.context_of(log, 1)
  peer = peers.REGISTRY['popularity']()
  counts = np.bincount(log.item[:context.num_rows], minlength=context.num_items)
  np.testing.assert_array_equal(scores_of(peer.fit(context))[0], counts)
  weight = .5 ** ((context.num_rows - 1 - np.arange(context.num_rows)) / context.block_rows)
  np.testing.assert_allclose(
      scores_of(peer.fit(context, half_life=1.))[3],
      np.bincount(log.item[:context.num_rows], weight, context.num_items), rtol=1e-4)


def test_every_combination_of_settings():
  assert base.choices({'a': [1, 2], 'b': [3]}) == [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
  assert base.choices({}) == [{}]


@pytest.mark.parametrize('name', [name for name in peers.REGISTRY if name != 'ials'])
class TestBehaviour(suite.Suite):
  pass
