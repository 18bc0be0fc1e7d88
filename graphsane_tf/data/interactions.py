"""The table that every later room reads: one row per interaction, in time order."""
import dataclasses
from typing import Optional, Tuple

import numpy as np


@dataclasses.dataclass(frozen=True)
class Interactions:
  """A cleaned interaction log.

  Rows are sorted by time (stable: ties keep the order of the file) and each (user, item) pair occurs
  once. Users, items and categories are numbered in the order of their first row, so whatever is
  known at some moment is a prefix of the ids, and nothing later can renumber it.

  Attributes:
    user: [num_rows] int32, user number of each row.
    item: [num_rows] int32, item number of each row.
    time: [num_rows] int64, seconds since the epoch.
    user_ids: [num_users] object array of str, the raw id of each user.
    item_ids: [num_items] object array of str, the raw id of each item.
    item_category: [num_items] int32 category of each item, or None where the log has none.
    category_names: [num_categories] object array of str, or None.
    name: the data set's name, for messages and file names.
    fingerprint: a hex digest of the content.
    notes: what a person should know of how the table was made, a line each: rows dropped, say.
  """
  user: np.ndarray
  item: np.ndarray
  time: np.ndarray
  user_ids: np.ndarray
  item_ids: np.ndarray
  item_category: Optional[np.ndarray] = None
  category_names: Optional[np.ndarray] = None
  name: str = 'log'
  fingerprint: str = ''
  notes: Tuple[str, ...] = ()

  def __len__(self) -> int:
    return len(self.user)

  @property
  def num_users(self) -> int:
    return len(self.user_ids)

  @property
  def num_items(self) -> int:
    return len(self.item_ids)
