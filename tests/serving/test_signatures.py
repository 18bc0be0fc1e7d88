"""Every signature of a SavedModel against NumPy, with and without a memory, here and in a fresh process."""
import ast
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf

from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import ranking
from graphsane_tf.peers.base import ItemWeights
from graphsane_tf.serving import export
from tests.serving.arrays import (
    ITEM_IDS, NUM_ITEMS, NUM_USERS, PROFILE_SCALE, USER_IDS, arrays, best, dense_scores, memory, seen_by)

_K = 9


@pytest.fixture(name='exports', scope='module')
def _exports(tmp_path_factory):
  """The arrays, the folder and the loaded model, without and with a memory; there slices have a few users only."""
  exports = {}
  for name, more in (('vectors', {}), ('memory', memory())):
    given, path = {**arrays(), **more}, tmp_path_factory.mktemp('signatures') / name
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(export, '_MAX_SLICE_PRODUCTS', 1500)
      export.export_block(path, **given)
    exports[name] = given, path, tf.saved_model.load(str(path))
  return exports


@pytest.fixture(name='exported', scope='module', params=['vectors', 'memory'])
def _exported(request, exports):
  return exports[request.param]


def _ask(model, signature, k=None, **inputs):
  """The answer as lists of (id, score), and whether each was known."""
  if k is not None:
    inputs['k'] = tf.constant(k, tf.int32)
  answer = model.signatures[signature](**{
      name: value if tf.is_tensor(value) else tf.constant(value, tf.string) for name, value in inputs.items()})
  rows = [[(item.decode(), score) for item, score in zip(ids, scores) if item]
          for ids, scores in zip(answer['item_id'].numpy(), answer['score'].numpy())]
  return rows, answer['known'].numpy().tolist()


class _Sum(ranking.Scorer):
  """Two scorers added up."""

  def __init__(self, first, second):
    self._parts = first, second
    self.num_users, self.num_items = first.num_users, first.num_items

  def tile(self, start, stop):
    writes = [part.tile(start, stop) for part in self._parts]

    def write(users, out):
      writes[0](users, out)
      more = np.empty_like(out)
      writes[1](users, more)
      out += more

    return write


def test_answers_are_those_of_our_own_ranking(exported):
  given, _, model = exported
  scorer = ranking.DotProduct(given['user_vectors'], given['item_vectors'])
  if 'profile' in given:
    scorer = _Sum(scorer, ItemWeights(given['profile'], given['weights']))
  for k in (_K, NUM_ITEMS):
    ids, scores = ranking.top_k(scorer, np.arange(NUM_USERS), given['seen'], k)
    rows, known = _ask(model, 'serving_default', k, user_id=USER_IDS)
    assert known == [True] * NUM_USERS
    assert rows == [[(ITEM_IDS[item], score) for item, score in zip(*row) if item >= 0] for row in zip(ids, scores)]


def test_what_ranks_is_read_from_disk(exported, tmp_path):
  given, path, _ = exported
  scorer = export.read_scorer(path)
  assert ('profile' in given) == hasattr(scorer, 'weights')
  for name in ('user_vectors', 'item_vectors'):
    np.testing.assert_array_equal(getattr(scorer, name), given[name])
  for name in {'profile', 'weights'} & set(given):
    np.testing.assert_array_equal(getattr(scorer, name).toarray(), given[name].toarray())
  with pytest.raises(UserError, match='cannot be read'):
    export.read_scorer(tmp_path)


def _popular(given, left_out, k):
  return [(item, pytest.approx(np.log1p(score))) for item, score in best(given['popularity'], left_out, k)]


def test_unknown_users_are_marked(exported):
  given, _, model = exported
  rows, known = _ask(model, 'serving_default', _K, user_id=['nobody', USER_IDS[0], ''])
  assert known == [False, True, False]
  assert rows[0] == rows[2] == _popular(given, [], _K)
  assert rows[1] == best(dense_scores(given)[0], seen_by(given, 0), _K)


