"""Mixtures of graph model, memory and popularity, against dense NumPy."""
import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse

from graphsane_tf import memory
from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr
from graphsane_tf.memory import mixing, statistics
from graphsane_tf.testing.peers import scores_of
from graphsane_tf.training import scoring
from tests import logs


_HALF_AGES, _TASTE, _TASTE_HALF_AGE = (1., .1), .7, .03


def _state(name='ease', index=1):
  log = logs.random_log(rows=600)
  context = logs.context_of(log, index)
  counted = statistics.of_all(context)
  config = logs.tiny_config(memory_options__neighbours=6)
  recollection = mixing.Recollection(counted, memory.REGISTRY[name](config).weights(counted), _HALF_AGES, _TASTE,
                                     _TASTE_HALF_AGE)
  rng = np.random.default_rng(0)
  vectors = [rng.normal(size=(size, 3)).astype(np.float32) for size in (context.num_users, context.num_items)]
  return log, context, recollection, vectors


def _standard(scores):
  deviation = scores.std(axis=1, keepdims=True)
  return scores / np.where(deviation > 1e-9, deviation, np.inf)


def _expected(mixture, vectors, recollection):
  """[num_users, num_items] float64, from scores of whole rows."""
  counted = recollection.statistics
  users, items = (part.astype(np.float64) for part in vectors)
  long_run = _standard(users @ items.T)
  recent = _standard(counted.profile(_TASTE_HALF_AGE).toarray() @ items @ items.T)
  scores = mixture.graph * (long_run + _TASTE * recent) / (1 + _TASTE)
  if recollection.weights is not None:
    scores += mixture.memory * _standard(
        counted.profile(mixture.half_age).toarray().astype(np.float64) @ recollection.weights.toarray())
  popularity = np.log1p(counted.recent)
  return scores + mixture.recent * popularity / popularity.std()


@pytest.mark.parametrize('name', ['ease', 'knn', 'popularity'])
@pytest.mark.parametrize('mixture', [
    mixing.Mixture(4., 1.), mixing.MEMORY_ALONE, mixing.Mixture(1., 0., 2.), mixing.Mixture(.5, 2., .3, .1)])
def test_scores_of_a_mixture(name, mixture):
  _, _, recollection, vectors = _state(name)
  scorer = mixing.mix(mixture, *vectors, recollection)
  np.testing.assert_allclose(scores_of(scorer), _expected(mixture, vectors, recollection), atol=2e-4)
  cut = scorer.cut(5, 7)
  if recollection.weights is None or not mixture.memory:
    np.testing.assert_allclose(scores_of(cut), scores_of(scorer)[:5, :7], atol=1e-5)
  assert (cut.num_users, cut.num_items) == (5, 7)


def test_profiles_of_many_users_have_their_own_scale():
  """More than are measured at once."""
  rng = np.random.default_rng(1)
  log = logs.interactions_of(*np.divmod(rng.permutation(1500 * 12)[:9000], 12))
  context = logs.context_of(log, 3)
  counted = statistics.of_all(context)
  weights = memory.REGISTRY['knn'](logs.tiny_config()).weights(counted)
  found = (mixing.Recollection(counted, weights).profile(.2) @ weights).toarray()
  assert context.num_users > 1400
  np.testing.assert_allclose(found, _standard((counted.profile(.2) @ weights).toarray().astype(np.float64)), atol=1e-4)


def test_users_without_rows_have_the_graph_alone():
  _, context, recollection, vectors = _state()
  counted = recollection.statistics
  row = counted.row.copy().tolil()
  row[2] = 0
  row = row.tocsr()
  bare = mixing.Recollection(statistics.Statistics(row, counted.together, counted.recent), recollection.weights, (.1,),
                             .5, .1)
  scores = scores_of(mixing.mix(mixing.Mixture(4., 1.), *vectors, bare))
  alone = vectors[0][2] @ vectors[1].T
  np.testing.assert_allclose(scores[2], 4 / 1.5 * alone / alone.std(), atol=1e-3)
  assert np.isfinite(scores).all()


