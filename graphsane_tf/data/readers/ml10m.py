"""MovieLens 10M: ratings.dat (user::movie::rating::seconds) and the genres of movies.dat."""
import pathlib
from typing import Callable, Iterator, List

import pyarrow as pa
import pyarrow.compute as pc

from graphsane_tf.data.readers import text

_RATINGS = (text.Column('user', 'integer'), text.Column('item', 'integer'),
            text.Column('rating', 'number'), text.Column('timestamp', 'integer'))
_MOVIES = (text.Column('item', 'integer'), text.Column('title'), text.Column('genres', 'text'))


def find(folder: pathlib.Path) -> List[pathlib.Path]:
  """The raw files in `folder`, movies.dat last where it is; empty without ratings.dat."""
  if not (folder / 'ratings.dat').is_file():
    return []
  return [path for path in (folder / 'ratings.dat', folder / 'movies.dat') if path.is_file()]


def _tables(path: pathlib.Path, columns) -> Iterator[pa.Table]:
  for first_line, data in text.pieces(path):
    # Arrow wants a delimiter of one character; no value holds a tab.
    yield text.parse(path, data.replace(b'::', b'\t'), columns, delimiter='\t',
                     to_line=lambda row: first_line + text.filled_line(data, row))


def read(files: List[pathlib.Path], log: Callable[[str], None] = print) -> Iterator[pa.Table]:
  """Yields tables with user, item, rating, timestamp and, given movies.dat, the first genre."""
  genres = None
  if len(files) > 1:
    movies = pa.concat_tables(_tables(files[1], _MOVIES))
    genres = pc.list_element(pc.split_pattern(movies['genres'], '|'), 0)
  else:
    log(f'note: {files[0].parent} has no movies.dat, so the items have no categories.')
  for table in _tables(files[0], _RATINGS):
    if genres is not None:
      rows = pc.index_in(table['item'], value_set=movies['item'].combine_chunks())
      table = table.append_column('category', pc.fill_null(genres.take(rows), 'unknown'))
    yield table
