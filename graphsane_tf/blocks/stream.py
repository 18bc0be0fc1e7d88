"""Cuts a log into blocks in time order."""
import dataclasses
from typing import List

import numpy as np

from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError

_SECONDS_A_DAY = 86_400


@dataclasses.dataclass(frozen=True)
class Block:
  """One training block and the later rows it is judged on.

  Attributes:
    index: 0 for the base block.
    train: rows trained on.
    validation: rows just after them, by which training is stopped.
    test: rows after those.
    num_users: users seen up to the end of `train`; their numbers are 0 to num_users - 1.
    num_items: likewise for items.
  """
  index: int
  train: slice
  validation: slice
  test: slice
  num_users: int
  num_items: int


class BlockStream:
  """Base block, then incremental blocks of equal size, cut by row count or by calendar days (UTC).

  With `validation='next_half'` block t is trained on its rows, validated on the first half of block t + 1 and tested
  on the second half. With 'share' the last rows of block t are its validation, which block t + 1 is trained on with
  its own, and all of block t + 1 is the test. Either way the last cut is never trained on.
  """

  def __init__(self, interactions: Interactions, base_fraction: float = 0.6,
               num_incremental: int = 4, by: str = 'rows', validation: str = 'next_half',
               validation_share: float = 0.05):
    """Cuts `interactions` at base_fraction and then into `num_incremental` equal shares.

    Args:
      interactions: the log.
      base_fraction: share of the rows, or of the days, in block 0.
      num_incremental: number of blocks after it.
      by: 'rows' or 'days'. By days, a block begins at midnight, and has at least two rows.
      validation: 'next_half' or 'share'.
      validation_share: share of a block's rows, at least one, with the latter.

    Raises:
      UserError: if a block, or half of one, would have no rows.
    """
    self.interactions = interactions
    self._by = by
    self._shared = validation == 'share'
    self._share = validation_share
    rows = len(interactions)
    self._day = interactions.time // _SECONDS_A_DAY
    first = self._day[0] if rows else 0
    length = rows if by == 'rows' else int(self._day[-1] - first) + 1
    step = (1. - base_fraction) / num_incremental
    # However many blocks are asked for, rows (and days) bound the work.
    inner = [int(length * (base_fraction + k * step) + 1e-6) for k in range(min(num_incremental, length))]
    if by == 'days':
      inner = np.searchsorted(self._day, first + np.array(inner)).tolist()
    self.cuts: List[int] = [0, *inner, rows]
    if np.diff(self.cuts).min() < 2:
      way = (f'only {rows} rows after its filters, too few' if by == 'rows' else
             f'{rows} rows on {length} days after its filters, which gives a block fewer than two rows when cut')
      advice = '' if by == 'rows' else '--config.blocks.by=rows, '
      raise UserError(
          f'{interactions.name} has {way} for a base block and '
          f'{num_incremental} incremental blocks: give a longer log, {advice}loosen '
          '--min_user_interactions and --min_item_interactions, or change config.blocks.')

  @property
  def num_blocks(self) -> int:
    """How many blocks can be trained, the base block included."""
    return len(self.cuts) - 2

  def rows(self, index: int) -> slice:
    """The rows of cut `index`."""
    return slice(self.cuts[index], self.cuts[index + 1])

  def _middle(self, rows: slice) -> int:
    """First row of the second half: at midnight where a block has several days and is cut by them."""
    middle = (rows.start + rows.stop) // 2
    if self._by == 'days':
      days = self._day[rows]
      place = rows.start + int(np.searchsorted(days, (days[0] + days[-1] + 1) // 2))
      if rows.start < place < rows.stop:
        return place
    return middle

  def _reserved(self, index: int) -> int:
    """First row of cut `index` that is kept for validation, where that is a share of each block."""
    start, stop = self.cuts[index], self.cuts[index + 1]
    return stop - max(1, min(int(self._share * (stop - start) + 1e-6), stop - start - 1))

  def block(self, index: int) -> Block:
    """Block `index`, from 0 to num_blocks - 1."""
    own, later = self.rows(index), self.rows(index + 1)
    if not self._shared:
      middle = self._middle(later)
      train, validation, test = own, slice(later.start, middle), slice(middle, later.stop)
    else:
      train = slice(self._reserved(index - 1) if index else 0, self._reserved(index))
      validation, test = slice(train.stop, own.stop), later
    return Block(
        index=index,
        train=train,
        validation=validation,
        test=test,
        num_users=int(self.interactions.user[:train.stop].max()) + 1,
        num_items=int(self.interactions.item[:train.stop].max()) + 1)
