"""Gowalla check-ins as SNAP publishes them: user, time, latitude, longitude, place; no header."""
import pathlib
from typing import Callable, Iterator, List

import pyarrow as pa

from graphsane_tf.data.readers import text

_COLUMNS = (text.Column('user', 'integer'), text.Column('time', 'utc'), text.Column('latitude'),
            text.Column('longitude'), text.Column('location', 'integer'))


def find(folder: pathlib.Path) -> List[pathlib.Path]:
  """The raw files in `folder`; empty when they are not there."""
  names = ('loc-gowalla_totalCheckins.txt', 'loc-gowalla_totalCheckins.txt.gz')
  return [folder / name for name in names if (folder / name).is_file()][:1]


def read(files: List[pathlib.Path], log: Callable[[str], None] = print) -> Iterator[pa.Table]:
  """Yields tables with user, item (the place) and timestamp."""
  del log
  for first_line, data in text.pieces(files[0]):
    table = text.parse(files[0], data, _COLUMNS, delimiter='\t',
                       to_line=lambda row: first_line + text.filled_line(data, row))
    yield pa.table({'user': table['user'], 'item': table['location'],
                    'timestamp': text.seconds(table['time'])})
