"""Prepared copies that were damaged, disks that are full, and raw files with bytes changed at random."""
import dataclasses
import errno
import json
import os
import random
import shutil
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphsane_tf import files
from graphsane_tf.data import SOURCES
from graphsane_tf.data import prepare
from graphsane_tf.data.readers import text
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from tests.data import raw_files

LOW = {'min_user_interactions': 1, 'min_item_interactions': 1}


ML10M = DataSpec('ml10m', LOW)


def load(data_dir, spec=ML10M):
  lines = []
  return prepare.load(spec, data_dir, log=lines.append), lines


@pytest.fixture(name='data_dir')
def fixture_data_dir(tmp_path):
  raw_files.write_ml10m(tmp_path / 'ml10m', *raw_files.random_log(),
                        genres={item: f'g{item % 3}' for item in range(1, 16)})
  return tmp_path


def rewrite(**changes):
  """Damage to a manifest: other values; None takes the key away."""

  def damage(folder):
    manifest = json.loads((folder / 'manifest.json').read_text('utf-8'))
    # As a manifest of a version that kept no digest, so that it is read at all.
    manifest.pop('manifest_sha256')
    manifest.update(changes)
    manifest = {key: value for key, value in manifest.items() if value is not None}
    (folder / 'manifest.json').write_text(json.dumps(manifest), 'utf-8')

  return damage


def replaced(name, content):
  return lambda folder: (folder / name).write_bytes(content)


DAMAGES = {
    'manifest not UTF-8': replaced('manifest.json', b'\xff\xfe{}'),
    'manifest empty': replaced('manifest.json', b''),
    'manifest cut off': replaced('manifest.json', b'{"format": 1, "name": "ml'),
    'manifest a list': replaced('manifest.json', b'[1, 2]'),
    'manifest null': replaced('manifest.json', b'null'),
    'manifest nested without end': replaced('manifest.json', b'[' * 100_000),
    'manifest with NaN': rewrite(fingerprint=float('nan')),
    'manifest a folder': lambda folder: ((folder / 'manifest.json').unlink(),
                                         (folder / 'manifest.json').mkdir()),
    'no name': rewrite(name=None),
    'no fingerprint': rewrite(fingerprint=None),
    'no digests': rewrite(sha256=None),
    'no sources': rewrite(sources=None),
    'no format': rewrite(format=None),
    'another format': rewrite(format=99),
    'name a number': rewrite(name=7),
    'digests a list': rewrite(sha256=['interactions.parquet']),
    'digests of nothing': rewrite(sha256={}),
    'digests of other files': rewrite(sha256={'../../ml10m/ratings.dat': 'x'}),
    'sources a string': rewrite(sources='ratings.dat'),
    'sources without keys': rewrite(sources=[{'file': 'ratings.dat'}, {'file': 'movies.dat'}]),
    'sources of lists': rewrite(sources=[{'file': ['ratings.dat'], 'bytes': 1, 'mtime_ns': 1,
                                          'sha256': ''}]),
    'sources of numbers': rewrite(sources=[1, 2]),
    'notes a number': rewrite(notes=5),
    'notes of numbers': rewrite(notes=[5]),
    'folder a file': lambda folder: (shutil.rmtree(folder), folder.write_bytes(b'x')),
    'folder empty': lambda folder: (shutil.rmtree(folder), folder.mkdir()),
    'no table of items': lambda folder: (folder / 'items.parquet').unlink(),
    'table a folder': lambda folder: ((folder / 'items.parquet').unlink(),
                                      (folder / 'items.parquet').mkdir()),
}


@pytest.mark.fault('damaged prepared copy')
@pytest.mark.parametrize('damage', DAMAGES)
def test_damaged_copy_is_built_again(data_dir, damage):
  first, _ = load(data_dir)
  folder = prepare.prepared_folder(ML10M, data_dir)
  DAMAGES[damage](folder)
  again, lines = load(data_dir)
  assert any('built again' in line for line in lines)
  assert again.fingerprint == first.fingerprint and again.notes == first.notes
  assert not any('built again' in line for line in load(data_dir)[1])
  assert not list((data_dir / 'ml10m').glob('.*'))


@pytest.mark.fault('damaged prepared copy')
@pytest.mark.parametrize('name', ['manifest.json', 'interactions.parquet', 'users.parquet',
                                  'items.parquet', 'categories.parquet'])
