"""Preparation of generated logs of growing length, each in a process of its own.

  python -m graphsane_benchmark.preparation NUM_ROWS FOLDER

prints rows a second and the peak of memory; the log is written to FOLDER first (a GiB for 35 million rows).
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Dict, Iterator, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from graphsane_benchmark.figures import Figure, compare
from graphsane_tf.data import ordering, prepare
from graphsane_tf.data.spec import DataSpec

ROWS = (10_000_000, 30_000_000, 100_000_000)
# Rows where the ways in memory and on disk are compared.
COMPARED = (1_000_000, 10_000_000)
_PIECE_ROWS = 1 << 20
_ROWS_A_USER, _ROWS_AN_ITEM = 100, 200
_CORE = 5
_FIRST, _SECONDS, _LATE = 1_600_000_000, 50_000_000, 1_000_000


def peak() -> float:
  """Most memory of this process so far, in GiB. Its parent's, which `getrusage` inherits, does not count."""
  status = pathlib.Path('/proc/self/status').read_text('utf-8')
  return next(int(line.split()[1]) for line in status.splitlines() if line.startswith('VmHWM')) / 2**20


def _piece(first: int, count: int, rows: int):
  """Users, items and times of rows `first` to first + count - 1: skewed, with repeats, not quite in time order."""
  rng = np.random.default_rng([rows, first])
  draw = lambda size, skew: (rng.random(count) ** skew * size).astype(np.int32)
  times = _FIRST + (np.arange(first, first + count) * (_SECONDS / rows)).astype(np.int64)
  return draw(rows // _ROWS_A_USER, 1.5), draw(rows // _ROWS_AN_ITEM, 2.5), times - rng.integers(_LATE, size=count)


def write(path: pathlib.Path, rows: int) -> None:
  """Writes a CSV log."""
  schema = pa.schema([('user', pa.string()), ('item', pa.string()), ('timestamp', pa.int64())])
  with pa_csv.CSVWriter(path, schema, write_options=pa_csv.WriteOptions(quoting_style='none')) as stream:
    for first in range(0, rows, _PIECE_ROWS):
      user, item, times = _piece(first, min(_PIECE_ROWS, rows - first), rows)
      named = [pa.compute.binary_join_element_wise(letter, pa.array(codes).cast(pa.string()), '')
               for letter, codes in (('u', user), ('i', item))]
      stream.write_table(pa.table([*named, pa.array(times)], schema=schema))


def measure(rows: int, folder: pathlib.Path) -> Dict[str, float]:
  """Seconds and peak memory of preparing a log, and of reading the prepared copy."""
  path = folder / 'log.csv'
  if not path.exists():
    write(path, rows)
  before = peak()
  spec = DataSpec('csv', {f'min_{kind}_interactions': _CORE for kind in ('user', 'item')}, {'interactions': str(path)})
  started = time.perf_counter()
  log = prepare.load(spec, folder, log=lambda line: None)
  seconds = time.perf_counter() - started
  found = {'seconds': seconds, 'processor seconds': time.process_time(), 'rows a second': rows / seconds,
           'rows left': len(log), 'users': log.num_users, 'items': log.num_items, 'peak': peak(),
           'peak before': before}
  del log
  started = time.perf_counter()
  prepare.load(spec, folder, log=lambda line: None)
  return {**found, 'seconds again': time.perf_counter() - started, 'peak again': peak()}


def growth_section(sizes: Sequence[int] = ROWS) -> Iterator[Figure]:
  """Rate and peak memory by number of rows."""
  # What it brings with it would count as memory of the preparation, which needs no TensorFlow.
  from graphsane_benchmark import processes  # pylint: disable=import-outside-toplevel

  before: Optional[Tuple[int, float]] = None
  for rows in sizes:
    common = {'section': 'preparation', 'shape': f'{rows / 1e6:g}M rows'}
    with tempfile.TemporaryDirectory() as folder:
      write(pathlib.Path(folder) / 'log.csv', rows)
      command, settings = processes.child_command('graphsane_benchmark.preparation', str(rows), folder)
      result = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    if result.returncode:
      yield Figure(name='preparation of a log', note=f'failed: {result.stderr.strip().splitlines()[-1]}', **common)
      return
    found = json.loads(result.stdout.splitlines()[-1])
    note = (f'{found["rows a second"]:,.0f} rows/s, {found["processor seconds"] / rows * 1e6:.2g} s of processor '
            'time a million rows')
    if before:
      note += f', {found["seconds"] / before[1] / (rows / before[0]):.2f} times what growth in proportion would give'
    yield Figure(name='preparation of a log', ours=found['seconds'], note=note, **common)
    yield Figure(name='peak memory of preparation', ours=found['peak'], unit='GiB', target=('<=', 4.), absolute=True,
                 **common)
    before = rows, found['seconds']


def order_section(rows: int, repeats: int) -> Iterator[Figure]:
  """Sorting and removing repeats in memory, against the same through DuckDB."""
  user, item, times = _piece(0, rows, rows)

  def ordered(large: int):
    before, ordering.LARGE = ordering.LARGE, large
    try:
      ordering.one_row_a_pair({'user': [user], 'item': [item], 'time': [times]}, 'first')
    finally:
      ordering.LARGE = before

  yield compare(lambda: ordered(rows + 1), lambda: ordered(rows), repeats, section='preparation',
                name='order and repeats in memory, against DuckDB', shape=f'{rows / 1e6:g}M rows')


if __name__ == '__main__':
  print(json.dumps(measure(int(sys.argv[1]), pathlib.Path(sys.argv[2]))))
