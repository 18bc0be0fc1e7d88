"""The life of a store: made, updated, refused, gone back, made to forget, and cut off at any line."""
import json
import shutil

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from graphsane_tf.data import growing
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError
from graphsane_tf.recommender import Recommender
from graphsane_tf.runs import status, store as stores, updating
from graphsane_tf.serving import versions
from tests import store_files

QUIET = lambda line: None


class Stop(Exception):
  """Stands for a kill."""


def stopping(word):
  """Raises `Stop` at the first line that has a word."""
  def say(line):
    if word in line:
      raise Stop
  return say


@pytest.fixture(scope='module')
def days(tmp_path_factory):
  return store_files.write_days(tmp_path_factory.mktemp('days'))


@pytest.fixture(scope='module')
def first(tmp_path_factory, days):
  """A store with one version; not to be changed. It was cut off at several lines."""
  path = tmp_path_factory.mktemp('first') / 'shop'
  for word in ('block 0 epoch  1/2', 'publishing'):
    with pytest.raises(Stop):
      updating.create(path, days['history'], store_files.config(), say=stopping(word))
    assert stores.Store(path).versions.current() is None
  outcome = updating.create(path, days['history'], store_files.config(), say=QUIET)
  assert outcome.decision == 'published' and outcome.version == 1
  return path


@pytest.fixture
def shop(first, tmp_path):
  """A copy of it."""
  shutil.copytree(first, tmp_path / 'shop')
  return stores.Store(tmp_path / 'shop')


def test_the_first_version(first, days):
  store = stores.Store(first)
  manifest = store.manifest()
  assert manifest['kind'] == 'base' and manifest['parent'] is None and manifest['gate']['decision'] == 'first'
  assert manifest['data']['rows'] == 6000 == manifest['arrived']['rows'] and manifest['trained']['rows'] == [0, 6000]
  assert manifest['measured']['rows_trained'] == [0, 4800]
  assert manifest['measured']['validation_rows'] == [4800, 5400] and manifest['measured']['judged_rows'] == [5400, 6000]
  assert set(manifest['gate']['options']) == {'trained', 'popularity'}
  assert manifest['trained']['epochs'] == manifest['measured']['epochs'] in (1, 2)
  assert manifest['config'] == json.loads(json.dumps(store.config.to_dict()))
  assert not store.work.exists()
  history = pd.read_csv(days['history'])
  assert manifest['data']['users'] == history.user.nunique() and manifest['data']['items'] == history.item.nunique()
  last = history.iloc[-1]
  opened = Recommender.open(first)
  everything = opened.recommend(last.user, 1000)
  taken = set(history.item[history.user == last.user])
  assert {item for item, _ in everything} == set(history.item) - taken, 'the version knows the last row'
  scorer = store.scorer()
  ids = store.log().interactions
  user = np.flatnonzero(ids.user_ids == last.user)[0]
  scores = dict(zip(ids.item_ids, scorer.item_vectors @ scorer.user_vectors[user]))
  for item, score in everything:
    assert score == pytest.approx(scores[item], abs=1e-5)


def test_the_same_call_again_changes_nothing_and_another_one_is_refused(first, days, tmp_path):
  config = store_files.config()
  assert updating.create(first, days['history'], config, say=QUIET).decision == 'nothing'
  for change in ({'config': store_files.config(seed=1)}, {'name': 'other'}, {'settings': stores.Settings(margin=.1)}):
    with pytest.raises(UserError, match='other flags'):
      updating.create(first, days['history'], **{'config': config, **change}, say=QUIET)
  with pytest.raises(UserError, match='another history'):
    updating.create(first, days['monday'], config, say=QUIET)
  (tmp_path / 'file').write_text('mine')
  with pytest.raises(UserError, match='not empty'):
    updating.create(tmp_path, days['history'], config, say=QUIET)
  with pytest.raises(UserError, match='holds no store'):
    stores.Store(tmp_path)
  with pytest.raises(UserError, match='base_from'):
    updating.create(tmp_path / 'new', days['history'], store_files.config(base_from='run'), say=QUIET)
  with pytest.raises(UserError, match='a name begins'):
    updating.create(tmp_path / 'new', days['history'], config, name='../up', say=QUIET)