@pytest.mark.parametrize('k', [0, 5, NUM_ITEMS + 3])
def test_lists_exclude_and_allow(exported, k):
  given, _, model = exported
  rng = np.random.default_rng(k)
  everything = set(range(NUM_ITEMS))
  users = [0, 3, 4, 5, None, 6, None]
  asked = ['nobody' if user is None else USER_IDS[user] for user in users]
  exclude = [set(rng.choice(NUM_ITEMS, 15, replace=False)) for _ in users]
  allow = [set(rng.choice(NUM_ITEMS, 30, replace=False)) for _ in users]
  padded = lambda lists: [[*[ITEM_IDS[item] for item in row], 'no such item', ''] for row in lists]

  def wanted(exclude, allow):
    rows = []
    for place, user in enumerate(users):
      out = exclude[place] | (everything - allow[place])
      rows.append(_popular(given, out, k) if user is None else
                  best(dense_scores(given)[user], out | set(seen_by(given, user)), k))
    return rows

  none, all_of = [set()] * len(users), [everything] * len(users)
  empty = tf.zeros([0, 0], tf.string)
  ask = lambda exclude, allow: _ask(model, 'recommend', k, user_id=asked, exclude=exclude, allow=allow)[0]
  assert ask(empty, empty) == wanted(none, all_of)
  assert ask(padded(exclude), empty) == wanted(exclude, all_of)
  assert ask(tf.constant([[]], tf.string), padded(allow)) == wanted(none, allow)
  assert ask(padded(exclude), padded(allow)) == wanted(exclude, allow)
  # One row is for all; a row without an id restricts nothing; a list of strangers allows nothing.
  assert ask(padded(exclude[:1]), padded(allow[:1])) == wanted(exclude[:1] * len(users), allow[:1] * len(users))
  some = padded(allow)
  some[0], some[4] = [''] * len(some[0]), ['no such item'] * len(some[4])
  assert ask(empty, some) == wanted(none, [everything, *allow[1:4], set(), *allow[5:]])
  with pytest.raises(tf.errors.InvalidArgumentError, match='Incompatible shapes'):
    ask(padded(exclude[:2]), empty)


def _fold_in(given, taken):
  """[d] by least squares with the ridge as further rows, instead of normal equations."""
  rows = [user for user in range(NUM_USERS) if len(seen_by(given, user))]
  vectors = given['item_vectors'].astype(np.float64)
  means = np.stack([vectors[seen_by(given, user)].mean(axis=0) for user in rows])
  users = given['user_vectors'][rows].astype(np.float64)
  centred = means - means.mean(axis=0)
  ridge = 1e-3 * centred.var(axis=0).mean() * len(rows)
  left = np.vstack([centred, np.sqrt(ridge) * np.eye(vectors.shape[1])])
  right = np.vstack([users - users.mean(axis=0), np.zeros((vectors.shape[1],) * 2)])
  matrix = np.linalg.lstsq(left, right, rcond=None)[0]
  return (vectors[taken].mean(axis=0) - means.mean(axis=0)) @ matrix + users.mean(axis=0)


def _by_items_scores(given, taken):
  scores = given['item_vectors'] @ _fold_in(given, taken)
  if 'profile' in given:
    scores = scores + PROFILE_SCALE * np.asarray(given['weights'][taken].sum(axis=0)).ravel()
  return scores


def test_somebody_known_by_items_alone(exported):
  given, _, model = exported
  taken = [[3, 50, 99], [7], [20, 21, 22, 23, 24, 25, NUM_ITEMS - 1], []]
  padded = [[*[ITEM_IDS[item] for item in row], *[''] * (8 - len(row))] for row in taken]
  # A repeated item counts once; a stranger not at all.
  padded[0][3:5], padded[1][1] = ITEM_IDS[50:51] * 2, 'no such item'
  rows, known = _ask(model, 'by_items', NUM_ITEMS, item_id=padded)
  assert known == [True, True, True, False]
  assert rows[3] == _popular(given, [], NUM_ITEMS)
  exclude = {1, 2, 3}
  listed, _ = _ask(model, 'recommend_by_items', _K, item_id=padded, exclude=[[ITEM_IDS[item] for item in exclude]],
                   allow=[ITEM_IDS[:60]])
  for row, short, items in zip(rows[:3], listed, taken):
    exact = _by_items_scores(given, items)
    # Scores are rounded, so equal ones may come in another order.
    for answer, left_out, k in ((row, set(items), NUM_ITEMS), (short, {*items, *exclude, *range(60, NUM_ITEMS)}, _K)):
      wanted = best(exact, left_out, k)
      np.testing.assert_allclose([score for _, score in answer], [score for _, score in wanted], atol=1e-4)
      np.testing.assert_allclose([score for _, score in answer], exact[[ITEM_IDS.index(item) for item, _ in answer]],
                                 atol=1e-4)
      assert not left_out & {ITEM_IDS.index(item) for item, _ in answer}


