"""The rows of a log by time, one for each pair of user and item: in memory, or through DuckDB for a large log."""
import contextlib
import itertools
import pathlib
import tempfile
from typing import Dict, Iterator, List, Optional

import numpy as np
import pandas as pd
import pyarrow as pa

from graphsane_tf import files, parallel
from graphsane_tf.errors import UserError

Chunks = Dict[str, List[np.ndarray]]

# From so many rows on DuckDB is used. Below, NumPy and pandas are faster and take less than a GiB.
LARGE = 1 << 24
# What DuckDB may hold in memory; the rest is on disk.
_MEMORY = '1GiB'
_BATCH_ROWS = 1 << 20
# Times and positions of rows become one key: `position` breaks ties, and says where the row was.
_QUERY = """
SELECT pair, CAST(key // {rows} + ({first}) AS BIGINT) AS time, CAST(key % {rows} AS BIGINT) AS position
FROM (SELECT pair, {choice}((CAST(time AS {kind}) - ({first})) * {rows} + position) AS key FROM log GROUP BY pair)
ORDER BY key
"""


def one_row_a_pair(chunks: Chunks, duplicates: str, scratch: Optional[pathlib.Path] = None) -> Dict[str, np.ndarray]:
  """Sorts the rows by time, ties in the order of the file, and keeps one of each (user, item).

  Args:
    chunks: 'user', 'item' (int32 codes), 'time' (int64) and perhaps more columns, each [num_rows] in pieces of the
      same lengths. They are used up.
    duplicates: which row of a pair stays, the 'first' or the 'last'.
    scratch: where DuckDB spills; None is the system's place for temporary files.

  Returns:
    The columns.
  """
  if sum(map(len, chunks['time'])) >= LARGE:
    return _on_disk(chunks, duplicates, scratch)
  return _in_memory({name: _joined(pieces) for name, pieces in chunks.items()}, duplicates)


def _joined(pieces: List[np.ndarray]) -> np.ndarray:
  whole = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
  pieces.clear()
  return whole


def select(columns: Dict[str, np.ndarray], rows: np.ndarray) -> None:
  """Keeps `rows` (a mask or an order) of every column, one at a time to spare memory."""
  for key in columns:
    columns[key] = columns[key][rows]


def _in_memory(columns: Dict[str, np.ndarray], duplicates: str) -> Dict[str, np.ndarray]:
  if (columns['time'][1:] < columns['time'][:-1]).any():
    select(columns, np.argsort(columns['time'], kind='stable'))
  pairs = columns['user'].astype(np.int64) * (int(columns['item'].max()) + 1) + columns['item']
  # A Series, because an Index would first build a second hash table to test for uniqueness.
  repeated = pd.Series(pairs, copy=False).duplicated(keep=duplicates).to_numpy()
  if repeated.any():
    select(columns, ~repeated)
  return columns


def _on_disk(chunks: Chunks, duplicates: str, scratch: Optional[pathlib.Path]) -> Dict[str, np.ndarray]:
  """The same with a bounded share of memory."""
  import duckdb  # pylint: disable=import-outside-toplevel

  rows = sum(map(len, chunks['time']))
  num_items = 1 + max(int(piece.max()) for piece in chunks['item'])
  first, last = (int(function([function(piece) for piece in chunks['time']])) for function in (np.min, np.max))
  query = _QUERY.format(rows=rows, first=first, choice={'first': 'min', 'last': 'max'}[duplicates],
                        kind='BIGINT' if (last - first + 1) * rows < 2**63 else 'HUGEINT')
  # Pages of these arrays that are not written take no memory.
  columns: Dict[str, np.ndarray] = {
      'user': np.empty(rows, np.int32), 'item': np.empty(rows, np.int32), 'time': np.empty(rows, np.int64)}
  more = {name: _joined(pieces) for name, pieces in chunks.items() if name not in columns}
  columns.update({name: np.empty(rows, values.dtype) for name, values in more.items()})
  source = pa.RecordBatchReader.from_batches(
      pa.schema([(name, pa.int64()) for name in ('pair', 'time', 'position')]), _batches(chunks, num_items))
  count = 0
  with contextlib.ExitStack() as stack:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()) if scratch is None else
                          stack.enter_context(files.scratch_directory(scratch / 'spill')))
    try:
      database = stack.enter_context(duckdb.connect(config={
          'memory_limit': _MEMORY, 'temp_directory': str(folder), 'threads': parallel.cores(),
          'preserve_insertion_order': False}))
      database.register('log', source)
      for batch in database.sql(query).to_arrow_reader(_BATCH_ROWS):
        pair, time, position = (column.to_numpy() for column in batch.columns)
        part = slice(count, count + len(pair))
        columns['user'][part], columns['item'][part], columns['time'][part] = pair // num_items, pair % num_items, time
        for name, values in more.items():
          columns[name][part] = values[position]
        count += len(pair)
    except duckdb.Error as error:
      raise UserError(f'DuckDB cannot sort {rows:,} rows in {folder.parent}: {files.reason(error)}; free some '
                      'space there, or choose another --data_dir.') from error
  return {name: values[:count] for name, values in columns.items()}


def _batches(chunks: Chunks, num_items: int) -> Iterator[pa.RecordBatch]:
  """The rows for DuckDB; pieces are given up as soon as they are there."""
  start = 0
  for name in ('user', 'item', 'time'):
    chunks[name].reverse()
  while chunks['time']:
    user, item, time = (chunks[name].pop() for name in ('user', 'item', 'time'))
    for begin, end in itertools.pairwise([*range(0, len(time), _BATCH_ROWS), len(time)]):
      yield pa.record_batch({
          'pair': user[begin:end].astype(np.int64) * num_items + item[begin:end], 'time': time[begin:end],
          'position': np.arange(start + begin, start + end)})
    start += len(time)
