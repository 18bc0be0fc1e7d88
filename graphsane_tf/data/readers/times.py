"""The time column of a user's own log: what its numbers count is decided once, for all rows."""
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from graphsane_tf.data.readers import text
from graphsane_tf.errors import UserError

HELP = ('epoch seconds (or milli-, micro- or nanoseconds), a number such as 20240501, or ISO 8601 '
        'such as 2024-05-01T12:30:00Z')

# What a number may count: the words for a person, the largest such number, and how many make a
# second. Each limit is the year 5138.
_EPOCHS = (('epoch seconds', 1e11, 1), ('epoch milliseconds', 1e14, 10**3),
           ('epoch microseconds', 1e17, 10**6), ('epoch nanoseconds', 2.**63, 10**9))
# Dates written as numbers: an example, the format, what a day is multiplied by, and the position in
# _EPOCHS of what such a number would count otherwise (a few days of 1970, of 1976 and the years 2030
# to 2036 and 2572 to 2635).
_DATES = (('20150826', '%Y%m%d', 1, 0), ('2015082623', '%Y%m%d%H', 10**2, 0),
          ('201508262359', '%Y%m%d%H%M', 10**4, 1), ('20150826235959', '%Y%m%d%H%M%S', 10**6, 1))
_FIRST_DAY, _LAST_DAY = 19000101, 21001231
_NAMES = [name for name, _, _ in _EPOCHS] + [f'dates such as {example}' for example, *_ in _DATES]
_EXACT_FLOAT = 2.**53


