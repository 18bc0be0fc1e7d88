"""Each reader against the arrays its raw file was written from, and each bad line's message."""
import gzip
import re

import numpy as np
import pyarrow as pa
import pytest

from graphsane_tf.data.readers import gowalla
from graphsane_tf.data.readers import ml10m
from graphsane_tf.data.readers import netflix
from graphsane_tf.data.readers import taobao14
from graphsane_tf.data.readers import taobao15
from graphsane_tf.data.readers import text
from graphsane_tf.data.readers import yelp
from graphsane_tf.errors import UserError
from tests.data import raw_files


@pytest.fixture(params=[1 << 20, 200], ids=['one piece', 'many pieces'], autouse=True)
def small_pieces(request, monkeypatch):
  """Every test runs with the file whole and cut into many pieces."""
  monkeypatch.setattr(text, 'PIECE_BYTES', request.param)


def read(module, folder, log=print):
  files = module.find(folder)
  assert files
  return pa.concat_tables(module.read(files, log)).to_pandas()


def assert_rows(frame, users, items, times):
  np.testing.assert_array_equal(frame['user'], users)
  np.testing.assert_array_equal(frame['item'], items)
  np.testing.assert_array_equal(frame['timestamp'], times)
  assert frame['timestamp'].dtype == np.int64


def append(path, line):
  # A lone surrogate stands for a byte that is not UTF-8.
  with open(path, 'a', encoding='utf-8', errors='surrogateescape') as stream:
    stream.write(line)


def fails(module, folder, *words):
  with pytest.raises(UserError) as caught:
    read(module, folder)
  message = str(caught.value)
  assert '\n' not in message
  for word in words:
    assert word in message, message


@pytest.mark.parametrize('compressed', [True, False])
def test_gowalla(tmp_path, compressed):
  users, items, times = raw_files.random_log()
  times = times + np.arange(len(times))
  raw_files.write_gowalla(tmp_path, users, items, times, compressed)
  assert_rows(read(gowalla, tmp_path), users, items, times)


@pytest.mark.parametrize('line, words', [
    ('7\t2010-10-19T25:55:27Z\t1\t2\t3\n', ['line 41', 'column time', '2010-10-19T25:55:27Z']),
    ('7\t2010-10-19T23:55:27Z\t1\t3\n', ['line 41', '4 values instead of 5']),
    ('x\t2010-10-19T23:55:27Z\t1\t2\t3\n', ['line 41', 'column user', "'x'"]),
    ('7\t2010-10-19T23:55:27Z\t1\t2\t\n', ['line 41', 'column location', 'missing']),
    ('\n\n7\t2010-10-19T23:55:27Z\t1\t2\tz', ['line 43', 'column location', "'z'"]),
])
@pytest.mark.fault('malformed log')
def test_gowalla_bad_line(tmp_path, line, words):
  raw_files.write_gowalla(tmp_path, *raw_files.random_log(40), compressed=False)
  append(tmp_path / 'loc-gowalla_totalCheckins.txt', line)
  fails(gowalla, tmp_path, 'loc-gowalla_totalCheckins.txt', *words)


@pytest.mark.fault('malformed log')
def test_truncated_gzip(tmp_path):
  raw_files.write_gowalla(tmp_path, *raw_files.random_log(2000))
  path = tmp_path / 'loc-gowalla_totalCheckins.txt.gz'
  path.write_bytes(path.read_bytes()[:-500])
  fails(gowalla, tmp_path, str(path), 'truncated')


@pytest.mark.fault('malformed log')
def test_empty_file(tmp_path):
  (tmp_path / 'loc-gowalla_totalCheckins.txt').write_bytes(b'')
  fails(gowalla, tmp_path, 'is empty')


def test_yelp(tmp_path):
  users, items, times = raw_files.random_log(60)
  ratings = np.arange(60) % 5 + 1
  categories = {item: None if item == 3 else f'Food{item}, Coffee & Tea' for item in range(1, 15)}
  raw_files.write_yelp(tmp_path, users, items, times + 5, ratings, categories)
  frame = read(yelp, tmp_path)
  assert_rows(frame, [f'u{user}' for user in users], [f'b{item}' for item in items], times + 5)
  np.testing.assert_array_equal(frame['rating'], ratings)
  expected = ['unknown' if item in (3, 15) else f'Food{item}' for item in items]
  assert list(frame['category']) == expected


