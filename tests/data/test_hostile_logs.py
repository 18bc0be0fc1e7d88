"""Strange and broken logs end in the right rows or in one sentence, never in anything else."""
import pathlib
import subprocess
import sys
import zlib

import pytest

from graphsane_tf.data import prepare
from graphsane_tf.data.readers import csv
from graphsane_tf.data.readers import text
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from tests.data import hostile_logs

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(name='small_pieces', params=[None, 100], ids=['whole', 'pieces'])
def fixture_small_pieces(request, monkeypatch):
  """Each log is read at once, and cut into many pieces."""
  if request.param:
    monkeypatch.setattr(text, 'PIECE_BYTES', request.param)
    monkeypatch.setattr(csv, '_BATCH_ROWS', 7)
  return request.param


def read(folder, path):
  return prepare.load(DataSpec('csv', options={'interactions': str(path)}), folder / 'data', log=lambda line: None)


def load(folder, name, content):
  path = folder / name
  if callable(content):
    content(path)
  else:
    path.write_bytes(content)
  return read(folder, path)


def rows_of(result):
  return list(zip(result.user_ids[result.user], result.item_ids[result.item], result.time.tolist()))


@pytest.mark.fault('strange log')
@pytest.mark.usefixtures('small_pieces')
@pytest.mark.parametrize('case', hostile_logs.READ)
def test_strange_log_is_read(tmp_path, case):
  name, content, rows = hostile_logs.READ[case]
  result = load(tmp_path, name, content)
  assert rows_of(result) == rows
  again = read(tmp_path, tmp_path / name)
  assert rows_of(again) == rows and again.fingerprint == result.fingerprint


@pytest.mark.fault('malformed log')
@pytest.mark.usefixtures('small_pieces')
@pytest.mark.parametrize('case', hostile_logs.REFUSED)
def test_broken_log_is_refused_in_a_sentence(tmp_path, case):
  name, content, words = hostile_logs.REFUSED[case]
  with pytest.raises(UserError) as caught:
    load(tmp_path, name, content)
  message = str(caught.value).replace(str(tmp_path / name), 'LOG')
  assert message.isprintable() and message.endswith('.') and len(message) < 400, message
  for word in words:
    assert word in message, message
  assert not [path for path in (tmp_path / 'data').rglob('*') if path.is_file()]


@pytest.mark.fault('malformed log')
def test_line_breaks_in_quotes(tmp_path, monkeypatch):
  """A comment over several lines is read, or refused where a piece ends within it."""
  rows = [(*row, '"fine,\nreally"') for row in hostile_logs.ROWS]
  content = hostile_logs.log(rows, header=hostile_logs.HEADER + ',note')
  assert rows_of(load(tmp_path, 'log.csv', content)) == hostile_logs.ROWS
  refused = 0
  for size in range(100, 140):
    monkeypatch.setattr(text, 'PIECE_BYTES', size)
    try:
      assert rows_of(load(tmp_path, f'{size}.csv', content)) == hostile_logs.ROWS
    except UserError as error:
      refused += 1
      assert 'not closed' in str(error)
  assert refused


@pytest.mark.fault('malformed log')
@pytest.mark.parametrize('options, words', [
    ({'user_column': 'item', 'item_column': 'item'}, ['item cannot be both user and item']),
    ({'user_column': 'item'}, ['item cannot be both user and item', '--user_column']),
    ({'rating_column': 'timestamp'}, ['timestamp cannot be both timestamp and rating']),
    ({'user_column': 'who'}, ['no column who', '--user_column']),
])
def test_one_column_for_two(tmp_path, options, words):
  path = tmp_path / 'log.csv'
  path.write_bytes(hostile_logs.log())
  with pytest.raises(UserError) as caught:
    prepare.load(DataSpec('csv', options={'interactions': str(path), **options}), tmp_path)
  for word in words:
    assert word in str(caught.value)


_READ_WITH_LITTLE_MEMORY = """
import resource, sys
from graphsane_tf.data.readers import csv
pages = int(open('/proc/self/statm').read().split()[0])
limit = pages * resource.getpagesize() + (384 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
  list(csv.read(csv.pathlib.Path(sys.argv[1]), csv.Columns()))
except csv.UserError as error:
  print(error)
"""


@pytest.mark.fault('malformed log')
@pytest.mark.skipif(not pathlib.Path('/proc/self/statm').exists(), reason='needs Linux to bound memory')
@pytest.mark.parametrize('start', [b'', b'user,item,timestamp\na,b,5\n'], ids=['first line', 'line 3'])
def test_endless_line_takes_little_memory(tmp_path, start):
  """A gzip member of a megabyte that unpacks to a line of a gigabyte."""
  path = tmp_path / 'log.csv.gz'
  packer = zlib.compressobj(wbits=31)
  start_packed = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
  # After a full flush the packed bytes refer to nothing before them and may be repeated.
  packed = packer.compress(b'x' * (16 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
  path.write_bytes(start_packed + packed * 64)
  result = subprocess.run([sys.executable, '-c', _READ_WITH_LITTLE_MEMORY, str(path)], cwd=ROOT,
                          env={'PYTHONPATH': str(ROOT), 'PATH': ''}, capture_output=True, text=True,
                          check=False)
  assert result.stdout.startswith(f'{path}, line {start.count(10) + 1}: the line goes on'), result.stderr
  assert result.stdout.count('\n') == 1
