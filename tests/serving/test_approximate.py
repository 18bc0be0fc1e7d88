"""Serving by an index of the items against the SavedModel's exact answers."""
import re

import graphsane_tf  # pylint: disable=unused-import  # Selects legacy Keras.
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import approximate as indices
from graphsane_tf.graph import csr
from graphsane_tf.recommender import Recommender
from graphsane_tf.serving import approximate, export, models
from tests.serving import arrays as small

pytest.importorskip('faiss')
_USERS, _ITEMS = 90, 900
_IDS = [f'u{user}' for user in range(_USERS)]


@pytest.fixture(name='served', scope='module')
def _served(tmp_path_factory):
  """A version served by an index, what it has seen, and what it said; users 3 and 4 have few items left."""
  rng = np.random.default_rng(0)
  seen = rng.random((_USERS, _ITEMS)) < .03
  seen[3], seen[4, 2:] = True, True
  path, said = tmp_path_factory.mktemp('index') / 'm', []
  export.export_block(path, rng.standard_normal((_USERS, 8)), rng.standard_normal((_ITEMS, 8)), _IDS,
                      [f'i{item}' for item in range(_ITEMS)], csr.from_pairs(*np.nonzero(seen), _USERS, _ITEMS),
                      rng.integers(1, 99, _ITEMS))
  return models.Served(1, path, 'approximate', said.append), models.Served(1, path), seen, said


def _ask(served, users, k, signature='serving_default', **more):
  answer = served.ask(signature, {'user_id': tf.constant(users, tf.string, [len(users)]), 'k': tf.constant(k), **more})
  return {name: value.numpy() for name, value in answer.items()}


def test_lists_are_nearly_the_exact_ones(served):
  indexed, exact, seen, said = served
  index = indexed._index.index
  assert 1 <= index.probes < index.centres == 30 and index.recall >= indices.RECALL
  sentence, = said
  assert f'has {index.recall:.3f} of the exact lists of 100, with {index.probes} of 30 centres' in sentence
  assert re.search(r'a list of 10 takes \S+ ms by it and \S+ ms exactly', sentence)
  found, wanted = _ask(indexed, _IDS, 20), _ask(exact, _IDS, 20)
  assert found['known'].all() and found['score'].dtype == np.float32
  number = lambda ids: np.array([[int(item[1:]) if item else -1 for item in row] for row in ids])
  items, truth = number(found['item_id']), number(wanted['item_id'])
  assert indices.recall(items, truth) > .9
  # As long as they can be, nothing seen, best first, with the model's scores.
  np.testing.assert_array_equal(items >= 0, truth >= 0)
  assert (items[3] < 0).all() and sorted(items[4][items[4] >= 0]) == [0, 1]
  row, column = np.nonzero(items >= 0)
  assert not seen[row, items[row, column]].any()
  assert (found['score'][:, 1:] <= found['score'][:, :-1]).all() and (found['score'][items < 0] == -np.inf).all()
  both = items == truth
  np.testing.assert_allclose(found['score'][both], wanted['score'][both], rtol=1e-5, atol=1e-5)


def test_what_the_index_cannot_know_is_exact(served):
  indexed, exact, _, _ = served
  users = ['nobody', 'u5', '']
  found, wanted = _ask(indexed, users, 7), _ask(exact, users, 7)
  assert found['known'].tolist() == [False, True, False]
  for name in ('item_id', 'score'):
    np.testing.assert_array_equal(found[name][[0, 2]], wanted[name][[0, 2]])
    for some, k in ((users[:1], 7), (_IDS, approximate.LONGEST + 1), (_IDS, 0), ([], 7)):
      np.testing.assert_array_equal(_ask(indexed, some, k)[name], _ask(exact, some, k)[name])
  lists = {'exclude': tf.constant([['i1']]), 'allow': tf.constant([[f'i{item}' for item in range(9)]])}
  found, wanted = (_ask(one, _IDS, 5, 'recommend', **lists) for one in (indexed, exact))
  np.testing.assert_array_equal(found['item_id'], wanted['item_id'])


def test_a_memory_is_ranked_exactly(tmp_path):
  export.export_block(tmp_path / 'm', **small.arrays(), **small.memory())
  said = []
  assert approximate.indexed(tf.saved_model.load(str(tmp_path / 'm')), said.append) is None
  assert 'ranked exactly' in said[0]


def test_mistakes_are_told_of(monkeypatch):
  with pytest.raises(UserError, match='--ranking=fast: choose from exact, approximate'):
    Recommender(None, ranking='fast')
  monkeypatch.setattr(indices.importlib.util, 'find_spec', lambda name: None)
  with pytest.raises(UserError, match='^ranking=approximate needs faiss.* or set --ranking=exact'):
    approximate.check('approximate')
