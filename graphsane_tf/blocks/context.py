"""What a block's methods may know: training rows up to the block, and nothing later."""
import dataclasses
import functools
from typing import Optional, Tuple, Union

import numpy as np

from graphsane_tf.blocks.stream import Block
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.graph import csr


@dataclasses.dataclass(frozen=True, eq=False)
class BlockContext:
  """Training data of one block, as neighbour tables; made by `cut`.

  Rows after the block's training rows are not in it, so nothing built from a context can see them.

  Attributes:
    index: number of the block.
    num_users, num_items: nodes known at the end of the block.
    num_old_users, num_old_items: nodes known before it, i.e. to the model it starts from.
    log_users, log_items: [num_rows] int32 all rows up to the block's last, in time order.
    own: the block's rows among them.
    before_own: those of the block before, or the numbers of the rows that stand for it.
    replayed: [n] int64 earlier rows that the block trains on again.
    item_category: [num_items] int32 given categories, or None.
    representation_dim: size D of the backbone's final representations; 0 if nobody asks.
  """
  index: int
  num_users: int
  num_items: int
  num_old_users: int
  num_old_items: int
  log_users: np.ndarray
  log_items: np.ndarray
  own: slice
  before_own: Union[slice, np.ndarray]
  replayed: np.ndarray
  item_category: Optional[np.ndarray]
  representation_dim: int

  def _table(self, rows: Union[slice, np.ndarray]) -> csr.Csr:
    return csr.from_pairs(self.log_users[rows], self.log_items[rows], self.num_users, self.num_items)

  @functools.cached_property
  def users(self) -> np.ndarray:
    """[num_pairs] int32 users of the pairs trained on: the block's own, then replayed ones."""
    return np.concatenate([self.log_users[self.own], self.log_users[self.replayed]])

  @functools.cached_property
  def items(self) -> np.ndarray:
    """[num_pairs] int32 their items."""
    return np.concatenate([self.log_items[self.own], self.log_items[self.replayed]])

  @property
  def num_history_rows(self) -> int:
    """Rows before the block's first."""
    return self.own.start

  @property
  def num_rows(self) -> int:
    """Rows up to and including the block's last."""
    return self.own.stop

  @property
  def block_rows(self) -> int:
    """Rows of the block itself."""
    return self.own.stop - self.own.start

  @functools.cached_property
  def positives(self) -> csr.Csr:
    """[num_users, num_items] the block's own interactions and replayed ones: never negatives."""
    return csr.from_pairs(self.users, self.items, self.num_users, self.num_items)

  @functools.cached_property
  def block(self) -> csr.Csr:
    """[num_users, num_items] the block's own interactions."""
    return self._table(self.own)

  @functools.cached_property
  def previous(self) -> csr.Csr:
    """[num_users, num_items] interactions of the block before."""
    return self._table(self.before_own)

  @functools.cached_property
  def before(self) -> csr.Csr:
    """[num_users, num_items] all interactions before the block."""
    return self._table(slice(0, self.own.start))

  @functools.cached_property
  def history(self) -> csr.Csr:
    """[num_users, num_items] all interactions up to and including the block."""
    return self._table(slice(0, self.own.stop))

  @functools.cached_property
  def popularity(self) -> np.ndarray:
    """[num_items] int64 interactions of each item so far."""
    return np.bincount(self.log_items, minlength=self.num_items)

  def rows(self, rows: slice) -> Tuple[np.ndarray, np.ndarray]:
    """Users and items of some rows of the log, up to the block's last."""
    return self.log_users[rows], self.log_items[rows]


def cut(interactions: Interactions, block: Block, previous: Optional[Block],
        replayed: Optional[np.ndarray] = None, representation_dim: int = 0) -> BlockContext:
  """Cuts the log at the end of a block.

  Args:
    interactions: the log.
    block: the block to train.
    previous: the block before it, None for the base block.
    replayed: [n] numbers of earlier rows that are trained on again; None is none.
    representation_dim: size D of the backbone's final representations.
  """
  category = interactions.item_category
  return BlockContext(
      index=block.index, num_users=block.num_users, num_items=block.num_items,
      num_old_users=previous.num_users if previous else 0,
      num_old_items=previous.num_items if previous else 0,
      log_users=interactions.user[:block.train.stop], log_items=interactions.item[:block.train.stop],
      own=block.train, before_own=previous.train if previous else slice(0, 0),
      replayed=np.zeros(0, np.int64) if replayed is None else np.asarray(replayed, np.int64),
      item_category=None if category is None else category[:block.num_items],
      representation_dim=representation_dim)
