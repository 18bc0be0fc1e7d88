"""The Netflix Prize ratings: `movie:` lines, each followed by its `user,rating,date` lines."""
import pathlib
import re
from typing import Callable, Iterator, List, Tuple

import numpy as np
import pyarrow as pa

from graphsane_tf.data.readers import text
from graphsane_tf.errors import UserError

_COLUMNS = (text.Column('user', 'integer'), text.Column('rating', 'number'),
            text.Column('date', 'time'))


def find(folder: pathlib.Path) -> List[pathlib.Path]:
  """The raw files in `folder`: all four combined files, or else every mv_*.txt file."""
  combined = [folder / f'combined_data_{part}.txt' for part in (1, 2, 3, 4)]
  missing = [path.name for path in combined if not path.is_file()]
  if not missing:
    return combined
  if len(missing) < len(combined):
    raise UserError(f'{folder} lacks {", ".join(missing)}; put all four combined_data files '
                    'there.')
  return sorted(folder.glob('mv_*.txt')) or sorted((folder / 'training_set').glob('mv_*.txt'))


def _split_headers(path, first_line: int, data: bytes) -> Tuple[np.ndarray, np.ndarray, bytes]:
  """Takes the `movie:` lines out of a piece.

  Returns:
    The movie ids, the 0-based lines they stand on, and the bytes of the other lines.
  """
  characters = np.frombuffer(data, np.uint8)
  newlines = np.flatnonzero(characters == ord('\n'))
  colons = np.flatnonzero(characters == ord(':'))
  lines = np.searchsorted(newlines, colons)
  ends = newlines[lines] + 1
  starts = np.where(lines > 0, newlines[lines - 1] + 1, 0)
  # One step per movie (17,770 in all), not per rating.
  headers = [data[start:end].strip() for start, end in zip(starts, ends)]
  for line, header in zip(lines, headers):
    if not re.fullmatch(rb'\d{1,18}:', header):
      raise text.bad_line(path, first_line + int(line), 'movie',
                          f'{header.decode("utf-8", "replace")[:40]!r} is not a number and a '
                          'colon')
  movies = np.array([int(header[:-1]) for header in headers], np.int64)
  rest = b''.join(data[start:end] for start, end in zip([0, *ends], [*starts, len(data)]))
  return movies, lines, rest


def read(files: List[pathlib.Path], log: Callable[[str], None] = print) -> Iterator[pa.Table]:
  """Yields tables with user, item (the movie), rating and timestamp (full days)."""
  del log
  for path in files:
    movie = None
    for first_line, data in text.pieces(path):
      # Arrow ends a line at a lone carriage return, too, which would shift rows to other movies.
      alone = re.search(rb'\r(?!\n)', data)
      if alone:
        raise text.bad_line(path, first_line + data.count(b'\n', 0, alone.start()), None,
                            'a carriage return stands in the line')
      movies, lines, rest = _split_headers(path, first_line, data)
      if movie is None and (not len(lines) or lines[0] != 0):
        raise text.bad_line(path, first_line, 'movie', 'the file does not start with a movie line')
      num_lines = data.count(b'\n')
      # The rows before the first header belong to the last movie of the piece before.
      counts = np.diff([-1, *lines, num_lines]) - 1
      owners = np.array([movie if movie is not None else 0, *movies], np.int64)
      movie = owners[-1]
      if not rest.strip():
        continue

      def to_line(row):
        return first_line + row + int(np.searchsorted(np.cumsum(counts), row, side='right'))

      table = text.parse(path, rest, _COLUMNS, to_line)
      if len(table) != counts.sum():
        blank = np.flatnonzero(np.diff(np.flatnonzero(
            np.frombuffer(data.replace(b'\r', b''), np.uint8) == ord('\n')), prepend=-1) == 1)
        raise text.bad_line(path, first_line + int(blank[0]), None, 'the line is blank')
      yield pa.table({'user': table['user'], 'item': np.repeat(owners, counts),
                      'rating': table['rating'], 'timestamp': text.seconds(table['date'])})