def test_no_flipped_byte_is_believed(data_dir, name):
  """The copy is the same as before, or none, whichever byte changes."""
  first, _ = load(data_dir)
  path = prepare.prepared_folder(ML10M, data_dir) / name
  content = path.read_bytes()
  for place in np.linspace(0, len(content) - 1, 60).astype(int):
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1:])
    found = prepare.read_prepared(path.parent)
    if found is not None:
      # Only space between the manifest's entries, or the name of its digest, says nothing.
      assert name == 'manifest.json'
      for field in dataclasses.fields(first):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(first, field.name))


@pytest.mark.fault('damaged prepared copy')
def test_damage_without_raw_files_is_one_sentence(data_dir):
  load(data_dir)
  folder = prepare.prepared_folder(ML10M, data_dir)
  (folder / 'users.parquet').write_bytes(b'')
  for path in (data_dir / 'ml10m').glob('*.dat'):
    path.unlink()
  with pytest.raises(UserError, match='no ml10m files in .*ratings.dat'):
    load(data_dir)


def test_a_copy_of_an_earlier_version_is_read(data_dir):
  first, _ = load(data_dir)
  rewrite(notes=None)(prepare.prepared_folder(ML10M, data_dir))
  again, lines = load(data_dir)
  assert again.fingerprint == first.fingerprint and not lines and not again.notes


@pytest.mark.fault('full disk')
@pytest.mark.parametrize('module, function, call', [
    (pq, 'write_table', 1), (pq, 'write_table', 3), (os, 'fsync', 1), (os, 'fsync', 4),
    (tempfile, 'mkdtemp', 1), (tempfile, 'mkstemp', 1)])
@pytest.mark.parametrize('again', [False, True], ids=['new', 'again'])
def test_full_disk(data_dir, monkeypatch, module, function, call, again):
  """One sentence; what was there stays, and nothing half-written is left."""
  ratings = data_dir / 'ml10m' / 'ratings.dat'
  if again:
    load(data_dir)
    ratings.write_bytes(ratings.read_bytes() + b'999::1::3::1500000000\n')
  before = {path: path.read_bytes() for path in data_dir.rglob('*') if path.is_file()}
  original, calls = getattr(module, function), []

  def full(*arguments, **options):
    calls.append(arguments)
    if len(calls) == call:
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return original(*arguments, **options)

  monkeypatch.setattr(module, function, full)
  with pytest.raises(UserError) as caught:
    load(data_dir)
  message = str(caught.value)
  assert os.strerror(errno.ENOSPC) in message and '\n' not in message and len(calls) >= call
  assert {path: path.read_bytes() for path in data_dir.rglob('*') if path.is_file()} == before
  assert not list((data_dir / 'ml10m').glob('.*'))
  monkeypatch.undo()
  assert load(data_dir)[0].num_users == (21 if again else 20)


@pytest.mark.fault('full disk')
def test_touched_file_on_a_full_disk_is_read(data_dir, monkeypatch):
  first, _ = load(data_dir)
  os.utime(data_dir / 'ml10m' / 'ratings.dat', ns=(1, 1))

  def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  monkeypatch.setattr(files, 'write_json', full)
  assert load(data_dir)[0].fingerprint == first.fingerprint


def test_counts_of_dropped_rows_are_shown_each_time(tmp_path):
  users, items, times = raw_files.random_log(400)
  users[:4] = [101, 102, 103, 104]
  ratings = np.arange(400) % 5 + 1
  path = raw_files.write_csv(tmp_path / 'log.csv', users, items, times, ratings=ratings)
  for _ in range(2):
    lines = []
    result = prepare.load(DataSpec('csv', {'min_rating': 3, 'min_user_interactions': 2}, {'interactions': str(path)}),
                          tmp_path, log=lines.append)
    kept = [(user, item) for user, item, rating in zip(users, items, ratings) if rating >= 3]
    repeats = len(kept) - len(set(kept))
    assert '160 rows not rated 3 or better dropped: --min_rating' in lines
    assert f'{repeats} repeats dropped, first kept: --duplicates' in lines
    assert (f'{len(set(kept)) - len(result)} rows of rare users or items dropped: '
            '--min_user_interactions, --min_item_interactions') in lines
    assert len(set(kept)) - len(result) == sum(user > 100 for user, _ in kept)