def _recall(scores, seen, users, items, k):
  """Mean recall@k over users, by sorting."""
  values = []
  for user in np.unique(users[users < len(scores)]):
    wanted = set(items[users == user])
    row = scores[user].astype(np.float64).copy()
    row[list(seen[user])] = -np.inf
    best = [item for item in np.argsort(-row, kind='stable')[:k] if row[item] > -np.inf]
    values.append(len(wanted & set(best)) / len(wanted))
  return np.mean(values)


@pytest.mark.parametrize('name', ['ease', 'popularity'])
@pytest.mark.parametrize('chunk', [1 << 22, 1])
def test_evidence_is_the_recall_of_every_mixture_on_the_next_rows(name, chunk, monkeypatch):
  monkeypatch.setattr(mixing, '_CHUNK_FLOATS', chunk)
  log, context, recollection, vectors = _state(name)
  later = logs.context_of(log, 2)
  users, items = later.rows(later.own)
  found = mixing.evidence(*vectors, recollection, context.history, users, items, np.random.default_rng(1), k=5)
  seen = [context.history.indices[context.history.indptr[user]:context.history.indptr[user + 1]]
          for user in range(context.num_users)]
  alone = [mixing.Mixture(0., 1., 0., half_age) for half_age in _HALF_AGES] if recollection.weights is not None else []
  best = max((found[mixture], mixture.half_age) for mixture in alone)[1] if alone else 0.
  assert set(found) == {*alone, *mixing.candidates(recollection.weights is not None, best)}
  for mixture in [*alone, *list(found)[::3]]:
    expected = _recall(_expected(mixture, vectors, recollection), seen, users, items, 5)
    assert found[mixture] == pytest.approx(expected, abs=.02), mixture
  assert len(set(found.values())) > 2


def test_evidence_of_strangers_is_empty():
  _, context, recollection, vectors = _state()
  nobody = np.array([context.num_users + 1])
  assert mixing.evidence(*vectors, recollection, context.history, nobody, np.array([0]),
                         np.random.default_rng(0)) == {}


def _told(**recalls):
  """Evidence in which all mixtures but the named ones are bad; a name is g4 or g1r3."""
  found = dict.fromkeys(mixing.candidates(True), .001)
  for name, recall in recalls.items():
    graph, _, recent = name[1:].partition('r')
    found[mixing.Mixture(float(graph), 1., float(recent or 0))] = recall
  assert set(found) == set(mixing.candidates(True))
  return found


def test_the_mixture_that_was_best_on_average_is_chosen():
  assert mixing.choose([_told(g4=.4, g2=.3)], True) == mixing.Mixture(4., 1.)
  # On the scale of each one's best, the older one a quarter: .25 / 4 + 1, 1 / 4 + .9 and 1 / 4 + .1.
  assert mixing.choose([_told(g1=.1, g4=.4, g8=.4), _told(g1=.02, g4=.018, g8=.002)], True) == mixing.Mixture(4., 1.)
  # The newest one decides where they differ as much.
  assert mixing.choose([_told(g1=.4, g8=.2), _told(g1=.2, g8=.4)], True) == mixing.Mixture(8., 1.)
  assert mixing.choose([], True, (1., .1)) == mixing.default(True, .1) == mixing.Mixture(4., 1., 0., .1)
  assert mixing.choose([{}], False) == mixing.GRAPH_ALONE
  assert mixing.choose([dict.fromkeys(mixing.candidates(True), 0.)], True) == mixing.default(True)


def test_of_mixtures_that_are_as_good_the_one_nearest_to_equal_parts_is_chosen():
  assert mixing.choose([_told(g8=.4, g4=.389, g2=.386)], True) == mixing.Mixture(4., 1.)
  assert mixing.choose([_told(g8=.4, g1=.389, g0=.39)], True) == mixing.Mixture(1., 1.)
  # As near on either side: the better one. Log2 of 3 and 1 are as far from 1 as those of 1 are.
  assert mixing.choose([_told(g0=.4, g4=.39)], True) == mixing.MEMORY_ALONE
  # Popularity is far, too: log2(1.75) with equal parts against log2(3) - 1 without.
  assert mixing.choose([_told(**{'g1r0.75': .4, 'g2': .39})], True) == mixing.Mixture(2., 1.)
  assert mixing.choose([_told(**{'g1r0.75': .4, 'g8': .39})], True) == mixing.Mixture(1., 1., .75)


