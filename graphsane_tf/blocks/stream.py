"""Cuts a log into blocks in time order."""
import dataclasses
from typing import List

import numpy as np

from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class Block:
  """One training block and the later rows it is judged on.

  Attributes:
    index: 0 for the base block.
    train: rows trained on.
    validation: the first half of the next block.
    test: the second half of the next block.
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
  """Base block, then incremental blocks of equal size, cut by row count.

  Block t is trained on its rows, validated on the first half of block t + 1 and tested on the second
  half, so the last cut is never trained on.
  """

  def __init__(self, interactions: Interactions, base_fraction: float = 0.6,
               num_incremental: int = 4):
    """Cuts `interactions` at base_fraction and then into `num_incremental` equal shares.

    Raises:
      UserError: if a block, or half of one, would have no rows.
    """
    self.interactions = interactions
    rows = len(interactions)
    step = (1. - base_fraction) / num_incremental
    # However many blocks are asked for, rows bound the work.
    self.cuts: List[int] = [0] + [
        int(rows * (base_fraction + k * step) + 1e-6)
        for k in range(min(num_incremental, rows))] + [rows]
    if np.diff(self.cuts).min() < 2:
      raise UserError(
          f'{interactions.name} has only {rows} rows after its filters, too few for a base block and '
          f'{num_incremental} incremental blocks: give a longer log, loosen '
          '--min_user_interactions and --min_item_interactions, or change config.blocks.')

  @property
  def num_blocks(self) -> int:
    """How many blocks can be trained, the base block included."""
    return len(self.cuts) - 2

  def rows(self, index: int) -> slice:
    """The rows of cut `index`."""
    return slice(self.cuts[index], self.cuts[index + 1])

  def block(self, index: int) -> Block:
    """Block `index`, from 0 to num_blocks - 1."""
    train, later = self.rows(index), self.rows(index + 1)
    middle = (later.start + later.stop) // 2
    return Block(
        index=index,
        train=train,
        validation=slice(later.start, middle),
        test=slice(middle, later.stop),
        num_users=int(self.interactions.user[:train.stop].max()) + 1,
        num_items=int(self.interactions.item[:train.stop].max()) + 1)
