"""A log of the user's own: CSV or TSV (plain or gzip), Parquet, or RecBole's `.inter`."""
import contextlib
import csv
import dataclasses
import pathlib
import stat
from typing import Callable, Dict, Iterator, List, Optional

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphsane_tf.data.readers import text
from graphsane_tf.data.readers import times
from graphsane_tf.errors import UserError

_DELIMITERS = {'.csv': ',', '.tsv': '\t', '.inter': '\t'}
_OTHER_DELIMITERS = ',;\t|'
_OPTIONAL = ('category', 'rating')
_BATCH_ROWS = 1 << 20
# Files of other kinds under a name of ours, by their first bytes.
_OTHER_FILES = {b'PAR1': 'a Parquet file: give it the ending .parquet',
                b'PK\x03\x04': 'a zip or Excel file: save the log in it as CSV'}


@dataclasses.dataclass(frozen=True)
class Columns:
  """The column names of the log; None stands for the usual names."""
  user: Optional[str] = None
  item: Optional[str] = None
  timestamp: Optional[str] = None
  category: Optional[str] = None
  rating: Optional[str] = None

  def present(self, found: List[str]) -> Dict[str, str]:
    """Maps our names to those of the file, as far as it has them."""
    result = {}
    for ours, asked in dataclasses.asdict(self).items():
      names = [name for name in ([asked] if asked else [ours, f'{ours}_id']) if name in found]
      if names:
        result[ours] = names[0]
    return result

  def locate(self, path, found: List[str]) -> Dict[str, str]:
    """The same, but only category and rating may be absent, unless they were asked for."""
    result = self.present(found)
    for ours, asked in dataclasses.asdict(self).items():
      if ours not in result and (asked or ours not in _OPTIONAL):
        raise UserError(f'{path} has no column {asked or ours} (found: '
                        f'{text.shown(", ".join(found), 200)}); name the right one with '
                        f'--{ours}_column, or, for an update of a store, rename it in the file.')
    users: Dict[str, str] = {}
    for ours, name in result.items():
      if found.count(name) > 1:
        raise UserError(f'{path}: the column {name} occurs more than once; rename one.')
      if name in users:
        raise UserError(f'{path}: the column {name} cannot be both {users[name]} and {ours}; give '
                        f'each its own with --{users[name]}_column and --{ours}_column.')
      users[name] = ours
    return result


def suffix(path: pathlib.Path) -> str:
  """The file's kind ('.csv', '.tsv', '.inter' or '.parquet'), or a sentence about it."""
  name = path.name.lower().removesuffix('.gz')
  kind = pathlib.PurePath(name).suffix
  if kind in _DELIMITERS or (kind == '.parquet' and path.suffix.lower() == kind):
    return kind
  raise UserError(f'{path} has an unknown ending; use .csv, .tsv or .inter (each may end in .gz), '
                  'or .parquet.')


def _ids(column: pa.ChunkedArray):
  """Returns the ids as text and the mask of those that are missing."""
  column = pc.fill_null(column.cast(pa.string()), '')
  missing = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(column)),
                     value_set=pa.array(['', 'nan']))
  return column, missing.to_numpy()


def _ratings(column: pa.ChunkedArray):
  """Returns float64 ratings (NaN where empty) and the mask of values that are no number."""
  if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
    filled = pc.if_else(pc.equal(pc.utf8_trim_whitespace(column), ''), 'nan', column)
    try:
      return filled.cast(pa.float64()).to_numpy(), np.zeros(len(column), bool)
    except pa.ArrowInvalid:
      ratings = pd.to_numeric(filled.to_pandas(), errors='coerce').to_numpy(float)
      return ratings, np.isnan(ratings) & ~pc.equal(filled, 'nan').to_numpy()
  return column.cast(pa.float64(), safe=False).to_numpy(), np.zeros(len(column), bool)


def _categories(column: pa.ChunkedArray):
  """Returns the categories as text, 'unknown' where there is none; no value is bad."""
  column = pc.fill_null(column.cast(pa.string()), '')
  return pc.if_else(pc.equal(column, ''), 'unknown', column), np.zeros(len(column), bool)


def _accepts(ours: str, kind: pa.DataType) -> bool:
  """Whether a column of ours may have this type; what cannot be cast is found out later."""
  if ours in ('user', 'item'):
    return pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
  return not (pa.types.is_nested(kind) or ours == 'timestamp' and pa.types.is_boolean(kind))


def _convert(table: pa.Table, names: Dict[str, str], place: Callable[[int], str],
             time_column: times.TimeColumn) -> pa.Table:
  """Turns the file's columns into ours; `place` names the file and the line of a row."""
  converters = {'user': (_ids, 'the id is missing'), 'item': (_ids, 'the id is missing'),
                'timestamp': (lambda column: time_column.seconds(column, where),  # type: ignore[has-type]
                              f'not a time, use {times.HELP}'),
                'rating': (_ratings, 'the rating is not a number'),
                'category': (_categories, '')}
  result = {}
  for ours, name in names.items():
    where = lambda row: f'{place(row)}, column {name}'
    column = table[name]
    if pa.types.is_dictionary(column.type):
      column = column.cast(column.type.value_type)
    convert, problem = converters[ours]
    try:
      if not _accepts(ours, column.type):
        raise pa.ArrowTypeError()
      result[ours], bad = convert(column)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
      ways = {'timestamp': times.HELP, 'rating': 'numbers'}.get(ours, 'text or whole numbers')
      raise UserError(f'{where(0)}: values of type {column.type} cannot be read as '
                      f'{ours}; write {ways}.') from error
    if bad.any():
      row = int(np.argmax(bad))
      raise UserError(f'{where(row)}: {problem} '
                      f'({str(column[row].as_py())[:40]!r}); correct or remove it.')
  return pa.table(result)


