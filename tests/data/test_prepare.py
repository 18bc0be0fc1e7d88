"""`load` from raw files to a prepared folder and back: fresh, stale, damaged, missing."""
import dataclasses
import json
import os
import pathlib

import numpy as np
import pytest

from graphsane_tf import files
from graphsane_tf.data import SOURCES
from graphsane_tf.data import cleaning
from graphsane_tf.blocks import describe
from graphsane_tf.data import prepare
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from tests.data import raw_files

LOW = {'min_user_interactions': 1, 'min_item_interactions': 1}


class Log(list):
  """Collects the lines of progress."""
  __call__ = list.append


def assert_equal(left, right):
  for field in dataclasses.fields(Interactions):
    np.testing.assert_array_equal(getattr(left, field.name), getattr(right, field.name))


@pytest.fixture(name='data_dir')
def fixture_data_dir(tmp_path):
  raw_files.write_ml10m(tmp_path / 'ml10m', *raw_files.random_log(),
                        genres={item: f'g{item % 3}' for item in range(1, 16)})
  return tmp_path


def load(data_dir, **recipe):
  log = Log()
  return prepare.load(DataSpec('ml10m', recipe), data_dir, log=log), log


def built(log):
  """Whether raw files were read."""
  return any('preparing' in line for line in log)


@pytest.mark.parametrize('name', ['gowalla', 'yelp', 'taobao14', 'taobao15', 'netflix', 'ml10m'])
def test_every_named_data_set(tmp_path, name):
  users, items, times = raw_files.random_log()
  getattr(raw_files, f'write_{name}')(tmp_path / name, users, items, times)
  log = Log()
  result = prepare.load(DataSpec(name, LOW), tmp_path, log=log)
  assert len(result) == len(set(zip(users, items))) and result.name == name
  assert (np.diff(result.time) >= 0).all()
  assert_equal(prepare.load(DataSpec(name, LOW), tmp_path, log=log), result)
  assert sum('preparing' in line for line in log) == 1
  folder = prepare.prepared_folder(DataSpec(name, LOW), tmp_path)
  manifest = json.loads((folder / 'manifest.json').read_text())
  assert manifest['counts']['rows'] == len(result)
  assert manifest['fingerprint'] == result.fingerprint == cleaning.fingerprint(result)
  assert manifest['recipe'] == dataclasses.asdict(SOURCES[name].recipe.override(LOW))


def test_prepared_arrays_are_whole_and_writable(data_dir):
  first, _ = load(data_dir)
  again, _ = load(data_dir)
  assert_equal(first, again)
  assert again.user.flags.writeable and again.user.dtype == again.item_category.dtype == np.int32
  assert again.user_ids.dtype == object and isinstance(again.user_ids[0], str)


@pytest.mark.parametrize('damage', [
    lambda folder: (folder / 'users.parquet').unlink(),
    lambda folder: (folder / 'manifest.json').unlink(),
    lambda folder: (folder / 'manifest.json').write_text('{"format": 1'),
    lambda folder: (folder / 'manifest.json').write_text('[]'),
    lambda folder: (folder / 'interactions.parquet').write_bytes(b'PAR1'),
    lambda folder: flip(folder / 'items.parquet'),
])
@pytest.mark.fault('damaged prepared copy')
def test_damaged_folder_is_built_again(data_dir, damage):
  first, _ = load(data_dir)
  folder = prepare.prepared_folder(DataSpec('ml10m'), data_dir)
  damage(folder)
  assert prepare.read_prepared(folder) is None
  again, log = load(data_dir)
  assert any('damaged' in line for line in log)
  assert_equal(first, again)
  assert_equal(prepare.read_prepared(folder), first)