def test_yelp_without_businesses_says_so(tmp_path):
  raw_files.write_yelp(tmp_path, *raw_files.random_log(10))
  notes = []
  assert 'category' not in read(yelp, tmp_path, notes.append)
  assert 'yelp_academic_dataset_business.json' in notes[0]


@pytest.mark.parametrize('line, words', [
    ('{"user_id": "a", \n', ['line 11', 'JSON']),
    ('{"user_id": "a", "business_id": "b", "date": "2016-03-09 16:44:26"}\n',
     ['line 11', 'column stars']),
    ('{"user_id": "a", "business_id": "b", "stars": 3, "date": "yesterday"}\n',
     ['line 11', 'column date']),
    ('\n{"user_id": 4, "business_id": "b"}\n', ['line 12']),
    ('{"user_id": "a", "business_id": "b", "stars": 3, "date": "2016-03-09 16:44:26"}\2{}\n',
     ['line 11', 'JSON']),
    ('{"user_id": "\udcff", "business_id": "b", "stars": 3, "date": "2016-03-09 16:44:26"}\n',
     ['line 11', 'UTF8']),
])
@pytest.mark.fault('malformed log')
def test_yelp_bad_line(tmp_path, line, words):
  raw_files.write_yelp(tmp_path, *raw_files.random_log(10))
  append(tmp_path / 'yelp_academic_dataset_review.json', line)
  fails(yelp, tmp_path, 'yelp_academic_dataset_review.json', *words)


def test_taobao14(tmp_path):
  users, items, times = raw_files.random_log()
  times = times + 3600 * (np.arange(len(times)) % 24)
  raw_files.write_taobao14(tmp_path, users, items, times, behaviours=np.arange(len(users)) % 4 + 1)
  frame = read(taobao14, tmp_path)
  assert_rows(frame, users, items, times)
  np.testing.assert_array_equal(frame['category'], items % 3)


@pytest.mark.fault('malformed log')
def test_taobao14_header(tmp_path):
  path = tmp_path / 'tianchi_mobile_recommend_train_user.csv'
  path.write_text('user,item\n1,2\n')
  fails(taobao14, tmp_path, str(path), 'line 1', 'user, item', 'user_id, item_id')


@pytest.mark.fault('malformed log')
def test_taobao14_bad_time(tmp_path):
  raw_files.write_taobao14(tmp_path, *raw_files.random_log(10))
  append(tmp_path / 'tianchi_mobile_recommend_train_user.csv', '1,2,1,,3,2014-13-06 02\n')
  fails(taobao14, tmp_path, 'line 12', 'column time', '2014-13-06 02')


@pytest.mark.parametrize('extension', ['', '.csv'])
def test_taobao15_keeps_purchases(tmp_path, extension):
  users, items, times = raw_files.random_log()
  actions = np.arange(len(users)) % 3
  raw_files.write_taobao15(tmp_path, users, items, times, actions=actions, extension=extension)
  frame = read(taobao15, tmp_path)
  bought = actions == 1
  assert_rows(frame, users[bought], items[bought], times[bought])
  np.testing.assert_array_equal(frame['category'], items[bought] % 3)


@pytest.mark.fault('malformed log')
def test_taobao15_bad_day(tmp_path):
  raw_files.write_taobao15(tmp_path, *raw_files.random_log(10))
  append(tmp_path / 'ijcai2016_taobao.csv', '1,2,3,4,1,20150832\n')
  fails(taobao15, tmp_path, 'line 12', 'column time', '20150832')


@pytest.mark.parametrize('single_files', [False, True])
def test_netflix(tmp_path, single_files):
  users, items, times = raw_files.random_log()
  ratings = np.arange(len(users)) % 5 + 1
  raw_files.write_netflix(tmp_path, users, items, times, ratings, single_files)
  order = np.argsort(items, kind='stable')
  frame = read(netflix, tmp_path)
  assert_rows(frame, users[order], items[order], times[order])
  np.testing.assert_array_equal(frame['rating'], ratings[order])


