"""Mixtures of graph model, memory and popularity, against dense NumPy."""
import numpy as np
import pytest

from graphsane_tf import memory
from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr
from graphsane_tf.memory import mixing, statistics
from graphsane_tf.testing.peers import scores_of
from tests import logs


def _state(name='ease', index=1):
  log = logs.random_log(rows=600)
  context = logs.context_of(log, index)
  counted = statistics.of_all(context, 5.)
  config = logs.tiny_config(memory_options__neighbours=6)
  recollection = mixing.Recollection(counted, memory.REGISTRY[name](config).weights(counted))
  rng = np.random.default_rng(0)
  vectors = [rng.normal(size=(size, 3)).astype(np.float32) for size in (context.num_users, context.num_items)]
  return log, context, recollection, vectors


def _standard(scores):
  deviation = scores.std(axis=1, keepdims=True)
  return scores / np.where(deviation > 1e-9, deviation, np.inf)


def _expected(mixture, vectors, recollection):
  """[num_users, num_items] float64, from scores of whole rows."""
  counted = recollection.statistics
  scores = (1. if mixture.graph == np.inf else mixture.graph) * _standard(
      vectors[0].astype(np.float64) @ vectors[1].T)
  if recollection.weights is not None and mixture.graph < np.inf:
    scores += _standard(counted.profile.toarray().astype(np.float64) @ recollection.weights.toarray())
  for weight, counts in ((mixture.popularity, counted.counts), (mixture.recent, counted.recent)):
    logs_of = np.log1p(counts)
    scores += weight * logs_of / logs_of.std()
  return scores


@pytest.mark.parametrize('name', ['ease', 'knn', 'popularity'])
@pytest.mark.parametrize('mixture', [
    mixing.Mixture(4.), mixing.Mixture(0.), mixing.Mixture(np.inf, 1., 0.), mixing.Mixture(.5, 0., 2.)])
def test_scores_of_a_mixture(name, mixture):
  _, _, recollection, vectors = _state(name)
  scorer = mixing.mix(mixture, *vectors, recollection)
  np.testing.assert_allclose(scores_of(scorer), _expected(mixture, vectors, recollection), atol=2e-4)
  cut = scorer.cut(5, 7)
  if recollection.weights is None or mixture.graph == np.inf:
    np.testing.assert_allclose(scores_of(cut), scores_of(scorer)[:5, :7], atol=1e-5)
  assert (cut.num_users, cut.num_items) == (5, 7)


def test_users_without_a_profile_have_the_graph_alone():
  _, context, recollection, vectors = _state()
  counted = recollection.statistics
  age = counted.age.copy()
  age.data[age.indptr[2]:age.indptr[3]] = np.inf
  bare = mixing.Recollection(statistics.Statistics(
      counted.taken, age, counted.together, counted.recent, 5.), recollection.weights)
  scores = scores_of(mixing.mix(mixing.Mixture(4.), *vectors, bare))
  alone = vectors[0][2] @ vectors[1].T
  np.testing.assert_allclose(scores[2], 4 * alone / alone.std(), atol=1e-4)
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
  assert list(found) == mixing.candidates(recollection.weights is not None)
  for mixture in list(found)[::5]:
    expected = _recall(_expected(mixture, vectors, recollection), seen, users, items, 5)
    assert found[mixture] == pytest.approx(expected, abs=.02), mixture
  assert len(set(found.values())) > 3


def test_evidence_of_strangers_is_empty():
  _, context, recollection, vectors = _state()
  nobody = np.array([context.num_users + 1])
  assert mixing.evidence(*vectors, recollection, context.history, nobody, np.array([0]),
                         np.random.default_rng(0)) == {}


def test_the_mixture_that_was_best_on_average_is_chosen():
  first, second, third = mixing.candidates(True)[:3]
  others = dict.fromkeys(mixing.candidates(True), .01)
  assert mixing.choose([{**others, first: .4, second: .3}], True) == first
  # On the scale of each block's best: .25 and 1 against 1 and .9, and 1 and .1.
  assert mixing.choose([{**others, first: .1, second: .4, third: .4},
                        {**others, first: .02, second: .018, third: .002}], True) == second
  assert mixing.choose([], True) == mixing.default(True) == mixing.Mixture(4.)
  assert mixing.choose([{}], False).graph == np.inf
  assert mixing.choose([dict.fromkeys(mixing.candidates(True), 0.)], True) == mixing.default(True)


def test_a_mixture_goes_to_json_and_back():
  for mixture in mixing.candidates(True):
    assert mixing.Mixture.from_json(mixture.to_json()) == mixture
  assert mixing.Mixture(np.inf, 0., .5).words() == '1 graph + 0.5 recent popularity'
  assert mixing.Mixture(4.).words() == '4 graph + 1 memory'


@pytest.mark.parametrize('name', list(memory.REGISTRY))
def test_what_must_hold_for_every_memory(name):
  config = logs.tiny_config()
  for log in (logs.random_log(rows=600), logs.interactions_of(np.arange(40), np.zeros(40, int))):
    context = logs.context_of(log, 1)
    counted = statistics.of_all(context, 40.)
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
