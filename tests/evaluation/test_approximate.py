"""The index of items against exact rankings."""
import graphsane_tf  # Selects legacy Keras.
import numpy as np
import pytest

from graphsane_benchmark import catalogues
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import approximate, ranking
from graphsane_tf.graph import csr
from graphsane_tf.negatives import ranked

pytest.importorskip('faiss')
_USERS, _ITEMS, _DEPTH = 120, 900, 30


@pytest.fixture(name='problem', scope='module')
def _problem():
  rng = np.random.default_rng(0)
  scorer = ranking.DotProduct(rng.standard_normal((_USERS, 8)), rng.standard_normal((_ITEMS, 8)))
  seen = rng.random((_USERS, _ITEMS)) < .05
  seen[3], seen[4, 2:] = True, True
  # One who has seen their best items.
  seen[5, ranking.top_k(scorer, np.array([5]), csr.from_pairs(*np.zeros((2, 0), int), _USERS, _ITEMS), 200)[0]] = True
  return scorer, csr.from_pairs(*np.nonzero(seen), _USERS, _ITEMS), seen


def test_lists_are_nearly_the_exact_ones(problem):
  scorer, seen, matrix = problem
  users = np.random.default_rng(1).permutation(_USERS)[:90]
  users = np.union1d(users, [3, 4, 5])[::-1]
  index = approximate.Index(scorer, users, seen, _DEPTH)
  ids, scores = index.top_k(users)
  exact_ids, _ = ranking.top_k(scorer, users, seen, _DEPTH)
  assert index.probes < int(_ITEMS ** .5) and index.recall >= approximate.RECALL
  assert approximate.recall(ids, exact_ids) > .9
  # As long as they can be, without anything seen, best first, with the true scores.
  np.testing.assert_array_equal(ids >= 0, exact_ids >= 0)
  row, column = np.nonzero(ids >= 0)
  assert not matrix[users[row], ids[row, column]].any()
  products = np.where(ids >= 0, np.einsum('ud,ukd->uk', scorer.user_vectors[users], scorer.item_vectors[ids]), -np.inf)
  np.testing.assert_allclose(scores, products, rtol=1e-4, atol=1e-4)
  assert (scores[:, 1:] <= scores[:, :-1]).all()
  assert all(len(set(line[line >= 0])) == (line >= 0).sum() for line in ids)
  assert ids.dtype == np.int32 and scores.dtype == np.float32


def test_looking_everywhere_is_exact(problem, monkeypatch):
  scorer, seen, _ = problem
  monkeypatch.setattr(approximate, 'RECALL', 1.1)
  ids, _ = approximate.top_k(scorer, np.arange(_USERS), seen, _DEPTH)
  exact, _ = ranking.top_k(scorer, np.arange(_USERS), seen, _DEPTH)
  assert approximate.recall(ids, exact) > .999


class _Halved(ranking.DotProduct):
  """Not the dot product alone."""


def test_other_scores_and_small_problems_are_exact(problem):
  scorer, seen, _ = problem
  users = np.arange(_USERS)
  halved = _Halved(scorer.user_vectors, scorer.item_vectors)
  np.testing.assert_array_equal(approximate.top_k(halved, users, seen, 5)[0], ranking.top_k(scorer, users, seen, 5)[0])
  assert approximate.top_k(scorer, users[:0], seen, 5)[0].shape == (0, 5)
  one = ranking.DotProduct(np.ones((2, 3)), np.ones((1, 3)))
  none = csr.from_pairs(*np.zeros((2, 0), int), 2, 1)
  np.testing.assert_array_equal(approximate.top_k(one, np.arange(2), none, 3)[0], [[0, -1, -1]] * 2)


def test_samplers_take_them_and_nobody_else_does(problem, monkeypatch):
  scorer, seen, _ = problem
  vectors = scorer.user_vectors, scorer.item_vectors
  rankings = ranked.Rankings(np.arange(_USERS), seen, 'approximate')
  assert rankings.rank(*vectors, _DEPTH) is None
  items = rankings.take(*vectors, _DEPTH)
  np.testing.assert_array_equal(items, approximate.top_k(scorer, np.arange(_USERS), seen, _DEPTH)[0])
  monkeypatch.setattr(approximate.importlib.util, 'find_spec', lambda name: None)
  with pytest.raises(UserError, match=r'graphsane_tf\[ann\].*train.ranking=exact'):
    ranked.Rankings(np.arange(_USERS), seen, 'approximate')


def test_benchmark_says_from_where_on_it_pays():
  assert catalogues.crossover([(10, 2.), (40, .5)]) == pytest.approx(20.)
  assert catalogues.crossover([(10, .9), (40, .5)]) == 10. and catalogues.crossover([(10, 3.), (40, 2.)]) == 40.
  assert catalogues.crossover([(10, 2.), (20, .9), (40, 2.), (160, .5)]) == pytest.approx(80.)
  found = list(catalogues.index_section((400, 800), 50))
  assert len(found) == 3 and all(figure.ours > 0 for figure in found) and 'exact lists found' in found[0].note


def test_benchmark_says_from_where_on_serving_by_it_pays():
  found = list(catalogues.served_section((400,), 50, 1))
  assert len(found) == 2 and all(figure.ours > 0 for figure in found) and 'of the exact lists of 100' in found[0].note