def _header(path: pathlib.Path, line: bytes, kind: str, columns: Columns):
  """Reads the first line; the delimiter is the one that gives most of the columns wanted.

  Returns:
    The delimiter and the names of all columns.
  """
  if b'\0' in line:
    raise UserError(f'{path}, line 1: the header holds zero bytes, as UTF-16 text does; save the '
                    'file as UTF-8.')
  if b'\r' in line.rstrip(b'\r'):
    raise UserError(f'{path}, line 1: the lines end in a carriage return alone; save the file '
                    'with the line ends of Unix or Windows.')
  try:
    header = line.decode('utf-8').rstrip('\r')
  except UnicodeDecodeError as error:
    raise UserError(f'{path}, line 1: the header is not UTF-8 text; save the file as '
                    'UTF-8.') from error
  headers = {}
  for delimiter in dict.fromkeys(_DELIMITERS[kind] + _OTHER_DELIMITERS):
    # A header that the delimiter leaves in one huge piece is an error for Python.
    with contextlib.suppress(csv.Error):
      found = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
      headers[delimiter] = [name.split(':')[0] for name in found] if kind == '.inter' else found
  if not headers:
    raise UserError(f'{path}, line 1: the header of {len(line):,} bytes cannot be read; the first '
                    'line should name the columns.')
  return max(headers.items(), key=lambda entry: (len(columns.present(entry[1])), len(entry[1])))


def _read_text(path: pathlib.Path, columns: Columns, kind: str,
               time_column: times.TimeColumn) -> Iterator[pa.Table]:
  for first_line, data in text.pieces(path):
    if first_line == 1:
      header, _, data = data.partition(b'\n')
      delimiter, found = _header(path, header, kind, columns)
      names = columns.locate(path, found)
      schema = [text.Column(name, 'text' if name in names.values() else None) for name in found]
      first_line = 2

    def to_line(row):
      return first_line + text.filled_line(data, row)

    table = text.parse(path, data, schema, to_line, delimiter=delimiter,
                       quoted=kind != '.inter')
    yield _convert(table, names, lambda row: f'{path}, line {to_line(row)}', time_column)


def _read_parquet(path: pathlib.Path, columns: Columns,
                  time_column: times.TimeColumn) -> Iterator[pa.Table]:
  try:
    with pq.ParquetFile(path) as source:
      names = columns.locate(path, source.schema_arrow.names)
      start = 1
      for batch in source.iter_batches(_BATCH_ROWS, columns=list(names.values())):
        table = pa.Table.from_batches([batch])
        # Arrow trusts a file's text to be UTF-8.
        table.validate(full=True)
        yield _convert(table, names, lambda row: f'{path}, row {start + row}', time_column)
        start += len(batch)
  except UserError:
    raise
  except (pa.ArrowException, OSError, ValueError) as error:
    raise UserError(f'{path} is not a readable Parquet file; write it again.') from error


def check(path: pathlib.Path) -> str:
  """The kind of a log that is there, is a file with a known ending and is not empty."""
  try:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
      raise UserError(f'{path} is a folder; give the path of a file with --interactions.')
    if not stat.S_ISREG(status.st_mode):
      raise UserError(f'{path} is a pipe or a device; save the log to a file and give its path with '
                      '--interactions.')
    kind = suffix(path)
    if not status.st_size:
      raise UserError(f'{path} is empty; it needs a header and one line per interaction.')
    with open(path, 'rb') as stream:
      start = stream.read(4)
  except FileNotFoundError as error:
    raise UserError(f'{path} does not exist; give the path of your log with '
                    '--interactions.') from error
  except OSError as error:
    raise UserError(f'cannot read {path}: {error.strerror}; give the path of your log with '
                    '--interactions.') from error
  if kind != '.parquet' and start in _OTHER_FILES:
    raise UserError(f'{path} is {_OTHER_FILES[start]}.')
  return kind


def read(path: pathlib.Path, columns: Columns,
         log: Callable[[str], None] = print) -> Iterator[pa.Table]:
  """Yields tables with user, item, timestamp and, where the file has them, category and rating.

  Ids are kept as written ("007" stays "007"), whole numbers of a Parquet file in decimal. Times are
  right only if the last table is followed by no error, see `times.TimeColumn`.

  Args:
    path: the file.
    columns: its column names.
    log: receives what a person should know about the file.

  Raises:
    UserError: names the file, the line (of a text file, with its header) or row, and the column.
  """
  kind = check(path)
  time_column = times.TimeColumn()
  if kind == '.parquet':
    yield from _read_parquet(path, columns, time_column)
  else:
    yield from _read_text(path, columns, kind, time_column)
  note = time_column.check()
  if note:
    log(note)