@pytest.mark.fault('times that are equal')
def test_what_a_store_cannot_be_made_of_is_one_sentence(days, tmp_path):
  history = pd.read_csv(days['history'])
  history.assign(timestamp=history.timestamp[0]).to_csv(tmp_path / 'equal.csv', index=False)
  with pytest.raises(UserError, match='6,000 rows of .*equal.csv have the same time'):
    updating.create(tmp_path / 'new', tmp_path / 'equal.csv', store_files.config(), say=QUIET)
  with pytest.raises(UserError, match='--peer=ease has no meaning for a store'):
    updating.create(tmp_path / 'new', days['history'], store_files.config(peer='ease'), say=QUIET)


@pytest.mark.fault('rows of the future')
def test_rows_of_the_future_are_refused_unless_the_log_is_of_the_future(shop, days, tmp_path):
  monday = pd.read_csv(days['monday'])
  monday.loc[monday.index[-7:], 'timestamp'] = 2 ** 33
  monday.to_csv(tmp_path / 'monday.csv', index=False)
  with pytest.raises(UserError, match='monday.csv: 7 rows are later than today .* the last of 2242-'):
    updating.update(shop, tmp_path / 'monday.csv', forget_users=[str(shop.log().interactions.user_ids[3])], say=QUIET)
  assert len(shop.log().interactions) == 6000 and shop.versions.numbers() == [1]
  history = pd.read_csv(days['history'])
  history.loc[history.index[-5:], 'timestamp'] = 2 ** 33
  history.to_csv(tmp_path / 'history.csv', index=False)
  lines = []
  with pytest.raises(Stop):
    updating.create(tmp_path / 'future', tmp_path / 'history.csv', store_files.config(),
                    say=lambda line: (lines.append(line), stopping('warning')(line)))
  assert lines[-1].startswith('warning: 5 rows are later than today by the clock of this machine, the last of 2242-')


def test_ids_in_another_spelling_are_warned_about(shop, days, tmp_path):
  monday = pd.read_csv(days['monday'])
  monday.loc[monday.index[:2], 'user'] += ' '
  monday.to_csv(tmp_path / 'monday.csv', index=False)
  lines = []
  with pytest.raises(Stop):
    updating.update(shop, tmp_path / 'monday.csv', say=lambda line: (lines.append(line), stopping('warning')(line)))
  assert lines[-1].startswith(f'warning: {monday.user[:2].nunique()} new users differ from others only by spaces')
  assert lines[-2].split(';')[1] == f' {monday.user[:2].nunique()} new users, 0 new items'


@pytest.mark.fault('damaged store')
def test_a_damaged_name_does_not_lead_out_of_the_store(shop):
  saved = json.loads((shop.path / 'store.json').read_text())
  (shop.path / 'store.json').write_text(json.dumps({**saved, 'name': '../other'}))
  with pytest.raises(UserError, match=r'--name=\.\./other: a name begins with a letter'):
    stores.Store(shop.path)


@pytest.mark.fault('update cut off')
def test_an_update_that_is_cut_off_goes_on_to_the_same_version(shop, days, tmp_path):
  shutil.copytree(shop.path, tmp_path / 'whole')
  whole = stores.Store(tmp_path / 'whole')
  # The whole grown log brings only what is new.
  straight = updating.update(whole, days['whole'], say=QUIET)
  assert straight.decision == 'published' and straight.manifest['arrived']['already_used'] == 6000
  for word in ('new rows', 'block 1 epoch  1/2', 'gate:', 'writing', 'publishing'):
    with pytest.raises(Stop):
      updating.update(shop, days['monday'], say=stopping(word))
    assert shop.versions.current() == 1 and Recommender.open(shop.path).version == 1
  lines = []
  outcome = updating.update(shop, days['monday'], say=lines.append)
  assert not any('epoch  1/' in line for line in lines), 'it goes on where it was'
  assert outcome.version == 2 and outcome.manifest['arrived']['rows'] == 1200
  one, other = (store_files.weights(store, 2) for store in (whole, shop))
  assert one.keys() == other.keys()
  for name in one:
    np.testing.assert_array_equal(one[name], other[name])
  for part in ('data', 'gate', 'measured', 'trained', 'drift'):
    assert straight.manifest[part] == outcome.manifest[part]
  assert set(outcome.manifest['gate']['options']) == {'trained', 'graph_only', 'current', 'popularity'}
  assert outcome.manifest['drift']['compared_users'] > 100
  again = updating.update(shop, days['monday'], say=QUIET)
  assert again.decision == 'nothing' and shop.versions.numbers() == [1, 2]


