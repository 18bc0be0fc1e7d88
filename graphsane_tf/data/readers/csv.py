"""A log of the user's own: CSV or TSV (plain or gzip), Parquet, or RecBole's `.inter`."""
import csv
import dataclasses
import pathlib
from typing import Callable, Dict, Iterator, List, Optional

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphsane_tf.data.readers import text
from graphsane_tf.errors import UserError

_DELIMITERS = {'.csv': ',', '.tsv': '\t', '.inter': '\t'}
_OPTIONAL = ('category', 'rating')
_BATCH_ROWS = 1 << 20
# Above this a number counts milliseconds: as seconds it would be the year 5138.
_MILLISECONDS_ABOVE = 1e11
_LARGEST_TIME = 1e14
_TIME_HELP = 'epoch seconds, epoch milliseconds or ISO 8601 such as 2024-05-01T12:30:00Z'


@dataclasses.dataclass(frozen=True)
class Columns:
  """The column names of the log; None stands for the usual names."""
  user: Optional[str] = None
  item: Optional[str] = None
  timestamp: Optional[str] = None
  category: Optional[str] = None
  rating: Optional[str] = None

  def locate(self, path, found: List[str]) -> Dict[str, str]:
    """Maps our names to those of the file; category and rating may be absent unless asked for."""
    doubled = sorted({name for name in found if found.count(name) > 1})
    if doubled:
      raise UserError(f'{path}: the column {doubled[0]} occurs more than once; rename one.')
    result = {}
    for ours, asked in dataclasses.asdict(self).items():
      names = [asked] if asked else [ours, f'{ours}_id']
      present = [name for name in names if name in found]
      if present:
        result[ours] = present[0]
      elif asked or ours not in _OPTIONAL:
        raise UserError(f'{path} has no column {names[0]} (found: {", ".join(found)}); name the '
                        f'right one with --{ours}_column.')
    return result


def suffix(path: pathlib.Path) -> str:
  """The file's kind ('.csv', '.tsv', '.inter' or '.parquet'), or a sentence about it."""
  name = path.name.lower().removesuffix('.gz')
  kind = pathlib.PurePath(name).suffix
  if kind in _DELIMITERS or (kind == '.parquet' and path.suffix.lower() == kind):
    return kind
  raise UserError(f'{path} has an unknown ending; use .csv, .tsv or .inter (each may end in .gz), '
                  'or .parquet.')


def _first_bad(bad: np.ndarray) -> Optional[int]:
  rows = np.flatnonzero(bad)
  return int(rows[0]) if len(rows) else None


def _ids(column: pa.ChunkedArray):
  """Returns the ids as text and the mask of those that are missing."""
  column = pc.fill_null(column.cast(pa.string()), '')
  missing = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(column)),
                     value_set=pa.array(['', 'nan']))
  return column, missing.to_numpy()


def _epochs(numbers: np.ndarray):
  """Returns int64 seconds and the mask of numbers that are no time."""
  bad = ~(np.abs(numbers) < _LARGEST_TIME)
  numbers = np.where(bad, 0, numbers)
  milliseconds = np.abs(numbers) > _MILLISECONDS_ABOVE
  return np.floor(np.where(milliseconds, numbers / 1000, numbers)).astype(np.int64), bad


def _times(column: pa.ChunkedArray):
  """Returns int64 seconds and the mask of values that are no time, from any type of column."""
  kind = column.type
  if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
    return pc.fill_null(text.seconds(column), 0).to_numpy(), column.is_null().to_numpy()
  try:
    return _epochs(column.cast(pa.float64()).to_numpy())
  except pa.ArrowInvalid:
    values = column.to_pandas()
    times = pd.to_datetime(values, format='ISO8601', utc=True, errors='coerce')
    numbers, no_number = _epochs(pd.to_numeric(values, errors='coerce').to_numpy(float))
    bad = times.isna().to_numpy() & no_number
    dates = times.dt.tz_localize(None).to_numpy().astype('datetime64[s]').astype(np.int64)
    return np.where(no_number, dates, numbers), bad