def test_netflix_movie_without_ratings_and_crlf(tmp_path):
  for part in (1, 2, 3, 4):
    (tmp_path / f'combined_data_{part}.txt').write_bytes(
        f'{part}:\r\n9{part}:\r\n7,3,2005-09-06\r\n8,4,2005-09-07'.encode())
  frame = read(netflix, tmp_path)
  assert list(frame['item']) == [91, 91, 92, 92, 93, 93, 94, 94]
  assert list(frame['user']) == [7, 8] * 4


@pytest.mark.parametrize('lines, words', [
    ('1:\n5,3,2005-09-06\n2:\n6,3,2005-09-06\n6,3,2005-09-xx\n', ['line 5', 'column date']),
    ('1:\n5,3,2005-09-06\n2:\n6,2005-09-06\n', ['line 4', '2 values instead of 3']),
    ('1:\n5,3,2005-09-06\nx2:\n', ['line 3', 'column movie', "'x2:'"]),
    ('1:\n5,3,2005-09-06\n99999999999999999999:\n', ['line 3', 'column movie']),
    ('5,3,2005-09-06\n', ['line 1', 'movie']),
    ('1:\n5,3,2005-09-06\n6,3,2005-09-06\r7,3,2005-09-06\n', ['line 3', 'carriage return']),
    ('1:\n5,3,2005-09-06\r6,3,2005-09-06\n\n', ['line 2', 'carriage return']),
    ('1:\n5,3,2005-09-06\n\n5,3,2005-09-06\n', ['line 3', 'blank']),
])
@pytest.mark.fault('malformed log')
def test_netflix_bad_line(tmp_path, lines, words):
  (tmp_path / 'mv_0000001.txt').write_bytes(lines.encode())
  fails(netflix, tmp_path, 'mv_0000001.txt', *words)


@pytest.mark.fault('malformed log')
def test_netflix_missing_part(tmp_path):
  raw_files.write_netflix(tmp_path, *raw_files.random_log())
  (tmp_path / 'combined_data_3.txt').unlink()
  with pytest.raises(UserError, match='combined_data_3.txt'):
    netflix.find(tmp_path)


def test_ml10m(tmp_path):
  users, items, times = raw_files.random_log()
  genres = {item: f'Genre{item % 4}|Drama' for item in range(1, 15)}
  raw_files.write_ml10m(tmp_path, users, items, times, genres=genres)
  frame = read(ml10m, tmp_path)
  assert_rows(frame, users, items, times)
  assert set(frame['rating']) == {3.5}
  expected = ['unknown' if item == 15 else f'Genre{item % 4}' for item in items]
  assert list(frame['category']) == expected


def test_ml10m_without_movies(tmp_path):
  raw_files.write_ml10m(tmp_path, *raw_files.random_log(20))
  notes = []
  assert 'category' not in read(ml10m, tmp_path, notes.append)
  assert 'movies.dat' in notes[0]
  append(tmp_path / 'ratings.dat', '1::2::3::soon\n')
  fails(ml10m, tmp_path, 'ratings.dat', 'line 21', 'column timestamp', "'soon'")


def test_find_is_empty_without_files(tmp_path):
  for module in (gowalla, yelp, taobao14, taobao15, netflix, ml10m):
    assert module.find(tmp_path) == []


def test_pieces_hold_whole_lines(tmp_path):
  lines = [f'line {number}' for number in range(500)]
  path = tmp_path / 'log.txt.gz'
  path.write_bytes(gzip.compress(b'\xef\xbb\xbf' + '\n'.join(lines).encode()))
  joined, next_line = b'', 1
  for first_line, data in text.pieces(path):
    assert first_line == next_line and data.endswith(b'\n')
    joined += data
    next_line += data.count(b'\n')
  assert joined.decode().splitlines() == lines


def test_messages_are_one_sentence():
  error = text.bad_line('log.csv', 3, 'user', 'the value is missing')
  assert re.fullmatch(r'log\.csv, line 3, column user: .*\.', str(error))
