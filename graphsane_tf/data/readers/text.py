"""Large text files in pieces of whole lines, parsed by Arrow, with errors that name the line."""
import dataclasses
import gzip
import pathlib
import re
import zlib
from typing import Callable, Iterator, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from graphsane_tf.errors import UserError

PIECE_BYTES = 64 << 20
_BYTE_ORDER_MARK = b'\xef\xbb\xbf'

# What a reader may expect in a column: the Arrow type, and the words for a person.
_KINDS = {
    'integer': (pa.int64(), 'a whole number'),
    'number': (pa.float64(), 'a number'),
    'text': (pa.string(), 'text in UTF-8'),
    'time': (pa.timestamp('s'), 'a date or time such as 2014-12-06 or 2014-12-06 02:30:00'),
    'utc': (pa.timestamp('s', 'UTC'), 'a time such as 2010-10-19T23:55:27Z'),
}


@dataclasses.dataclass(frozen=True)
class Column:
  """A column of a delimited file: its name and its kind; None skips it."""
  name: str
  kind: Optional[str] = None


def pieces(path) -> Iterator[Tuple[int, bytes]]:
  """Yields (number of the first line, bytes of whole lines) until the file ends.

  Reads `.gz` files as they are and drops a byte order mark. The last line gets its newline.
  """
  path = pathlib.Path(path)
  line, rest, start = 1, b'', _BYTE_ORDER_MARK
  try:
    with (gzip.open if path.suffix == '.gz' else open)(path, 'rb') as stream:
      while piece := stream.read(PIECE_BYTES):
        piece = rest + piece.removeprefix(start)
        start = b''
        cut = piece.rfind(b'\n') + 1
        rest = piece[cut:]
        if cut:
          yield line, piece[:cut]
          line += piece.count(b'\n', 0, cut)
  except (EOFError, zlib.error, gzip.BadGzipFile) as error:
    raise UserError(f'{path} is a damaged or truncated gzip file (near line {line}); fetch or '
                    'compress it again.') from error
  except OSError as error:
    raise UserError(f'cannot read {path}: {error.strerror}.') from error
  if rest:
    yield line, rest + b'\n'
  elif line == 1:
    raise UserError(f'{path} is empty; put the whole file there.')


def filled_line(data: bytes, row: int) -> int:
  """The 0-based line of the `row`-th line that is not blank; Arrow counts only those."""
  lines = np.flatnonzero(np.frombuffer(data.replace(b'\r', b''), np.uint8) == ord('\n'))
  return int(np.flatnonzero(np.diff(lines, prepend=-1) > 1)[row])


def bad_line(path, line: int, column: Optional[str], problem: str) -> UserError:
  """The error of one line: file, line, column (where known), and what is wrong."""
  where = f', column {column}' if column else ''
  return UserError(f'{path}, line {line}{where}: {problem}; correct or remove that line.')


def check_header(path, data: bytes, columns: Sequence[Column]) -> bytes:
  """Returns `data` without its first line, which must name `columns`."""
  header, _, data = data.partition(b'\n')
  found = header.decode('utf-8', 'replace').strip().split(',')
  wanted = [column.name for column in columns]
  if found != wanted:
    raise UserError(f'{path}, line 1: the columns are {", ".join(found)} but should be '
                    f'{", ".join(wanted)}; put the owner\'s file there unchanged.')
  return data


def parse(path, data: bytes, columns: Sequence[Column], to_line: Callable[[int], int],
          delimiter: str = ',', quoted: bool = False) -> pa.Table:
  """Parses whole lines of delimited text.

  Args:
    path: the file's name, for messages.
    data: whole lines without a header.
    columns: every column of the file in order.
    to_line: turns a 0-based row of `data` into the line number in the file.
    delimiter: one character.
    quoted: whether values may stand in double quotes.

  Returns:
    A table with the columns that have a kind, without nulls (text may be empty).

  Raises:
    UserError: names the first bad line.
  """
  types = {column.name: _KINDS[column.kind][0] for column in columns if column.kind}
  if not data:
    return pa.schema(types.items()).empty_table()

  def read(**options):
    return pa_csv.read_csv(
        pa.BufferReader(data),
        pa_csv.ReadOptions(column_names=[column.name for column in columns], **options),
        pa_csv.ParseOptions(delimiter=delimiter, quote_char='"' if quoted else False),
        pa_csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[''],
                              strings_can_be_null=False))

  try:
    table = read(block_size=4 << 20)
  except pa.ArrowInvalid:
    # Arrow only counts rows when one thread reads everything in one block.
    try:
      table = read(use_threads=False, block_size=len(data) + 1)
    except pa.ArrowInvalid as error:
      raise _explain(path, str(error), columns, to_line) from error
  for name in types:
    if table[name].null_count:
      row = int(np.flatnonzero(table[name].is_null().to_numpy())[0])
      raise bad_line(path, to_line(row), name, 'the value is missing')
  return table


def _explain(path, message: str, columns: Sequence[Column], to_line) -> UserError:
  """Turns Arrow's message into a sentence."""
  row = re.search(r'Row #(\d+)', message)
  line = to_line(int(row.group(1)) - 1) if row else 1
  width = re.search(r'Expected (\d+) columns, got (\d+)', message)
  if width:
    return bad_line(path, line, None, f'{width.group(2)} values instead of {width.group(1)}')
  column = re.search(r'column #(\d+)', message)
  if not column:
    return bad_line(path, line, None, message.splitlines()[0])
  column = columns[int(column.group(1))]
  value = re.search(r"invalid value '(.*)'", message, re.DOTALL)
  found = repr(value.group(1)[:40]) if value else 'what stands there'
  return bad_line(path, line, column.name, f'{found} is not {_KINDS[column.kind][1]}')


def seconds(times: pa.ChunkedArray) -> pa.ChunkedArray:
  """Arrow timestamps as int64 seconds since the epoch."""
  zone = getattr(times.type, 'tz', None)
  return times.cast(pa.timestamp('s', zone), safe=False).cast(pa.int64())
