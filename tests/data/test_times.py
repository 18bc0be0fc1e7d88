"""What the numbers of a time column count is decided for the column, however the file is cut."""
import numpy as np
import pyarrow as pa
import pytest

from graphsane_tf.data import prepare
from graphsane_tf.data.readers import csv
from graphsane_tf.data.readers import text
from graphsane_tf.data.readers import times
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from tests.data import raw_files

SECONDS = 1714566600  # 2024-05-01T12:30:00Z
DAY = 1440547200  # 2015-08-26T00:00:00Z


def read(*pieces):
  """Seconds of a column that comes in pieces, and its note."""
  column, seconds, row = times.TimeColumn(), [], 0
  for piece in pieces:
    piece = piece if isinstance(piece, (pa.Array, pa.ChunkedArray)) else pa.array(piece)
    found, bad = column.seconds(pa.chunked_array([piece]), lambda at, start=row: f'row {start + at}')
    assert not bad.any() and found.dtype == np.int64
    seconds += found.tolist()
    row += len(piece)
  return seconds, column.check()


@pytest.mark.parametrize('kind', [pa.int64(), pa.float64(), pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize('unit', [1, 10**3, 10**6, 10**9])
def test_one_unit(unit, kind):
  expected = [SECONDS + 60 * row for row in range(5)] + [-SECONDS]
  numbers = pa.array([time * unit for time in expected])
  if kind == pa.float64():
    numbers = pa.array(np.array(numbers).astype(float))
  assert read(numbers.slice(0, 3).cast(kind), numbers.slice(3).cast(kind)) == (expected, None)


@pytest.mark.fault('times of several units')
def test_small_milliseconds_are_not_seconds():
  """Milliseconds of 1972, which taken row by row would be seconds, among later ones: refused."""
  with pytest.raises(UserError, match='^row 5: 1 of 6 times do not look like epoch milliseconds'):
    read([str(SECONDS * 1000 + row) for row in range(5)], ['94694400000'])


@pytest.mark.fault('times of several units')
@pytest.mark.parametrize('pieces, words', [
    (([SECONDS] * 9 + [SECONDS * 1000],), 'row 9: 1 of 10 times .*epoch seconds.* 1714566600000;'),
    (([SECONDS] * 3 + [SECONDS * 10**6, SECONDS * 1000],), 'row 3: 2 of 5 times .* 1714566600000000;'),
    (([SECONDS] * 9, [SECONDS * 1000] * 90), 'row 9: 90 of 99 times .*epoch seconds'),
    (([SECONDS * 1000] * 9, [SECONDS * 10**6], [0]), 'row 9: 2 of 11 times .*epoch milliseconds'),
    (([SECONDS * 10**9] * 3, [SECONDS]), 'row 3: 1 of 4 times .*epoch nanoseconds.* 1714566600;'),
    (([20150826] * 9, [20150832]), 'row 9: 1 of 10 times .*dates such as 20150826.* 20150832;'),
    (([20150826, 20150827], [SECONDS]), 'row 2: 1 of 3 times .*dates such as 20150826'),
    (([SECONDS] * 50, [20150826]), 'row 50: 1 of 51 times .*epoch seconds.* 20150826;'),
    (([20150826] * 3, [2015082623] * 2), 'row 3: 2 of 5 times .*dates such as 20150826 '),
    (([20150826], list(range(20150830, 20150899))), 'row 3: .* of 70 times .*dates such as 20150826'),
    ((['2015-08-26', '5'], ['7', str(SECONDS * 1000)]), 'row 3: 1 of 3 times .*epoch seconds'),
    (([0.5, 7.25], [1e12 + 0.5]), 'row 2: 1 of 3 times .* 1000000000000.5;'),
])
def test_units_that_differ_are_refused_with_count_and_place(pieces, words):
  with pytest.raises(UserError, match=words):
    read(*pieces)


@pytest.mark.parametrize('number, seconds, note', [
    (20150826, DAY, 'dates such as 20150826'),
    (2015082623, DAY + 23 * 3600, 'dates such as 2015082623'),
    (201508262359, DAY + 86340, 'dates such as 201508262359'),
    (20150826235959, DAY + 86399, 'dates such as 20150826235959'),
])
@pytest.mark.parametrize('kind', [pa.int64(), pa.string(), pa.float64()], ids=str)
def test_dates_written_as_numbers_are_dates_and_said_to_be(number, seconds, note, kind):
  found, said = read(pa.array([number] * 3).cast(kind), pa.array([number]).cast(kind))
  assert found == [seconds] * 4 and said == f'note: the times are read as {note}.'


def test_every_day_of_the_calendar():
  days = np.arange('1900-01-01', '2101-01-01', dtype='datetime64[D]')
  numbers = [int(str(day).replace('-', '')) for day in days]
  assert read(numbers)[0] == days.astype('datetime64[s]').astype(int).tolist()


def test_a_clock_from_zero_is_not_taken_for_dates():
  """A few seconds look like days; most of their range do not, so none of them is one."""
  clock = list(range(0, 40_000_000, 1000))
  assert read(clock) == (clock, None)
  clock = list(range(19_990_000, 20_160_000, 7))
  assert read(clock[:9000], clock[9000:]) == (clock, None)


def test_times_of_arrow_carry_their_unit():
  stamps = pa.array([SECONDS * 10**9 + 999_999_999, 5 * 10**9], pa.timestamp('ns'))
  assert read(stamps, stamps.cast(pa.timestamp('us'), safe=False)) == ([SECONDS, 5] * 2, None)


def test_a_number_is_a_number_also_among_dates():
  """2015 alone counts seconds; that it is a year in ISO 8601 must not depend on the other rows."""
  assert read(['2015', '7']) == ([2015, 7], None)
  assert read(['2015', '1970-01-02', '7']) == ([2015, 86400, 7], None)


@pytest.mark.parametrize('value', ['now', 'today', 'NaT', '', 'inf', '1e30', '0x10', None])
@pytest.mark.parametrize('others', ['5', '2015-08-26'])
@pytest.mark.fault('malformed log')
def test_words_that_are_no_times(value, others):
  column = pa.chunked_array([pa.array([others, value])])
  assert times.TimeColumn().seconds(column, str)[1].tolist() == [False, True]


@pytest.mark.parametrize('piece', [60, 1 << 20])
def test_places_in_a_file(tmp_path, monkeypatch, piece):
  """The place is right though the piece it was in has long been left."""
  monkeypatch.setattr(text, 'PIECE_BYTES', piece)
  path = tmp_path / 'log.csv'
  lines = [f'a,b,{SECONDS}'] * 40
  lines[20] += '000'
  lines[30] += '000000'
  path.write_text('user,item,when\n\n' + '\n'.join(lines))
  with pytest.raises(UserError, match='log.csv, line 23, column when: 2 of 40 times'):
    list(csv.read(path, csv.Columns(timestamp='when')))


def load(tmp_path, stamps):
  users, items, _ = raw_files.random_log(len(stamps), num_users=50, num_items=50)
  path = raw_files.write_csv(tmp_path / 'log.csv', users, items, stamps)
  lines = []
  prepare.load(DataSpec('csv', options={'interactions': str(path)}), tmp_path, log=lines.append)
  return lines


@pytest.mark.fault('times that are equal')
def test_one_time_for_many_rows_is_warned_about(tmp_path):
  """More rows of one time than a block has: there the file's order decides, which is said."""
  lines = load(tmp_path, [0] * 80 + list(range(1, 321)))
  warnings = [line for line in lines if line.startswith('warning')]
  assert len(warnings) == 1 and ' rows have the same time (1970-01-01T00:00:00)' in warnings[0]
  (tmp_path / 'log.csv').unlink()
  assert not [line for line in load(tmp_path, np.repeat(range(40), 10)) if line.startswith('warning')]
  (tmp_path / 'log.csv').unlink()
  # One row is not many, however short the log is.
  assert not [line for line in load(tmp_path, range(5)) if line.startswith('warning')]


@pytest.mark.fault('times that are equal')
def test_no_order_in_time_is_refused(tmp_path):
  with pytest.raises(UserError, match='all .* rows of csv have the same time .2024-05-01T12:30:00.'):
    load(tmp_path, [SECONDS] * 400)
  assert not list(tmp_path.glob('csv/*'))


def test_dates_are_noted_again_from_the_prepared_copy(tmp_path):
  stamps = [20150801 + row % 31 for row in range(400)]
  note = 'note: the times are read as dates such as 20150826.'
  assert note in load(tmp_path, stamps)
  path = tmp_path / 'log.csv'
  lines = []
  prepare.load(DataSpec('csv', options={'interactions': str(path)}), tmp_path, log=lines.append)
  assert note in lines and not any('preparing' in line for line in lines)
