"""Simple models against plain NumPy, and what must hold for every one of them."""
import numpy as np
import pytest
import scipy.sparse

from graphsane_tf import peers
from graphsane_tf.peers import base, ease, local, neighbourhoods
from graphsane_tf.testing import peers as suite
from graphsane_tf.testing.peers import scores_of
from tests import logs


def _binary(rng, users=40, items=15, rate=.3):
  return scipy.sparse.csr_matrix((rng.random((users, items)) < rate).astype(np.float32))


@pytest.mark.parametrize('regularisation,stretch', [(1., 1024), (50., 4)])
def test_ease_is_the_constrained_least_squares_solution(regularisation, stretch, monkeypatch):
  """Column by column: ridge regression of an item on all others."""
  monkeypatch.setattr(ease, '_STRETCH', stretch)
  profile = _binary(np.random.default_rng(0))
  weights = ease.ease_weights((profile.T @ profile).toarray(), regularisation)
  dense = profile.toarray().astype(np.float64)
  for item in range(dense.shape[1]):
    others = np.delete(np.arange(dense.shape[1]), item)
    left = dense[:, others]
    expected = np.linalg.solve(left.T @ left + regularisation * np.eye(len(others)), left.T @ dense[:, item])
    np.testing.assert_allclose(weights[others, item], expected, atol=1e-4)
    assert weights[item, item] == 0


def _local_oracle(dense, width, regularisation):
  """Column by column: ridge regression of an item on its strongest neighbours."""
  together = dense.T.astype(np.float64) @ dense
  weights = np.zeros_like(together)
  for item in range(len(together)):
    cosine = together[item] / np.sqrt(together[item, item] * np.diag(together) + 1e-30)
    cosine[item] = 0.
    near = [other for other in np.argsort(-cosine.astype(np.float32), kind='stable')[:width] if cosine[other] > 0]
    left = dense[:, near]
    weights[near, item] = np.linalg.solve(left.T @ left + regularisation * np.eye(len(near)), left.T @ dense[:, item])
  return weights


@pytest.mark.parametrize('dense_items', [0, 1000])
@pytest.mark.parametrize('width,regularisation,chunk', [(3, 1., 1 << 22), (6, 20., 1), (100, 5., 1 << 22)])
def test_local_ease_is_ridge_regression_on_the_strongest_neighbours(width, regularisation, chunk, dense_items,
                                                                    monkeypatch):
  monkeypatch.setattr(local, '_CHUNK_FLOATS', chunk)
  monkeypatch.setattr(local, '_DENSE_ITEMS', dense_items)
  monkeypatch.setattr(neighbourhoods, '_CHUNK_FLOATS', chunk)
  dense = _binary(np.random.default_rng(3)).toarray()
  dense[:, 7] = 0.
  dense[:, 9] = 0.
  dense[0, 9] = 1.
  profile = scipy.sparse.csr_matrix(dense)
  weights = local.local_weights((profile.T @ profile).tocsr(), width, regularisation).toarray()
  np.testing.assert_allclose(weights, _local_oracle(dense, width, regularisation), atol=1e-4)


def test_with_all_items_as_neighbours_local_ease_is_ease():
  profile = _binary(np.random.default_rng(4), rate=.6)
  together = profile.T @ profile
  np.testing.assert_allclose(local.local_weights(together.tocsr(), 14, 10.).toarray(),
                             ease.ease_weights(together.toarray(), 10.), atol=1e-4)


def test_above_its_limit_ease_is_local(monkeypatch):
  profile = _binary(np.random.default_rng(0), rate=.6)
  whole = ease.all_weights(profile, 10.)
  monkeypatch.setattr(ease, 'MAX_ITEMS', 10)
  part = ease.all_weights(profile, 10.)
  assert scipy.sparse.issparse(part) and not scipy.sparse.issparse(whole)
  np.testing.assert_allclose(part.toarray(), whole, atol=1e-4)


def test_local_ease_of_nothing():
  nothing = scipy.sparse.csr_matrix((3, 3), dtype=np.float32)
  assert local.local_weights(nothing, 5, 1.).nnz == 0