def test_a_bad_day_is_refused_and_its_rows_wait(shop, days, tmp_path):
  outcome = updating.update(shop, days['popular'], say=QUIET)
  assert outcome.decision == 'refused' and outcome.version == 1 and 'popularity' in outcome.sentence
  assert shop.versions.current() == 1 and (shop.versions.rejected / '2' / 'saved_model.pb').exists()
  rows = len(shop.log().interactions)
  again = updating.update(shop, days['popular'], say=QUIET)
  assert (again.decision, again.sentence) == ('refused', outcome.sentence) and len(shop.log().interactions) == rows
  (tmp_path / 'empty.csv').write_text('user,item,timestamp,category\n')
  assert updating.update(shop, tmp_path / 'empty.csv', say=QUIET).decision == 'nothing'
  found = status.collect(shop)
  assert found['current'] == 1 and found['waiting'] == rows - 6000
  assert [entry['published'] for entry in found['versions']] == [True, False]
  assert '2  ' in status.text(found) and 'refused' in status.text(found)

  # With a margin that lets anything through, the next day is trained on together with them.
  first_day = rows - 6000
  outcome = updating.update(shop, days['tuesday'], margin=.99, say=QUIET)
  assert outcome.decision == 'published' and outcome.version == 3
  assert outcome.manifest['arrived']['waiting'] == first_day
  # They were judged on before and are again: their users count once.
  assert outcome.manifest['gate']['pooled']['updates'] == 1
  assert outcome.manifest['gate']['pooled']['users'] == outcome.manifest['gate']['users']
  assert outcome.manifest['trained']['rows'] == [6000, len(shop.log().interactions)]
  assert [entry['file'] for entry in outcome.manifest['arrived']['files']] == ['popular.csv', 'tuesday.csv']

  # Going back brings the old model under a new number, and the rows wait again.
  assert updating.rollback(shop, 1) == 4 == shop.versions.current()
  one, other = store_files.weights(shop, 1), store_files.weights(shop, 4)
  assert all(np.array_equal(one[name], other[name]) for name in one)
  assert status.collect(shop)['waiting'] == len(shop.log().interactions) - 6000
  assert [path.name for path in updating.prune(shop, 1)] == ['1', '3', '2']


def test_a_small_day_is_trained_on_unjudged_and_somebody_is_forgotten(shop, days):
  outcome = updating.update(shop, days['tuesday'], say=QUIET)
  manifest = outcome.manifest
  assert outcome.decision == 'published' and manifest['gate']['decision'] == 'unjudged'
  assert manifest['trained'] == {'epochs': 2, 'epochs_from': 'earlier', 'rows': [6000, 6060]}
  log = shop.log().interactions
  gone, item = log.user_ids[3], log.item_ids[5]
  before, scores = store_files.weights(shop, 2), shop.scorer()
  lines = []
  outcome = updating.update(shop, forget_users=[gone, 'nobody'], forget_items=[item], say=lines.append)
  assert lines[0].startswith("warning: 1 of the 3 ids to be forgotten are not in the store, such as 'nobody'")
  assert outcome.decision == 'published' and outcome.manifest['kind'] == 'forgotten'
  assert outcome.manifest['arrived'] == {'rows': 0, 'forgotten_users': 1, 'forgotten_items': 1}
  assert shop.versions.numbers() == [3], 'older versions knew them'
  left = shop.log().interactions
  assert gone not in left.user_ids and item not in left.item_ids
  kept = ~((log.user == 3) | (log.item == 5))
  assert _raw(left) == [row for row, stays in zip(_raw(log), kept) if stays]
  after = store_files.weights(shop, 3)
  for name, old, new in (('user_table', log.user_ids, left.user_ids), ('item_table', log.item_ids, left.item_ids)):
    places = [list(old).index(one) for one in new]
    np.testing.assert_array_equal(after[name], before[name][places])
  for path in shop.path.rglob('*'):
    assert not path.is_file() or gone.encode() not in path.read_bytes(), path
  assert len(shop.scorer().user_vectors) == len(scores.user_vectors) - 1
  # A file that still has them brings them back only if they are not named again.
  outcome = updating.update(shop, days['tuesday'], forget_users=[gone], forget_items=[item], say=QUIET)
  assert outcome.decision == 'nothing'
  assert updating.update(shop, forget_users=['nobody'], say=QUIET).decision == 'nothing'


def _raw(log: Interactions):
  return list(zip(log.user_ids[log.user], log.item_ids[log.item], log.time.tolist()))