def test_similar_items(exported):
  given, _, model = exported
  vectors = given['item_vectors'].astype(np.float64)
  unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
  for k in (_K, NUM_ITEMS):
    rows, known = _ask(model, 'similar_items', k, item_id=[ITEM_IDS[8], 'no such item', ITEM_IDS[-1]])
    assert known == [True, False, True] and rows[1] == []
    for row, item in ((rows[0], 8), (rows[2], NUM_ITEMS - 1)):
      cosine = unit @ unit[item]
      wanted = [score for _, score in best(cosine, [item], k)]
      np.testing.assert_allclose([score for _, score in row], wanted, atol=1e-5)
      assert ITEM_IDS[item] not in {other for other, _ in row} and len({other for other, _ in row}) == len(row)
      np.testing.assert_allclose([score for _, score in row], cosine[[ITEM_IDS.index(other) for other, _ in row]],
                                 atol=1e-5)


def test_nobody_is_asked_for(exported):
  _, _, model = exported
  lists = {'exclude': [ITEM_IDS[:2]], 'allow': [ITEM_IDS[:9]]}
  nobody, nothing = tf.zeros([0], tf.string), tf.zeros([0, 3], tf.string)
  for signature, inputs in (('serving_default', {'user_id': nobody}), ('recommend', {'user_id': nobody, **lists}),
                            ('by_items', {'item_id': nothing}), ('recommend_by_items', {'item_id': nothing, **lists}),
                            ('similar_items', {'item_id': nobody})):
    assert _ask(model, signature, 4, **inputs) == ([], []), signature
  assert model.signatures['score'](user_id=nobody, item_id=nobody)['score'].shape == (0,)
  assert model.signatures['embed_users'](user_id=nobody)['embedding'].shape[0] == 0


def test_vectors_and_pairs(exported):
  given, _, model = exported
  for kind, ids in (('user', USER_IDS), ('item', ITEM_IDS)):
    answer = model.signatures[f'embed_{kind}s'](**{f'{kind}_id': tf.constant([ids[2], 'nobody', ids[-1]])})
    assert answer['known'].numpy().tolist() == [True, False, True]
    np.testing.assert_array_equal(answer['embedding'], given[f'{kind}_vectors'][[2, 0, -1]] * [[1.], [0.], [1.]])
  # Every pair, seen or not, and strangers.
  users, items = [*USER_IDS, 'nobody'], [*ITEM_IDS, 'no such item']
  answer = model.signatures['score'](user_id=tf.repeat(users, len(items)), item_id=tf.tile(items, [len(users)]))
  wanted = np.pad(dense_scores(given), [(0, 1), (0, 1)])
  np.testing.assert_array_equal(answer['score'].numpy().reshape(wanted.shape), wanted)
  known = np.pad(np.ones((NUM_USERS, NUM_ITEMS), bool), [(0, 1), (0, 1)])
  np.testing.assert_array_equal(answer['known'].numpy().reshape(wanted.shape), known)


_CLIENT = '''
import contextlib, io, json, sys
for name in ('graphsane_tf', 'tensorflow_recommenders', 'tf_keras', 'keras'):
  sys.modules[name] = None  # Any attempt to import it fails.
import tensorflow as tf
told = []
for path, asked in json.loads(sys.stdin.read()):
  model = tf.saved_model.load(path)
  answers = {}
  for name, inputs in asked.items():
    kinds = model.signatures[name].structured_input_signature[1]
    answer = model.signatures[name](**{key: tf.constant(value, kinds[key].dtype) for key, value in inputs.items()})
    answers[name] = {key: (value if value.dtype != tf.string else tf.strings.unicode_decode(value, 'UTF-8').to_list()
                           ) if key == 'item_id' else value.numpy().tolist() for key, value in answer.items()}
  # One step of a ranking loss on a pair, as a team that fine-tunes the model would make it.
  numbers = model.user_number(asked['score']['user_id'][:1]), model.item_number(asked['score']['item_id'][:1])
  variables = [model.user_vectors, model.item_vectors]
  with tf.GradientTape() as tape:
    tape_score = model.score_pairs(*numbers)
    loss = tf.reduce_sum(tf.nn.softplus(-tape_score))
  for variable, gradient in zip(variables, tape.gradient(loss, variables)):
    variable.assign_sub(.5 * tf.convert_to_tensor(gradient))
  answers['trainable'] = [variable.trainable for variable in variables]
  answers['before'], answers['after'] = tape_score.numpy().tolist(), model.score_pairs(*numbers).numpy().tolist()
  served = model.signatures['score'](user_id=tf.constant(asked['score']['user_id'][:1]),
                                     item_id=tf.constant(asked['score']['item_id'][:1]))
  answers['served'] = served['score'].numpy().tolist()
  told.append(answers)
# As TensorFlow Serving does it: signatures in a session.
from tensorflow.python.tools import saved_model_cli
sys.argv = ['saved_model_cli', 'run', '--dir', path, '--tag_set', 'serve', '--signature_def', 'recommend_by_items',
            '--input_exprs', ';'.join(f'{key}={value!r}' for key, value in asked['recommend_by_items'].items())]
shown = io.StringIO()
with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
  saved_model_cli.main()
print(json.dumps([told, shown.getvalue()]))
'''


