"""How a raw log is filtered, and what the paper counted."""
import dataclasses
import hashlib
import json
from typing import Any, Mapping, Optional

from graphsane_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class Recipe:
  """The filters that turn a raw log into `Interactions`, applied in the order of the fields.

  Attributes:
    min_rating: keep rows whose rating is at least this; None keeps every row.
    last_years: keep the calendar years before the newest raw row; None keeps every row.
    duplicates: which row of a repeated (user, item) pair stays, by time: 'first' or 'last'. Rows
      of the same time count in file order.
    min_user_interactions: users with fewer rows are dropped, repeated until nothing changes.
    min_item_interactions: the same for items.
  """
  min_rating: Optional[float] = None
  last_years: Optional[int] = None
  duplicates: str = 'last'
  min_user_interactions: int = 1
  min_item_interactions: int = 1

  def __post_init__(self):
    if self.duplicates not in ('first', 'last'):
      raise UserError(f'duplicates is {self.duplicates!r}; choose first or last.')
    for field in ('min_user_interactions', 'min_item_interactions'):
      if getattr(self, field) < 1:
        raise UserError(f'{field} is {getattr(self, field)}; it must be 1 or more.')

  def override(self, values: Optional[Mapping[str, Any]]) -> 'Recipe':
    """A copy with each value of `values` that is not None in place of the recipe's own."""
    given = {key: value for key, value in (values or {}).items() if value is not None}
    unknown = set(given) - {field.name for field in dataclasses.fields(self)}
    if unknown:
      raise UserError(f'unknown filter {", ".join(sorted(unknown))}.')
    return dataclasses.replace(self, **given)

  def digest(self, *more: Any) -> str:
    """A short hex digest of the recipe and of whatever else decides the prepared table."""
    text = json.dumps([dataclasses.asdict(self), *more], sort_keys=True)
    return hashlib.sha256(text.encode('utf-8')).hexdigest()[:12]


@dataclasses.dataclass(frozen=True)
class PaperStatistics:
  """One column of the paper's table of data set statistics."""
  edges: int
  users: int
  items: int
  average_user_degree: float
  average_item_degree: float
  percent_new_users: float
  percent_new_items: float
  months: float