def test_files_that_have_changed(shop, days, tmp_path):
  monday = pd.read_csv(days['monday'])
  cases = {'no column item': monday.drop(columns='item'), 'categories': monday.drop(columns='category'),
           'not a time': monday.assign(timestamp='soon'), 'id is missing': monday.assign(user='')}
  for sentence, frame in cases.items():
    frame.to_csv(tmp_path / 'today.csv', index=False)
    with pytest.raises(UserError, match=sentence):
      updating.update(shop, tmp_path / 'today.csv', say=QUIET)
  with pytest.raises(UserError, match='does not exist'):
    updating.update(shop, tmp_path / 'tomorrow.csv', say=QUIET)
  with pytest.raises(UserError, match='--publish=memory: the store has no memory'):
    updating.update(shop, days['monday'], publish='memory', say=QUIET)
  assert shop.versions.numbers() == [1] and len(shop.log().interactions) == 6000
  (shop.versions.path(1) / versions.EXTRA / 'model.index').write_bytes(b'damage')
  with pytest.raises(UserError, match='damaged'):
    updating.update(shop, days['monday'], say=QUIET)


@pytest.mark.parametrize('previous_block', ['active', 'strict'])
@pytest.mark.parametrize('every', ['', 'day'])
def test_the_block_before_is_the_last_in_which_a_user_was_active(first, previous_block, every):
  store = stores.Store(first)
  store.settings = stores.Settings(previous_block=previous_block, every=every)
  user = np.array([0, 1, 2, 0, 1, 1, 3, 0, 2], np.int32)
  item = np.arange(9, dtype=np.int32)
  time = np.array([0, 10, 86400, 86410, 90000, 86400 * 3, 86400 * 3, 86400 * 5, 86400 * 5])
  log = Interactions(user, item, time, np.array(list('abcd'), object), np.array(list('ijklmnopq'), object))
  kept = growing.KeptLog(0, 0, log, [{'first_row': first, 'rows': rows} for first, rows in ((0, 4), (4, 3), (7, 2))])
  context = store.context(kept, store.block(log, 2, 7, 9))
  expected = {('active', ''): [[0, 3], [4, 5], [2], [6]], ('active', 'day'): [[3], [5], [2], [6]],
              ('strict', ''): [[], [4, 5], [], [6]], ('strict', 'day'): [[], [5], [], [6]]}
  table = context.previous
  for one, items in enumerate(expected[previous_block, every]):
    assert table.indices[table.indptr[one]:table.indptr[one + 1]].tolist() == items
  assert context.num_old_users == 4 and context.block.degree.tolist() == [1, 0, 1, 0]


def test_an_object_with_raw_ids(first, days, tmp_path):
  lines = []
  shop = Recommender.open(first, lines.append)
  assert shop.version == 1
  history = pd.read_csv(days['history'])
  user = history.user[0]
  one, several = shop.recommend(user, 3), shop.recommend([user, 'a stranger'], 3)
  assert several[0] == one and len(several[1]) == 3
  counts = history.item.value_counts()
  assert [counts[item] for item, _ in several[1]] == sorted(counts, reverse=True)[:3]
  assert shop.knows(user) and not shop.knows('a stranger')
  path, = shop.export(tmp_path / 'vectors')
  folder = shop.export(tmp_path / 'tables', 'parquet')
  assert not lines
  with np.load(path) as saved:
    vectors = dict(zip(saved['item_id'], saved['item_vector']))
    users = dict(zip(saved['user_id'], saved['user_vector']))
  assert one[0][1] == pytest.approx(users[user] @ vectors[one[0][0]], abs=1e-5)
  tables = {file.name: pd.read_parquet(file) for file in folder}
  assert tables['items.parquet'].id.tolist() == list(vectors) and tables['users.parquet'].id.tolist() == list(users)
  np.testing.assert_array_equal(np.stack(tables['users.parquet'].vector.to_numpy()), np.stack(list(users.values())))
  near = shop.similar_items(one[0][0], 5)
  unit = {item: vector / np.linalg.norm(vector) for item, vector in vectors.items()}
  cosine = {item: unit[item] @ unit[one[0][0]] for item in unit if item != one[0][0]}
  assert [value for _, value in near] == pytest.approx(sorted(cosine.values(), reverse=True)[:5], abs=1e-5)
  assert all(cosine[item] == pytest.approx(value, abs=1e-5) for item, value in near)
  with pytest.raises(UserError, match='does not know the item'):
    shop.similar_items('nothing')
  with pytest.raises(UserError, match='no short name'):
    Recommender.create(tmp_path / 'new', history, colour='red')
  loaded = tf.saved_model.load(str(first / 'models' / 'recommender' / '1'))
  answer = loaded.signatures['serving_default'](user_id=tf.constant([user]), k=tf.constant(1))
  assert answer['item_id'].numpy()[0, 0].decode() == one[0][0]