class TimeColumn:
  """Turns one column, piece by piece, into seconds since 1970.

  The first numbers choose the unit and all others must fit it, which `check` finds out at the end:
  what has come out before is then of no use. Numbers that could be dates (20150826) are dates if
  most numbers of that range are days of the calendar. ISO 8601 and Arrow's own times need no choice.
  """

  def __init__(self):
    self._unit: Optional[int] = None
    self._counts = np.zeros(len(_NAMES), np.int64)
    self._in_range = np.zeros(len(_DATES), np.int64)
    # Where a kind of number other than the unit stands first, and that number.
    self._firsts: Dict[int, Tuple[str, str]] = {}

  def seconds(self, column: pa.ChunkedArray, place: Callable[[int], str]):
    """Converts a piece.

    Args:
      column: [num_rows] text, numbers, dates or times.
      place: names the file, the line of a row and the column, for messages.

    Returns:
      int64 [num_rows] seconds and bool [num_rows], True where the value is no time.
    """
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
      return pc.fill_null(text.seconds(column), 0).to_numpy(), column.is_null().to_numpy()
    if pa.types.is_integer(column.type):
      return self._all_numbers(pc.fill_null(column, 0), column.is_null().to_numpy(), place)
    try:
      floats = column.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
      return self._mixed(column, place)
    bad = ~(np.abs(floats) < _EPOCHS[-1][1])
    if not bad.any() and len(floats) and np.abs(floats).max() > _EXACT_FLOAT:
      try:
        return self._all_numbers(column, bad, place)
      except pa.ArrowInvalid:
        pass
    return self._convert(floats, bad, place), bad

  def _all_numbers(self, column: pa.ChunkedArray, bad: np.ndarray, place):
    """Whole numbers, exact beyond what a float holds."""
    numbers = column.cast(pa.int64(), safe=not pa.types.is_uint64(column.type)).to_numpy()
    if pa.types.is_uint64(column.type):
      bad = bad | (numbers < 0)
    bad = bad | (numbers == np.iinfo(np.int64).min)
    return self._convert(numbers, bad, place), bad

  def _mixed(self, column: pa.ChunkedArray, place):
    """Text that is not all numbers: ISO 8601, perhaps with numbers among it."""
    column = pc.fill_null(column, '')
    digits = pc.ascii_is_decimal(column).to_numpy()
    # pandas knows more words than ISO 8601 does: 'now' would be another time in each run.
    dated = pc.ascii_is_decimal(pc.utf8_slice_codeunits(column, 0, 4)).to_numpy() & ~digits
    values = column.to_pandas()
    times = pd.to_datetime(values.where(dated), format='ISO8601', utc=True, errors='coerce')
    no_date = times.isna().to_numpy()
    numbers = np.full(len(values), np.nan)
    numbers[no_date] = pd.to_numeric(values[no_date], errors='coerce').to_numpy(float)
    no_number = ~(np.abs(numbers) < _EPOCHS[-1][1])
    dates = times.dt.tz_localize(None).to_numpy().astype('datetime64[s]').astype(np.int64)
    return (np.where(no_number, dates, self._convert(numbers, no_number, place)),
            no_number & no_date)

  def _convert(self, numbers: np.ndarray, skipped: np.ndarray, place) -> np.ndarray:
    """Counts what the numbers look like and returns int64 [num_rows] seconds; 0 where skipped."""
    if skipped.any():
      numbers = np.where(skipped, 0, numbers)
    if skipped.all():
      return np.zeros(len(numbers), np.int64)
    kinds, dates = self._kinds(numbers)
    kept = kinds if not skipped.any() else kinds[~skipped]
    counts = np.bincount(kept, minlength=len(_NAMES))
    self._counts += counts
    if self._unit is None:
      self._unit = int(self._judged().argmax())
    others = [(int(np.argmax((kinds == kind) & ~skipped)), kind) for kind in np.flatnonzero(counts).tolist()
              if kind != self._unit and kind not in self._firsts]
    for row, kind in sorted(others):
      number = numbers[row].item()
      self._firsts[kind] = place(row), f'{number:.15g}' if isinstance(number, float) else str(number)
    if self._unit >= len(_EPOCHS):
      return np.where(kinds == self._unit, dates, 0)
    per_second = _EPOCHS[self._unit][2]
    if numbers.dtype == np.int64:
      return numbers // per_second
    return np.floor(numbers / per_second).astype(np.int64)

  def _kinds(self, numbers: np.ndarray):
    """Returns [num_rows] positions in _NAMES and int64 [num_rows] seconds of those that are dates."""
    size = np.abs(numbers)
    smallest, largest = size.min(), size.max()
    kinds = np.zeros(len(numbers), np.uint8)
    for _, limit, _ in _EPOCHS[:-1]:
      if largest > limit:
        kinds += size > limit
    dates = np.zeros(len(numbers), np.int64)
    for position, (_, form, scale, _) in enumerate(_DATES):
      if largest < _FIRST_DAY * scale or smallest > (_LAST_DAY + 1) * scale:
        continue
      rows = np.flatnonzero((numbers >= _FIRST_DAY * scale) & (numbers < (_LAST_DAY + 1) * scale)
                            & (numbers == np.floor(numbers)))
      # There are few days and many rows: each is converted once.
      codes, values = pd.factorize(numbers[rows].astype(np.int64))
      stamps = pd.to_datetime(pd.Series(values.astype(str)), format=form, errors='coerce')
      valid = stamps.notna().to_numpy()[codes]
      kinds[rows[valid]] = len(_EPOCHS) + position
      dates[rows] = stamps.to_numpy().astype('datetime64[s]').astype(np.int64)[codes]
      self._in_range[position] += len(rows)
    return kinds, dates

  def _meanings(self) -> List[int]:
    """The unit that each kind of number stands for, given all numbers so far."""
    meanings = list(range(len(_NAMES)))
    for position, (_, _, _, epoch) in enumerate(_DATES):
      kind = len(_EPOCHS) + position
      if 2 * self._counts[kind] <= self._in_range[position]:
        meanings[kind] = epoch
    return meanings

  def _judged(self) -> np.ndarray:
    """How many numbers there are of each unit so far."""
    return np.bincount(self._meanings(), weights=self._counts, minlength=len(_NAMES)).astype(int)

  def check(self) -> Optional[str]:
    """Ends the column; returns what a person should know of it, or None.

    Raises:
      UserError: not all numbers fit one unit.
    """
    total = int(self._counts.sum())
    if not total or self._unit is None:
      return None
    wrong = total - int(self._judged()[self._unit])
    if wrong:
      meanings = self._meanings()
      where, number = next(first for kind, first in self._firsts.items()
                           if meanings[kind] != self._unit)
      raise UserError(f'{where}: {wrong:,} of {total:,} times do not look like '
                      f'{_NAMES[self._unit]} as the others do, and the first is {number}; write '
                      'all times in one unit.')
    if self._unit < len(_EPOCHS):
      return None
    return f'note: the times are read as {_NAMES[self._unit]}.'