def _requests():
  """Inputs by signature."""
  users, items = [*USER_IDS[:4], USER_IDS[-1], 'nobody'], [[ITEM_IDS[3], ITEM_IDS[-1]], ['no such item', '']]
  lists = {'exclude': [ITEM_IDS[:4]], 'allow': [ITEM_IDS[2:40]]}
  return {
      'serving_default': {'user_id': users, 'k': 11}, 'recommend': {'user_id': users, 'k': 11, **lists},
      'by_items': {'item_id': items, 'k': 5}, 'recommend_by_items': {'item_id': items, 'k': 5, **lists},
      'similar_items': {'item_id': items[0], 'k': 5}, 'embed_users': {'user_id': users},
      'embed_items': {'item_id': items[0]}, 'score': {'user_id': USER_IDS[:2], 'item_id': ITEM_IDS[:2]}}


def test_a_fresh_process_needs_only_tensorflow_to_serve_and_to_train(exports, tmp_path):
  asked = _requests()
  clean = {name: value for name, value in os.environ.items() if name not in ('TF_USE_LEGACY_KERAS', 'PYTHONPATH')}
  done = subprocess.run([sys.executable, '-I', '-c', _CLIENT], cwd=tmp_path, env=clean, capture_output=True, text=True,
                        check=False, input=json.dumps([(str(path), asked) for _, path, _ in exports.values()]))
  assert done.returncode == 0, done.stderr
  answers, shown = json.loads(done.stdout.splitlines()[-1])
  for (given, _, model), told in zip(exports.values(), answers):
    for name, inputs in asked.items():
      kinds = model.signatures[name].structured_input_signature[1]
      here = model.signatures[name](**{key: tf.constant(value, kinds[key].dtype) for key, value in inputs.items()})
      for key, value in here.items():
        there = told[name][key]
        if key == 'item_id':
          there = [[''.join(map(chr, item)) for item in row] for row in there]
          assert there == [[item.decode() for item in row] for row in value.numpy()], name
        else:
          np.testing.assert_array_equal(np.array(there, value.dtype.as_numpy_dtype), value.numpy(), name)
    user, item = (given[f'{kind}_vectors'][0].astype(np.float64) for kind in ('user', 'item'))
    kept = dense_scores(given)[0, 0] - user @ item
    before = user @ item + kept
    step = .5 / (1 + np.exp(before))
    after = (user + step * item) @ (item + step * user) + kept
    assert told['trainable'] == [True, True] and told['before'] == [before]
    np.testing.assert_allclose(told['after'], after, rtol=1e-5)
    assert told['served'] == told['after']
  items = [''.join(map(chr, item)) for row in answers[-1]['recommend_by_items']['item_id'] for item in row]
  table = shown.partition('output key item_id:')[2].partition('Result')[0]
  assert [ast.literal_eval(item).decode() for item in re.findall(r"b'[^']*'", table)] == items


def test_an_empty_memory_is_none(tmp_path):
  given = arrays()
  empty = scipy.sparse.csr_matrix((NUM_ITEMS, NUM_ITEMS), dtype=np.float32)
  export.export_block(tmp_path / 'm', **given, profile=memory()['profile'], weights=empty)
  assert export.recommend(tmp_path / 'm', USER_IDS[:1], 3) == [best(dense_scores(given)[0], seen_by(given, 0), 3)]


@pytest.mark.parametrize('change, message', [
    ({'weights': None}, 'both profile and weights'), ({'profile': memory()['profile'][1:]}, '37 rows'),
    ({'weights': memory()['weights'].toarray()}, 'sparse'), ({'weights': memory()['weights'] * np.nan}, 'not finite')])
def test_refuses_a_memory_that_does_not_fit(tmp_path, change, message):
  with pytest.raises(UserError, match=message):
    export.export_block(tmp_path / 'm', **arrays(), **{**memory(), **change})
  assert not list(tmp_path.iterdir())