def _ratings(column: pa.ChunkedArray):
  """Returns float64 ratings (NaN where empty) and the mask of values that are no number."""
  if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
    filled = pc.if_else(pc.equal(pc.utf8_trim_whitespace(column), ''), 'nan', column)
    try:
      return filled.cast(pa.float64()).to_numpy(), np.zeros(len(column), bool)
    except pa.ArrowInvalid:
      ratings = pd.to_numeric(filled.to_pandas(), errors='coerce').to_numpy(float)
      return ratings, np.isnan(ratings) & ~pc.equal(filled, 'nan').to_numpy()
  return column.cast(pa.float64()).to_numpy(), np.zeros(len(column), bool)


def _convert(table: pa.Table, names: Dict[str, str], fail: Callable) -> pa.Table:
  """Turns the file's columns into ours; `fail(row, column, problem)` makes the error."""
  result = {}
  for ours, name in names.items():
    column = table[name]
    if pa.types.is_dictionary(column.type):
      column = column.cast(column.type.value_type)
    if ours in ('user', 'item'):
      kind = column.type
      if not (pa.types.is_integer(kind) or pa.types.is_string(kind)
              or pa.types.is_large_string(kind)):
        raise fail(0, name, f'ids of type {kind} are neither text nor whole numbers')
      result[ours], bad = _ids(column)
      problem = 'the id is missing'
    elif ours == 'timestamp':
      if pa.types.is_boolean(column.type) or pa.types.is_nested(column.type):
        raise fail(0, name, f'times of type {column.type} are not readable, use {_TIME_HELP}')
      result[ours], bad = _times(column)
      problem = f'not a time, use {_TIME_HELP}'
    elif ours == 'rating':
      result[ours], bad = _ratings(column)
      problem = 'the rating is not a number'
    else:
      names_of = pc.fill_null(column.cast(pa.string()), '')
      result[ours] = pc.if_else(pc.equal(names_of, ''), 'unknown', names_of)
      continue
    row = _first_bad(bad)
    if row is not None:
      value = column[row].as_py()
      raise fail(row, name, f'{problem} ({str(value)[:40]!r})')
  return pa.table(result)


def _read_text(path: pathlib.Path, columns: Columns, kind: str) -> Iterator[pa.Table]:
  delimiter = _DELIMITERS[kind]
  for first_line, data in text.pieces(path):
    if first_line == 1:
      header, _, data = data.partition(b'\n')
      try:
        found = next(csv.reader([header.decode('utf-8').strip('\r')], delimiter=delimiter), [])
      except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f'{path}, line 1: the header is not UTF-8 text; save the file as '
                        'UTF-8.') from error
      found = [name.strip() for name in found]
      if kind == '.inter':
        found = [name.split(':')[0] for name in found]
      names = columns.locate(path, found)
      schema = [text.Column(name, 'text' if name in names.values() else None) for name in found]
      first_line = 2

    def to_line(row):
      return first_line + text.filled_line(data, row)

    table = text.parse(path, data, schema, to_line, delimiter=delimiter,
                       quoted=kind != '.inter')
    yield _convert(table, names,
                   lambda row, name, problem: text.bad_line(path, to_line(row), name, problem))


def _read_parquet(path: pathlib.Path, columns: Columns) -> Iterator[pa.Table]:
  try:
    with pq.ParquetFile(path) as source:
      names = columns.locate(path, source.schema_arrow.names)
      start = 1
      for batch in source.iter_batches(_BATCH_ROWS, columns=list(names.values())):

        def fail(row, name, problem):
          return UserError(f'{path}, row {start + row}, column {name}: {problem}; correct or '
                           'remove that row.')

        yield _convert(pa.Table.from_batches([batch]), names, fail)
        start += len(batch)
  except (pa.ArrowException, OSError) as error:
    raise UserError(f'{path} is not a readable Parquet file; write it again.') from error


def check(path: pathlib.Path) -> str:
  """The kind of a log that is there, has a known ending and is not empty."""
  kind = suffix(path)
  if not path.is_file():
    raise UserError(f'{path} does not exist; give the path of your log with --interactions.')
  if path.stat().st_size == 0:
    raise UserError(f'{path} is empty; it needs a header and one line per interaction.')
  return kind


def read(path: pathlib.Path, columns: Columns) -> Iterator[pa.Table]:
  """Yields tables with user, item, timestamp and, where the file has them, category and rating.

  Ids are kept as written ("007" stays "007"), whole numbers of a Parquet file in decimal.

  Raises:
    UserError: names the file, the line (of a text file, with its header) or row, and the column.
  """
  kind = check(path)
  return _read_parquet(path, columns) if kind == '.parquet' else _read_text(path, columns, kind)
