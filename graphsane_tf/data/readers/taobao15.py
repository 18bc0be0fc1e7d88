"""The IJCAI-16 Taobao log of 2015: only purchases (act_ID 1) count as interactions."""
import pathlib
from typing import Callable, Iterator, List

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from graphsane_tf.data.readers import text

_COLUMNS = (text.Column('use_ID', 'integer'), text.Column('sel_ID'),
            text.Column('ite_ID', 'integer'), text.Column('cat_ID', 'integer'),
            text.Column('act_ID', 'integer'), text.Column('time', 'integer'))
_BUY = 1


def find(folder: pathlib.Path) -> List[pathlib.Path]:
  """The raw files in `folder`; empty when they are not there."""
  names = ('ijcai2016_taobao.csv', 'ijcai2016_taobao')
  return [folder / name for name in names if (folder / name).is_file()][:1]


def read(files: List[pathlib.Path], log: Callable[[str], None] = print) -> Iterator[pa.Table]:
  """Yields tables with user, item, timestamp (full days) and category."""
  del log
  for first_line, data in text.pieces(files[0]):
    if first_line == 1:
      data, first_line = text.check_header(files[0], data, _COLUMNS), 2
    table = text.parse(files[0], data, _COLUMNS,
                       to_line=lambda row: first_line + text.filled_line(data, row))
    # There are few days and many rows: each day is converted once.
    codes, days = pd.factorize(table['time'].to_numpy())
    dates = pd.to_datetime(pd.Series(days.astype(str)), format='%Y%m%d', errors='coerce')
    bad = np.flatnonzero(dates.isna().to_numpy()[codes])
    if len(bad):
      raise text.bad_line(files[0], first_line + text.filled_line(data, bad[0]), 'time',
                          f'{days[codes[bad[0]]]} is not a day such as 20150826')
    times = dates.to_numpy().astype('datetime64[s]').astype(np.int64)[codes]
    yield pa.table({'user': table['use_ID'], 'item': table['ite_ID'], 'timestamp': times,
                    'category': table['cat_ID']}).filter(pc.equal(table['act_ID'], _BUY))
