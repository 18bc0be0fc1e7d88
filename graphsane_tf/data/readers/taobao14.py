"""Tianchi's mobile recommendation log of 2014: all four behaviours count as interactions."""
import pathlib
from typing import Callable, Iterator, List

import pyarrow as pa

from graphsane_tf.data.readers import text

_COLUMNS = (text.Column('user_id', 'integer'), text.Column('item_id', 'integer'),
            text.Column('behavior_type'), text.Column('user_geohash'),
            text.Column('item_category', 'integer'), text.Column('time', 'time'))


def find(folder: pathlib.Path) -> List[pathlib.Path]:
  """The raw files in `folder`; empty when they are not there."""
  path = folder / 'tianchi_mobile_recommend_train_user.csv'
  return [path] if path.is_file() else []


def read(files: List[pathlib.Path], log: Callable[[str], None] = print) -> Iterator[pa.Table]:
  """Yields tables with user, item, timestamp (full hours) and category."""
  del log
  for first_line, data in text.pieces(files[0]):
    if first_line == 1:
      data, first_line = text.check_header(files[0], data, _COLUMNS), 2
    table = text.parse(files[0], data, _COLUMNS,
                       to_line=lambda row: first_line + text.filled_line(data, row))
    yield pa.table({'user': table['user_id'], 'item': table['item_id'],
                    'timestamp': text.seconds(table['time']),
                    'category': table['item_category']})