@pytest.mark.parametrize('kept,shrinkage', [(4, 0.), (4, 10.), (100, 2.)])
def test_neighbours_against_a_loop(kept, shrinkage):
  profile = _binary(np.random.default_rng(1))
  near = neighbourhoods.strongest((profile.T @ profile).tocsr(), kept, shrinkage)
  weights = near.matrix(near.cosine).toarray()
  dense = profile.toarray()
  together = dense.T @ dense
  for item in range(15):
    root = np.sqrt(together[item, item] * np.diag(together))
    cosine = together[item] / (root + shrinkage + 1e-12)
    cosine[item] = 0.
    best = [other for other in np.argsort(-cosine, kind='stable')[:kept] if cosine[other] > 0]
    np.testing.assert_allclose(weights[best, item], cosine[best], rtol=1e-4)
    assert np.count_nonzero(weights[:, item]) == len(best)


def test_profiles_hold_the_weight_of_each_row():
  log = logs.random_log(rows=600)
  context = logs.context_of(log, 1)
  rows = context.num_rows
  profile = base.profiles(context, .2).toarray()
  for row in (0, 17, rows - 1):
    assert profile[log.user[row], log.item[row]] == pytest.approx(.2 / (.2 + (rows - 1 - row) / rows), rel=1e-6)
  assert np.count_nonzero(profile) == rows
  assert set(base.profiles(context).data) == {1.}


def test_popularity_counts():
  log = logs.random_log(rows=600)
  context = logs.context_of(log, 1)
  rows = context.num_rows
  counts = np.bincount(log.item[:rows], minlength=context.num_items)
  np.testing.assert_array_equal(scores_of(peers.REGISTRY['popularity']().fit(context))[0], counts)
  last = np.bincount(log.item[context.own], minlength=context.num_items)
  np.testing.assert_array_equal(scores_of(peers.REGISTRY['last_popularity']().fit(context))[2], last)
  weight = [.5 ** ((rows - 1 - row) / (.1 * rows)) for row in range(rows)]
  np.testing.assert_allclose(
      scores_of(peers.REGISTRY['recent_popularity']().fit(context, half_life=.1))[3],
      np.bincount(log.item[:rows], weight, context.num_items), rtol=1e-4)


def test_every_combination_of_settings():
  assert base.choices({'a': [1, 2], 'b': [3]}) == [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
  assert base.choices({}) == [{}]


def test_the_best_settings_are_those_of_all_blocks_each_on_its_own_scale():
  # By sums the first would win, by the last block alone the third.
  assert base.best([[.50, .45, .10], [.01, .09, .10]]) == 1
  assert base.best([[0., 0.], [.1, .2]]) == 1


def test_what_ease_has_solved_is_for_its_rows_and_its_lambda():
  log, kept = logs.random_log(rows=600), peers.REGISTRY['ease']()
  for index, regularisation in ((1, 400.), (1, 20.), (2, 20.), (1, 20.)):
    context = logs.context_of(log, index)
    profile = base.profiles(context)
    weights = ease.ease_weights((profile.T @ profile).toarray(), regularisation)
    found = scores_of(kept.fit(context, regularisation=regularisation))
    np.testing.assert_allclose(found, profile @ weights, atol=1e-4)


@pytest.mark.parametrize('half_age,factors,regularisation,alpha', [(0., 4, 10., 10.), (.2, 6, .5, 30.)])
def test_ials_solves_the_normal_equations(half_age, factors, regularisation, alpha):
  """Items, which are solved last, given the users: the confidence is alpha times the profile, or 1 without one."""
  pytest.importorskip('implicit')
  context = logs.context_of(logs.random_log(rows=600), 2)
  scorer = peers.REGISTRY['ials']().fit(
      context, half_age=half_age, factors=factors, regularisation=regularisation, alpha=alpha)
  users, items = scorer.user_vectors.astype(np.float64), scorer.item_vectors
  assert users.shape == (context.num_users, factors) and items.shape == (context.num_items, factors)
  profile = base.profiles(context, half_age).toarray().astype(np.float64)
  for item, found in enumerate(items):
    confidence = np.where(profile[:, item] > 0, alpha * profile[:, item], 1.)
    wanted = alpha * profile[:, item]
    expected = np.linalg.solve(users.T @ (confidence[:, None] * users) + regularisation * np.eye(factors),
                               users.T @ wanted)
    np.testing.assert_allclose(found, expected, atol=.02 * np.abs(items).max())


@pytest.mark.parametrize('name', [name for name in peers.REGISTRY if peers.REGISTRY[name].fitted and name != 'ials'])
class TestBehaviour(suite.Suite):
  pass