def test_nothing_dropped_says_nothing(tmp_path):
  path = raw_files.write_csv(tmp_path / 'log.csv', np.arange(100) // 5, np.arange(100) % 5,
                             np.arange(100))
  lines = []
  prepare.load(DataSpec('csv', options={'interactions': str(path)}), tmp_path, log=lines.append)
  assert lines == ['preparing csv from log.csv']


# Bytes that mean something in one of the formats.
_TOKENS = [b'"', b'\r', b'\n', b'\0', b'\xff', b',', b';', b'\t', b':', b'::', b'9' * 26, b'-', b'nan',
           b'1e400', b'\xed\xa0\x80', b'{', b'}', b'[', b'null', b'\\u0000', b'\\ud800', b'', b' ',
           b'0000-00-00', b'9999-12-31', b'20150826', b'\xe2\x80\xa8', b'true']
_FORMATS = ['csv', 'iso', 'csv.gz', 'parquet', 'gowalla', 'yelp', 'taobao14', 'taobao15', 'netflix',
            'ml10m']


def mutate(content, generator):
  """Inserts, replaces, deletes, flips or repeats bytes in up to five places."""
  content = bytearray(content)
  for _ in range(generator.choice([1, 1, 2, 5])):
    place, kind = generator.randrange(len(content) + 1), generator.random()
    if kind < 0.6:
      content[place:place + generator.choice([0, 1, 3, 10])] = generator.choice(_TOKENS)
    elif kind < 0.8:
      content[place:place + 1] = bytes([generator.randrange(256)])
    elif kind < 0.9:
      del content[place:place + generator.choice([1, 5, 50, 500])]
    else:
      start = generator.randrange(len(content) + 1)
      content[place:place] = content[start:start + generator.choice([3, 40])]
  return bytes(content)


def write(kind, folder):
  users, items, times = raw_files.random_log(60)
  if kind == 'iso':
    raw_files.write_csv(folder / 'log.csv', users, items, times.astype('datetime64[s]').astype(str))
  elif kind in ('csv', 'csv.gz'):
    raw_files.write_csv(folder / f'log.{kind}', users, items, times, items % 4, items % 5)
  elif kind == 'parquet':
    pq.write_table(pa.table({'user': [f'u{user}' for user in users], 'item': items, 'timestamp': times,
                             'category': [f'c{item % 3}' for item in items],
                             'rating': items * 1.}), folder / 'log.parquet')
  else:
    options = {'yelp': {'categories': dict.fromkeys(range(1, 16), 'a, b')},
               'ml10m': {'genres': dict.fromkeys(range(1, 16), 'a|b')},
               'gowalla': {'compressed': False}}.get(kind, {})
    getattr(raw_files, f'write_{kind}')(folder / kind, users, items, times, **options)


def attack(kind, folder, number, seed):
  """Reads `number` mutations of a log; anything but a table or a sentence is an error."""
  folder.mkdir()
  write(kind, folder)
  contents = {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()}
  generator = random.Random(seed)
  refused = 0
  for round_number in range(number + 1):
    target = generator.choice(sorted(contents))
    if round_number:
      target.write_bytes(mutate(contents[target], generator))
    try:
      spec = (DataSpec(kind, LOW) if kind in SOURCES and not SOURCES[kind].paths() else
              DataSpec('csv', LOW, {'interactions': str(target)}))
      result = load(folder, spec)[0]
      assert (np.diff(result.time) >= 0).all() and result.user.max() + 1 == result.num_users
      assert all(isinstance(name, str) for name in (*result.user_ids, *result.item_ids))
    except UserError as error:
      # As it was written, each log can be read.
      assert round_number
      assert '\n' not in str(error) and len(str(error)) < 600, str(error)
      refused += 1
    target.write_bytes(contents[target])
  assert refused


@pytest.mark.fault('bytes changed at random')
@pytest.mark.parametrize('kind', _FORMATS)
def test_changed_bytes(tmp_path, kind, monkeypatch):
  attack(kind, tmp_path / 'whole', 60, seed=1)
  monkeypatch.setattr(text, 'PIECE_BYTES', 200)
  attack(kind, tmp_path / 'pieces', 40, seed=2)


@pytest.mark.slow
@pytest.mark.fault('bytes changed at random')
@pytest.mark.parametrize('kind', _FORMATS)
@pytest.mark.parametrize('seed', [3, 4])
def test_many_changed_bytes(tmp_path, kind, seed):
  attack(kind, tmp_path / 'whole', 2000, seed)
