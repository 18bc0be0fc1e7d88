"""The user's own log: every format and time, and a sentence for everything that can be wrong."""
import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from graphsane_tf.data.readers import csv
from graphsane_tf.data.readers import text
from graphsane_tf.errors import UserError
from tests.data import raw_files

SECONDS = 1714566600  # 2024-05-01T12:30:00Z


def read(path, **columns):
  return pa.concat_tables(csv.read(path, csv.Columns(**columns))).to_pandas()


def write(path, content):
  content = content.encode('utf-8') if isinstance(content, str) else content
  path.write_bytes(gzip.compress(content) if path.suffix == '.gz' else content)
  return path


def fails(path, *words, **columns):
  with pytest.raises(UserError) as caught:
    read(path, **columns)
  message = str(caught.value)
  assert '\n' not in message and str(path) in message
  for word in words:
    assert word in message, message


@pytest.mark.parametrize('name', ['log.csv', 'log.csv.gz'])
@pytest.mark.parametrize('newline, mark', [('\n', ''), ('\r\n', '\ufeff')])
@pytest.mark.parametrize('piece', [100, 1 << 20])
def test_csv(tmp_path, monkeypatch, name, newline, mark, piece):
  monkeypatch.setattr(text, 'PIECE_BYTES', piece)
  users, items, times = raw_files.random_log(100)
  path = raw_files.write_csv(tmp_path / name, [f'00{user}' for user in users], items, times,
                             categories=[f'c{item % 3}' for item in items],
                             ratings=[''] * 50 + [4.5] * 50, newline=newline, mark=mark)
  frame = read(path)
  assert list(frame['user']) == [f'00{user}' for user in users]
  assert list(frame['item']) == [str(item) for item in items]
  np.testing.assert_array_equal(frame['timestamp'], times)
  assert list(frame['category']) == [f'c{item % 3}' for item in items]
  assert frame['rating'].isna().sum() == 50 and set(frame['rating'][50:]) == {4.5}


def test_quotes_and_other_names(tmp_path):
  path = write(tmp_path / 'log.csv', 'who,"what, exactly",when,x\n"a, b","say ""hi""",5,1\n')
  frame = read(path, user='who', item='what, exactly', timestamp='when')
  assert frame.values.tolist() == [['a, b', 'say "hi"', 5]]


def test_tsv(tmp_path):
  frame = read(write(tmp_path / 'log.tsv', 'user\titem\ttimestamp\na\tb\t5\n'))
  assert frame.values.tolist() == [['a', 'b', 5]]


def test_recbole(tmp_path):
  path = write(tmp_path / 'ml.inter', 'user_id:token\titem_id:token\trating:float\t'
                                      'timestamp:float\n196\t242\t3\t881250949.0\n1\t"x\t1\t5\n')
  frame = read(path)
  assert list(frame['user']) == ['196', '1'] and list(frame['item']) == ['242', '"x']
  assert list(frame['timestamp']) == [881250949, 5] and list(frame['rating']) == [3, 1]


@pytest.mark.parametrize('value', [
    SECONDS, f'{SECONDS}.9', f'{SECONDS}000', f'{SECONDS}999', '2024-05-01T12:30:00Z',
    '2024-05-01 12:30:00', '2024-05-01T12:30', '2024-05-01T14:30:00+02:00',
    '2024-05-01T12:30:00.250Z'])
def test_times(tmp_path, value):
  path = write(tmp_path / 'log.csv', f'user,item,timestamp\na,b,{value}\n')
  assert list(read(path)['timestamp']) == [SECONDS]


def test_dates_and_mixed_times(tmp_path):
  path = write(tmp_path / 'log.csv', 'user,item,timestamp\na,b,1970-01-02\nc,d,7\ne,f,-5\n')
  assert list(read(path)['timestamp']) == [86400, 7, -5]


@pytest.mark.parametrize('column', [
    pa.array([SECONDS, SECONDS + 1]),
    pa.array([SECONDS * 1000, SECONDS * 1000 + 1500]),
    pa.array([SECONDS * 1.0, SECONDS + 1.5]),
    pa.array([str(SECONDS), '2024-05-01T12:30:01Z']),
    pa.array([SECONDS, SECONDS + 1], pa.timestamp('s')).cast(pa.timestamp('ns', 'UTC')),
], ids=lambda column: str(column.type))
def test_parquet(tmp_path, column):
  path = tmp_path / 'log.parquet'
  pa.parquet.write_table(pa.table({
      'user': pa.array([7, 8]), 'item': pa.array(['007', 'x']).dictionary_encode(),
      'timestamp': column, 'rating': pa.array([3, None])}), path)
  frame = read(path)
  assert list(frame['user']) == ['7', '8'] and list(frame['item']) == ['007', 'x']
  assert list(frame['timestamp']) == [SECONDS, SECONDS + 1]
  assert np.isnan(frame['rating'][1])