def test_the_half_age_is_that_of_the_best_memory_and_the_mixture_is_of_each_ones_own():
  def told(old, new, best, **recalls):
    """Recalls of the memory alone with half ages 1 and .1, and of mixtures with the better one."""
    alone = {mixing.Mixture(0., 1., 0., 1.): old, mixing.Mixture(0., 1., 0., .1): new}
    return {**{dataclasses.replace(mixture, half_age=best): recall for mixture, recall in _told(**recalls).items()},
            **alone}
  first, second = told(.3, .2, 1., g4=.4), told(.2, .25, .1, g8=.4)
  assert mixing.choose([first], True, (1., .1)) == mixing.Mixture(4., 1., 0., 1.)
  assert mixing.choose([first, second], True, (1., .1)) == mixing.Mixture(8., 1., 0., .1)
  # A quarter of .75 + .625 against a quarter of .5 + .6.
  assert mixing.choose([first, told(.25, .24, 1., g8=.4)], True, (1., .1)) == mixing.Mixture(8., 1., 0., 1.)


def test_evidence_goes_to_json_and_back():
  evidence = {mixture: .1 * place for place, mixture in enumerate(mixing.candidates(True))}
  assert scoring.from_json(json.loads(json.dumps(scoring.to_json(evidence)))) == evidence
  assert mixing.Mixture(1., 0., .5).words() == '1 graph + 0.5 recent popularity'
  assert mixing.Mixture(4., 1., 0., .1).words() == '4 graph + 1 memory (half age 0.1)'
  assert mixing.Mixture(0., 1., 0., .1).words() == '1 memory (half age 0.1); the graph model counts nothing'


@pytest.mark.parametrize('name', list(memory.REGISTRY))
def test_what_must_hold_for_every_memory(name):
  config = logs.tiny_config()
  for log in (logs.random_log(rows=600), logs.interactions_of(np.arange(40), np.zeros(40, int))):
    context = logs.context_of(log, 1)
    counted = statistics.of_all(context)
    weights = memory.REGISTRY[name](config).weights(counted)
    if weights is not None:
      assert weights.shape == (context.num_items, context.num_items)
      assert np.isfinite(weights.data).all() and not weights.diagonal().any()
      assert np.diff(weights.tocsc().indptr).max() <= config.memory_options.neighbours
    ones = np.ones((context.num_users, 1), np.float32), np.ones((context.num_items, 1), np.float32)
    scorer = mixing.mix(mixing.default(weights is not None), *ones, mixing.Recollection(counted, weights))
    assert np.isfinite(scores_of(scorer)).all()
    ids, _ = ranking.top_k(scorer, np.arange(3), csr.from_pairs(np.zeros(0, int), np.zeros(0, int), 40, 1), 5)
    assert (ids[:, 0] >= 0).all()


@pytest.mark.parametrize('share, kind', [(.01, scipy.sparse.csr_matrix), (.2, np.ndarray)])
def test_few_weights_stay_sparse_and_score_as_many_do(share, kind):
  rng = np.random.default_rng(4)
  full = np.where(rng.random((100, 100)) < share, rng.standard_normal((100, 100)), 0.).astype(np.float32)
  taken = (rng.random((30, 100)) < .1).astype(np.float32)
  taken[7] = 0.
  weights, profile = scipy.sparse.csr_matrix(full), scipy.sparse.csr_matrix(taken)
  table = mixing.quick(weights)
  assert isinstance(table, kind)
  scores = taken.astype(np.float64) @ full
  deviation = scores.std(axis=1)
  expected = np.array([1 / one if one > 1e-9 else 0. for one in deviation])
  assert expected[7] == 0. and (expected > 0).sum() > 10
  np.testing.assert_allclose(mixing.row_scale(profile @ table), expected, rtol=1e-4)
  # A scorer adds them to its dot products, in tiles, too.
  users, items = (rng.standard_normal((number, 3)).astype(np.float32) for number in (30, 100))
  scorer = mixing.Mixed(users, items, profile, weights)
  for start, stop in ((0, 100), (40, 90)):
    out = np.empty((4, stop - start), np.float32)
    scorer.tile(start, stop)(np.array([3, 7, 8, 20]), out)
    np.testing.assert_allclose(out, (users @ items.T + scores)[[3, 7, 8, 20], start:stop], atol=1e-4)
