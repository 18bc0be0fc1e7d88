"""Large text files in pieces of whole lines, parsed by Arrow, with errors that name the line."""
import contextlib
import dataclasses
import gzip
import pathlib
import re
import zlib
from typing import Any, Callable, Iterator, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from graphsane_tf.errors import UserError

PIECE_BYTES = 64 << 20
LONGEST_LINE = 16 << 20
_GZIP = b'\x1f\x8b'
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


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[Any]:
  """Opens a file to read its bytes, unpacked if they are gzip, whatever the file is called."""
  with open(path, 'rb') as stream:
    packed = stream.read(len(_GZIP)) == _GZIP
    if path.suffix == '.gz' and not packed and path.stat().st_size:
      raise UserError(f'{path} is no gzip file or a damaged one; fetch it again or, if it is '
                      'unpacked already, take .gz off its name.')
    stream.seek(0)
    if packed:
      with gzip.GzipFile(fileobj=stream) as unpacked:
        yield unpacked
    else:
      yield stream


def pieces(path) -> Iterator[Tuple[int, bytes]]:
  """Yields (number of the first line, bytes of whole lines) until the file ends.

  Unpacks gzip and drops a byte order mark. The last line gets its newline. Memory stays bounded
  whatever is in the file.
  """
  path = pathlib.Path(path)
  line, rest, start = 1, b'', _BYTE_ORDER_MARK
  try:
    with _opened(path) as stream:
      while piece := stream.read(PIECE_BYTES):
        piece = rest + piece.removeprefix(start)
        start = b''
        cut = piece.rfind(b'\n') + 1
        rest = piece[cut:]
        if len(rest) > LONGEST_LINE:
          line += piece.count(b'\n', 0, cut)
          raise UserError(f'{path}, line {line}: the line goes on for over {LONGEST_LINE:,} bytes; '
                          'write one interaction a line.')
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


def _filled_lines(data: bytes) -> np.ndarray:
  """The 0-based numbers of the lines that are not blank; like Arrow, a lone CR ends a line."""
  characters = np.frombuffer(data.replace(b'\r\n', b'\n').replace(b'\r', b'\n'), np.uint8)
  ends = np.flatnonzero(characters == ord('\n'))
  return np.flatnonzero(np.diff(ends, prepend=-1) > 1)


def filled_line(data: bytes, row: int) -> int:
  """The 0-based line of the `row`-th line that is not blank; Arrow counts only those.

  A row beyond the last one, which is how Arrow names a value that the end cut off, is the last.
  """
  lines = _filled_lines(data)
  return int(lines[min(row, len(lines) - 1)]) if len(lines) else 0


def shown(words: str, length: int) -> str:
  """Words of a file for a message: not too long, and nothing that a terminal would act on."""
  words = words if len(words) <= length else f'{words[:length]} ...'
  return ''.join(letter if letter.isprintable() else '?' for letter in words)


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

  def read(lines: bytes, **options):
    return pa_csv.read_csv(
        pa.BufferReader(lines),
        pa_csv.ReadOptions(column_names=[column.name for column in columns], **options),
        pa_csv.ParseOptions(delimiter=delimiter, quote_char='"' if quoted else False),
        pa_csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[''],
                              strings_can_be_null=False))

  def read_at_once(lines: bytes):
    # Arrow only counts rows when one thread reads everything in one block.
    return read(lines, use_threads=False, block_size=len(lines) + 1)

  try:
    table = read(data, block_size=4 << 20)
  except pa.ArrowInvalid:
    try:
      table = read_at_once(data)
    except pa.ArrowInvalid as error:
      raise _explain(path, str(error), columns, to_line) from error
  if quoted and b'"' in data:
    # A quote that is never closed takes whatever follows it into its value, without an error: so it
    # would take a last row that is too long. Where each line is a row, only the last one can do it.
    tail = data[data.rfind(b'\n', 0, -1) + 1:]
    if len(table) != data.count(b'\n') and len(table) != len(_filled_lines(data)):
      tail = data
    if b'"' in tail:
      try:
        read_at_once(tail + delimiter.encode() * len(columns) + b'\n')
      except pa.ArrowInvalid:
        pass
      else:
        raise bad_line(path, to_line(len(table) - 1), None,
                       'a quote that opens there, or later, is not closed')
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
  wrong = columns[int(column.group(1))]
  value = re.search(r"invalid value '(.*)'", message, re.DOTALL)
  shown_value = repr(value.group(1)[:40]) if value else 'what stands there'
  return bad_line(path, line, wrong.name, f'{shown_value} is not {_KINDS[str(wrong.kind)][1]}')


def seconds(times: pa.ChunkedArray) -> pa.ChunkedArray:
  """Arrow timestamps as int64 seconds since the epoch."""
  zone = getattr(times.type, 'tz', None)
  return times.cast(pa.timestamp('s', zone), safe=False).cast(pa.int64())
