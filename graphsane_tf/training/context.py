"""What a block's methods may know: training rows up to the block, and nothing later."""
import functools
from typing import Optional

import numpy as np

from graphsane_tf.data.blocks import Block
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.graph import csr


class BlockContext:
  """Training data of one block, as neighbour tables.

  Rows after the block's training rows are cut off here, so nothing built from a context can see them.

  Attributes:
    index: number of the block.
    num_users, num_items: nodes known at the end of the block.
    num_old_users, num_old_items: nodes known before it, i.e. to the model it starts from.
    users, items: [num_pairs] int32 pairs trained on; replay adds to the block's own.
    item_category: [num_items] int32 given categories, or None.
    representation_dim: size D of the backbone's final representations; the trainer sets it.
  """

  def __init__(self, interactions: Interactions, block: Block, previous: Optional[Block]):
    """Cuts the log at the end of the block.

    Args:
      interactions: the log.
      block: the block to train.
      previous: the block before it, None for the base block.
    """
    self.index = block.index
    self.num_users, self.num_items = block.num_users, block.num_items
    self.num_old_users = previous.num_users if previous else 0
    self.num_old_items = previous.num_items if previous else 0
    self._user = interactions.user[:block.train.stop]
    self._item = interactions.item[:block.train.stop]
    self._train = block.train
    self._previous = previous.train if previous else slice(0, 0)
    self.users = self._user[block.train]
    self.items = self._item[block.train]
    self.representation_dim = 0
    category = interactions.item_category
    self.item_category = None if category is None else category[:self.num_items]

  def _table(self, rows: slice) -> csr.Csr:
    return csr.from_pairs(self._user[rows], self._item[rows], self.num_users, self.num_items)

  def replay(self, rows: np.ndarray) -> None:
    """Adds old rows (numbers below the block's first row) to the pairs trained on."""
    self.users = np.concatenate([self.users, self._user[rows]])
    self.items = np.concatenate([self.items, self._item[rows]])

  @property
  def num_history_rows(self) -> int:
    """Rows before the block's first."""
    return self._train.start

  @property
  def num_rows(self) -> int:
    """Rows up to and including the block's last."""
    return self._train.stop

  @property
  def block_rows(self) -> int:
    """Rows of the block itself."""
    return self._train.stop - self._train.start

  @property
  def history_users(self) -> np.ndarray:
    """[num_history_rows] int32 user of each row before the block's first."""
    return self._user[:self._train.start]

  @functools.cached_property
  def positives(self) -> csr.Csr:
    """[num_users, num_items] the block's own interactions and replayed ones: never negatives."""
    return csr.from_pairs(self.users, self.items, self.num_users, self.num_items)

  @functools.cached_property
  def block(self) -> csr.Csr:
    """[num_users, num_items] the block's own interactions."""
    return self._table(self._train)

  @functools.cached_property
  def previous(self) -> csr.Csr:
    """[num_users, num_items] interactions of the block before."""
    return self._table(self._previous)

  @functools.cached_property
  def before(self) -> csr.Csr:
    """[num_users, num_items] all interactions before the block."""
    return self._table(slice(0, self._train.start))

  def rows(self, rows: slice):
    """Users and items of some rows of the log, up to the block's last."""
    return self._user[rows], self._item[rows]

  @functools.cached_property
  def history(self) -> csr.Csr:
    """[num_users, num_items] all interactions up to and including the block."""
    return self._table(slice(0, self._train.stop))

  @functools.cached_property
  def popularity(self) -> np.ndarray:
    """[num_items] int64 interactions of each item so far."""
    return np.bincount(self._item, minlength=self.num_items)