def flip(path):
  content = bytearray(path.read_bytes())
  content[len(content) // 2] ^= 1
  path.write_bytes(content)


def test_changed_source_is_read_again(data_dir):
  first, _ = load(data_dir)
  with open(data_dir / 'ml10m' / 'ratings.dat', 'a', encoding='utf-8') as stream:
    stream.write('999::1::3::1500000000\n')
  again, log = load(data_dir)
  assert any('out of date' in line for line in log)
  assert again.num_users == first.num_users + 1 and again.fingerprint != first.fingerprint
  (data_dir / 'ml10m' / 'movies.dat').unlink()
  assert load(data_dir)[0].item_category is None


def test_same_size_and_other_content_is_noticed(data_dir):
  load(data_dir)
  path = data_dir / 'ml10m' / 'ratings.dat'
  path.write_bytes(path.read_bytes().replace(b'::3.5::', b'::4.5::'))
  os.utime(path, ns=(1, 1))
  assert any('out of date' in line for line in load(data_dir)[1])


def test_touched_source_is_hashed_once(data_dir, monkeypatch):
  load(data_dir)
  path = data_dir / 'ml10m' / 'ratings.dat'
  os.utime(path, ns=(1, 1))
  hashed, sha256 = [], files.sha256
  monkeypatch.setattr(files, 'sha256', lambda name: hashed.append(name) or sha256(name))
  assert not built(load(data_dir)[1])
  assert path in hashed
  hashed.clear()
  load(data_dir)
  assert path not in hashed


def test_other_recipe_has_its_own_folder(data_dir):
  first, _ = load(data_dir)
  other, log = load(data_dir, duplicates='first')
  assert built(log) and other.fingerprint != first.fingerprint
  assert not built(load(data_dir)[1])
  assert len(list((data_dir / 'ml10m').glob('prepared-*'))) == 2


def test_prepared_copy_stands_for_deleted_raw_files(data_dir):
  first, _ = load(data_dir)
  for path in (data_dir / 'ml10m').glob('*.dat'):
    path.unlink()
  again, log = load(data_dir)
  assert_equal(first, again)
  assert not built(log)


@pytest.mark.fault('killed process')
def test_a_kill_while_writing_leaves_the_old_folder(data_dir, monkeypatch):
  first, _ = load(data_dir)
  folder = prepare.prepared_folder(DataSpec('ml10m'), data_dir)

  def killed(*_):
    raise KeyboardInterrupt

  monkeypatch.setattr(files, 'write_json', killed)
  with pytest.raises(KeyboardInterrupt):
    prepare.write_prepared(dataclasses.replace(first, name='new'), folder, {})
  monkeypatch.undo()
  assert_equal(prepare.read_prepared(folder), first)
  assert not list((data_dir / 'ml10m').glob('.*'))


@pytest.mark.parametrize('name', ['gowalla', 'yelp', 'taobao14', 'taobao15', 'netflix', 'ml10m'])
@pytest.mark.fault('missing file')
def test_missing_files_message(tmp_path, name):
  with pytest.raises(UserError) as caught:
    prepare.load(DataSpec(name), tmp_path)
  message = str(caught.value)
  assert '\n' not in message and SOURCES[name].page in message
  assert str(tmp_path / name) in message and '--dataset=drift' in message
  assert ('--download' in message) == (name in ('gowalla', 'ml10m'))


def load_csv(data_dir, path, recipe=None, **columns):
  options = {'interactions': str(path), 'rating_column': None, **columns}
  return prepare.load(DataSpec('csv', recipe or {}, options), data_dir, log=Log())


def test_csv_folders_depend_on_the_path_and_columns(tmp_path, monkeypatch):
  log = raw_files.random_log()
  one = raw_files.write_csv(tmp_path / 'a' / 'log.csv', *log, categories=log[1] % 4)
  two = raw_files.write_csv(tmp_path / 'b' / 'log.csv', *log)
  assert load_csv(tmp_path, one).category_names is not None
  assert load_csv(tmp_path, two).category_names is None
  swapped = load_csv(tmp_path, one, user_column='item', item_column='user')
  assert swapped.num_users == load_csv(tmp_path, one).num_items
  monkeypatch.chdir(tmp_path)
  load_csv(tmp_path, pathlib.Path('a/log.csv'))
  assert len(list((tmp_path / 'csv').glob('prepared-*'))) == 3


@pytest.mark.fault('mistake on the command line')
def test_csv_options_belong_to_csv(tmp_path):
  with pytest.raises(UserError, match='--interactions=FILE'):
    prepare.load(DataSpec('csv', options={'interactions': None}), tmp_path)
  with pytest.raises(UserError, match='drift has no option interactions; it has size, seed'):
    prepare.load(DataSpec('drift', options={'interactions': 'log.csv'}), tmp_path)
  with pytest.raises(UserError, match='gowalla has no option size; it has none'):
    prepare.load(DataSpec('gowalla', options={'size': 'small'}), tmp_path)
  with pytest.raises(UserError, match='option seed of the data set drift should be of type int'):
    prepare.load(DataSpec('drift', options={'seed': '3'}), tmp_path)
  with pytest.raises(UserError, match='--min_rating has no meaning'):
    prepare.load(DataSpec('drift', {'min_rating': 3}), tmp_path)
  with pytest.raises(UserError, match='does not exist'):
    load_csv(tmp_path, tmp_path / 'gone.csv')


@pytest.mark.fault('malformed log')
def test_too_little_data(tmp_path):
  times = np.arange(100)
  cases = {
      'only one user': (times * 0, times),
      'only one item': (times, times * 0),
  }
  for number, (message, (users, items)) in enumerate(cases.items()):
    path = raw_files.write_csv(tmp_path / f'{number}.csv', users, items, times)
    with pytest.raises(UserError, match=message):
      load_csv(tmp_path, path)
  path = raw_files.write_csv(tmp_path / 'log.csv', times, times, times)
  with pytest.raises(UserError, match='min_user_interactions=2 .*left no rows'):
    load_csv(tmp_path, path, {'min_user_interactions': 2})
  path.write_text('user,item,timestamp\n')
  with pytest.raises(UserError, match='has no rows'):
    load_csv(tmp_path, path)


@pytest.mark.fault('unwritable folder')
def test_unwritable_data_dir(tmp_path):
  path = raw_files.write_csv(tmp_path / 'log.csv', *raw_files.random_log())
  (tmp_path / 'file').write_text('')
  with pytest.raises(UserError, match='cannot create the folder'):
    load_csv(tmp_path / 'file', path)


def test_drift_needs_no_files(tmp_path):
  result = prepare.load(DataSpec('drift', options={'size': 'small', 'seed': 3}), tmp_path)
  assert len(result.fingerprint) == 64 and not list(tmp_path.iterdir())
  assert prepare.prepared_folder(DataSpec('drift'), tmp_path) is None


def test_percent_new_against_sets():
  users, _, _ = raw_files.random_log(1000, num_users=400)
  numbers = {}
  ids = np.array([numbers.setdefault(user, len(numbers)) for user in users])
  shares = []
  for start, stop in ((600, 700), (700, 800), (800, 900), (900, 1000)):
    block, before = set(ids[start:stop]), set(ids[:start])
    shares.append(100 * len(block - before) / len(block))
  assert describe.percent_new(ids, [0, 600, 700, 800, 900, 1000]) == pytest.approx(
      np.mean(shares))


def test_describe_warns_where_counts_differ(data_dir):
  result, _ = load(data_dir)
  lines = describe.describe(result, 'ml10m').splitlines()
  assert 'paper' in lines[0] and '10,000,054' in lines[1]
  warnings = [line for line in lines if line.startswith('warning:')]
  assert len(warnings) == 3 and '71,567' in warnings[1]
  assert '69,878' in lines[-1]


def test_describe_is_silent_within_one_percent(data_dir, monkeypatch):
  result, _ = load(data_dir)
  paper = dataclasses.replace(SOURCES['ml10m'].paper, edges=len(result),
                              users=result.num_users, items=result.num_items)
  monkeypatch.setattr(SOURCES['ml10m'], 'paper', paper)
  assert 'warning' not in describe.describe(result, 'ml10m')
  assert 'note' not in describe.describe(result, 'ml10m')


def test_describe_without_paper(tmp_path):
  result = load_csv(tmp_path, raw_files.write_csv(tmp_path / 'l.csv', *raw_files.random_log()))
  text = describe.describe(result, 'csv')
  assert 'paper' not in text and 'warning' not in text and 'categories: 0' in text