def test_pandas_parquet_round_trip(tmp_path):
  path = tmp_path / 'log.parquet'
  pd.DataFrame({'user_id': ['a', 'b'], 'item_id': [1, 2],
                'timestamp': pd.to_datetime(['2024-05-01', '2024-05-02'])}).to_parquet(path)
  assert list(read(path)['timestamp']) == [1714521600, 1714608000]


HEADER = 'user,item,timestamp,rating\na,b,5,1\n'


@pytest.mark.parametrize('lines, words', [
    ('a,b,soon,1\n', ['line 3', 'column timestamp', "'soon'"]),
    ('a,b,,1\n', ['line 3', 'column timestamp']),
    ('a,b,nan,1\n', ['line 3', 'column timestamp']),
    ('a,b,99999999999999999,1\n', ['line 3', 'column timestamp']),
    (',b,5,1\n', ['line 3', 'column user', 'missing']),
    ('NaN,b,5,1\n', ['line 3', 'column user', 'missing']),
    ('a, ,5,1\n', ['line 3', 'column item', 'missing']),
    ('a,b,5,good\n', ['line 3', 'column rating', "'good'"]),
    ('a,b,5\n', ['line 3', '3 values instead of 4']),
    ('\r\n\r\na,b,5,1,6\r\n', ['line 5', '5 values instead of 4']),
    (b'\xff,b,5,1\n', ['line 3', 'column user', 'UTF-8']),
])
@pytest.mark.fault('malformed log')
def test_bad_line(tmp_path, lines, words):
  lines = lines if isinstance(lines, bytes) else lines.encode()
  fails(write(tmp_path / 'log.csv', HEADER.encode() + lines), *words)
  fails(write(tmp_path / 'log.csv.gz', HEADER.encode() + lines), *words)


@pytest.mark.fault('malformed log')
def test_bad_line_after_a_lone_carriage_return(tmp_path):
  fails(write(tmp_path / 'log.csv', HEADER + 'a,b,5,1\ra,b,6,1\na,b,soon,1\n'), 'line 5', "'soon'")


@pytest.mark.fault('malformed log')
def test_bad_line_in_a_later_piece(tmp_path, monkeypatch):
  monkeypatch.setattr(text, 'PIECE_BYTES', 64)
  fails(write(tmp_path / 'log.csv', HEADER + 'a,b,5,1\n' * 100 + 'a,b,x,1\n'), 'line 103')


@pytest.mark.fault('malformed log')
def test_bad_parquet_row(tmp_path):
  path = tmp_path / 'log.parquet'
  pa.parquet.write_table(pa.table({'user': ['a', None], 'item': ['b', 'c'],
                                   'timestamp': [1, 2]}), path)
  fails(path, 'row 2', 'column user')
  pa.parquet.write_table(pa.table({'user': [1.5], 'item': ['b'], 'timestamp': [1]}), path)
  fails(path, 'column user', 'double')
  pa.parquet.write_table(pa.table({'user': ['a'], 'item': ['b'], 'timestamp': [True]}), path)
  fails(path, 'column timestamp', 'bool')
  path.write_bytes(path.read_bytes()[:40])
  fails(path, 'Parquet')


@pytest.mark.fault('malformed log')
def test_missing_columns(tmp_path):
  path = write(tmp_path / 'log.csv', 'user,thing,timestamp\na,b,5\n')
  fails(path, 'no column item', 'found: user, thing, timestamp', '--item_column')
  fails(path, 'no column genre', '--category_column', item='thing', category='genre')
  assert 'category' not in read(path, item='thing')
  fails(write(tmp_path / 'twice.csv', 'user,user,item,timestamp\na,a,b,5\n'), 'more than once')


@pytest.mark.fault('malformed log')
def test_unusable_files(tmp_path):
  fails(write(tmp_path / 'log.csv', ''), 'is empty')
  fails(tmp_path / 'gone.csv', 'does not exist')
  fails(write(tmp_path / 'log.xlsx', 'x'), 'unknown ending', '.parquet')
  fails(write(tmp_path / 'log.txt', 'x'), 'unknown ending')
  fails(write(tmp_path / 'wide.csv', 'user,item\n'.encode('utf-16')), 'UTF-8')
  path = write(tmp_path / 'cut.csv.gz', HEADER)
  path.write_bytes(path.read_bytes()[:-6])
  fails(path, 'truncated')
  path.write_bytes(b'no gzip at all')
  fails(path, 'damaged')


def test_header_alone_gives_no_rows(tmp_path):
  assert not len(read(write(tmp_path / 'log.csv', 'user,item,timestamp\n')))
