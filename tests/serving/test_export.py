"""Tests of the SavedModel export."""
import pathlib

import graphsane_tf  # Selects legacy Keras.
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.errors import UserError
from graphsane_tf.graph import csr
from graphsane_tf.serving import export
from tests.serving.arrays import (
    DIMENSION, ITEM_IDS, NUM_ITEMS, NUM_USERS, USER_IDS, arrays as make_arrays, best, dense_scores, seen_by)


def _oracle(arrays, user, k):
  """[(item id, score)] of one known user."""
  return best(dense_scores(arrays)[user], seen_by(arrays, user), k)


@pytest.fixture(scope='module')
def arrays():
  return make_arrays()


@pytest.fixture(scope='module')
def path(arrays, tmp_path_factory):
  folder = tmp_path_factory.mktemp('export') / 'block-1'
  export.export_block(folder, **arrays)
  return folder


@pytest.fixture(scope='module')
def model(path):
  return tf.saved_model.load(str(path))


@pytest.mark.parametrize('k', [1, 5, 20, NUM_ITEMS, NUM_ITEMS + 30])
def test_agrees_with_the_oracle(model, arrays, k):
  answers = export.recommend(model, USER_IDS, k)
  assert answers == [_oracle(arrays, user, k) for user in range(NUM_USERS)]
  assert answers[3] == []
  assert len(answers[4]) == min(k, NUM_ITEMS)


def test_shapes_and_padding(model):
  k = NUM_ITEMS + 9
  answer = model.signatures['serving_default'](
      user_id=tf.constant([USER_IDS[3], USER_IDS[4], 'nobody']), k=tf.constant(k))
  ids, scores = answer['item_id'].numpy(), answer['score'].numpy()
  assert ids.shape == scores.shape == (3, k) and scores.dtype == np.float32
  assert (ids[0] == b'').all() and (scores[0] == -np.inf).all()
  for row in (1, 2):
    assert set(ids[row][:NUM_ITEMS]) == {name.encode() for name in ITEM_IDS}
    assert (ids[row][NUM_ITEMS:] == b'').all() and (scores[row][NUM_ITEMS:] == -np.inf).all()


def test_unknown_users_get_the_popular_items(model, arrays):
  order = np.argsort(-arrays['popularity'], kind='stable')[:7]
  wanted = [(ITEM_IDS[item], pytest.approx(np.log1p(arrays['popularity'][item]))) for item in order]
  assert export.recommend(model, ['nobody', USER_IDS[0], ''], 7) == [
      wanted, _oracle(arrays, 0, 7), wanted]


@pytest.mark.parametrize('k', [0, -1])
def test_no_items_asked(model, k):
  answer = model.signatures['serving_default'](
      user_id=tf.constant(USER_IDS[:2]), k=tf.constant(k))
  assert answer['item_id'].shape == answer['score'].shape == (2, 0)


def test_no_users_asked(model):
  assert export.recommend(model, [], 5) == []


def test_large_batches_go_in_slices(model, arrays):
  users = np.random.default_rng(1).integers(NUM_USERS, size=2500)
  answers = export.recommend(model, [USER_IDS[user] for user in users], 4)
  wanted = [_oracle(arrays, user, 4) for user in range(NUM_USERS)]
  assert answers == [wanted[user] for user in users]


def test_answers_do_not_depend_on_the_batch(model, arrays):
  for user in (0, 5, NUM_USERS - 1):
    assert export.recommend(model, USER_IDS[user:user + 1], NUM_ITEMS) == [
        _oracle(arrays, user, NUM_ITEMS)]


def test_answers_are_right_within_the_rounding_of_a_product(tmp_path):
  """With twins in the catalogue, whose scores any product may round differently."""
  rng = np.random.default_rng(2)
  arrays = dict(
      make_arrays(), seen=csr.from_pairs([], [], NUM_USERS, NUM_ITEMS),
      user_vectors=rng.normal(size=(NUM_USERS, 48)),
      item_vectors=rng.normal(size=(7, 48))[rng.integers(7, size=NUM_ITEMS)])
  export.export_block(tmp_path / 'm', **arrays)
  exact = arrays['user_vectors'] @ arrays['item_vectors'].T
  for user, row in enumerate(export.recommend(tmp_path / 'm', USER_IDS, NUM_ITEMS)):
    items = [ITEM_IDS.index(item) for item, _ in row]
    assert sorted(items) == list(range(NUM_ITEMS))
    scores = np.array([score for _, score in row])
    np.testing.assert_allclose(scores, exact[user, items], atol=1e-4)
    np.testing.assert_allclose(scores, -np.sort(-exact[user]), atol=1e-4)


def test_unsorted_seen_items_are_accepted(tmp_path, arrays):
  indptr, indices = arrays['seen'].indptr, arrays['seen'].indices
  mixed = np.concatenate([indices[start:stop][::-1] for start, stop in zip(indptr, indptr[1:])])
  export.export_block(tmp_path / 'm', **dict(arrays, seen=csr.Csr(indptr, mixed, NUM_ITEMS)))
  assert export.recommend(tmp_path / 'm', USER_IDS[:3], 9) == [
      _oracle(arrays, user, 9) for user in range(3)]


def test_tables_are_not_graph_constants(tmp_path, path):
  rng = np.random.default_rng(0)
  users, items = 3000, 2000
  export.export_block(
      tmp_path / 'm', rng.normal(size=(users, 32)), rng.normal(size=(items, 32)),
      [f'user-{number}' for number in range(users)], [f'item-{number}' for number in range(items)],
      csr.Csr(np.arange(users + 1) * 5, rng.integers(items, size=users * 5), items), np.ones(items))
  small, large = (pathlib.Path(folder, 'saved_model.pb').stat().st_size
                  for folder in (path, tmp_path / 'm'))
  assert abs(large - small) < 2000


def test_replaces_an_older_export_and_leaves_no_other_file(tmp_path, arrays):
  export.export_block(tmp_path / 'm', **arrays)
  other = dict(arrays, popularity=arrays['popularity'][::-1])
  export.export_block(tmp_path / 'm', **other)
  best = ITEM_IDS[int(np.argmax(other['popularity']))]
  assert export.recommend(tmp_path / 'm', ['nobody'], 1)[0][0][0] == best
  assert [name.name for name in tmp_path.iterdir()] == ['m']


@pytest.mark.parametrize('change,message', [
    ({'user_ids': USER_IDS[:-1]}, 'user ids'),
    ({'item_ids': ITEM_IDS[:-1] + ITEM_IDS[:1]}, 'item ids'),
    ({'popularity': np.ones(3)}, 'popularity'),
    ({'item_vectors': np.full((NUM_ITEMS, DIMENSION), np.nan)}, 'not finite'),
    ({'seen': csr.Csr(np.arange(NUM_USERS + 1), np.full(NUM_USERS, NUM_ITEMS), NUM_ITEMS)}, 'seen items'),
])
def test_refuses_what_does_not_fit(tmp_path, arrays, change, message):
  with pytest.raises(UserError, match=message):
    export.export_block(tmp_path / 'm', **dict(arrays, **change))
  assert not list(tmp_path.iterdir())


def test_names_a_folder_without_a_model(tmp_path):
  with pytest.raises(UserError, match='nothing-here'):
    export.recommend(tmp_path / 'nothing-here', ['a'], 1)
