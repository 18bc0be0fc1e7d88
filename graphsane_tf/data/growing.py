"""A log that grows: new rows are appended, whatever was there keeps its place and its number."""
import dataclasses
import pathlib
from typing import Any, Dict, Iterable, List, Optional, Tuple

import numpy as np
import pandas as pd
import pyarrow as pa

from graphsane_tf import files
from graphsane_tf.data import storage
from graphsane_tf.data.cleaning import collect, fingerprint, strings
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError

_UNKNOWN = 'unknown'


@dataclasses.dataclass(frozen=True)
class Arrival:
  """What has become of the rows of a file.

  Attributes:
    rows: new ones, appended.
    users, items: seen for the first time.
    late: of the new rows, those older than the newest row before them.
    repeated: of a (user, item) pair that was there already, at another time; ignored.
    already_used: the very rows that were there already; ignored.
    unrated: rated lower than asked for; ignored.
    unwanted: of users or items to be forgotten; ignored.
    recategorised: known items whose category has changed.
  """
  rows: int = 0
  users: int = 0
  items: int = 0
  late: int = 0
  repeated: int = 0
  already_used: int = 0
  unrated: int = 0
  unwanted: int = 0
  recategorised: int = 0


def empty() -> Interactions:
  """A log without rows."""
  numbers, names = np.zeros(0, np.int32), np.zeros(0, object)
  return Interactions(numbers, numbers, np.zeros(0, np.int64), names, names)


def append(log: Interactions, tables: Iterable[pa.Table], name: str, min_rating: Optional[float] = None,
           unwanted: Tuple[Iterable[str], Iterable[str]] = ((), ())) -> Tuple[Interactions, Arrival]:
  """Appends the rows of a file that are new, in time order; those of one time in the order of `basket_keys`.

  A (user, item) pair counts once, when it first came. Rows may be older than those that are there; they come behind
  them all the same, because what was trained on cannot be changed any more. An item has the newest category
  that was given.

  Args:
    log: what is there.
    tables: as in `cleaning.clean`, with a category if and only if the log has categories; an empty log takes either.
    name: of the file, for messages.
    min_rating: rows with a lower rating are ignored.
    unwanted: raw ids of users and of items whose rows are ignored.

  Returns:
    The longer log and what has become of the rows.
  """
  columns, values, _, raw_rows = collect(tables, min_rating, name)
  unrated = raw_rows - len(columns['time'])
  if not values:
    return log, Arrival(unrated=unrated)
  ids, numbers = {}, {}
  for kind, known, left_out in zip(('user', 'item'), (log.user_ids, log.item_ids), unwanted):
    ids[kind] = strings(values[kind], np.arange(len(values[kind])))
    number = pd.Index(known).get_indexer(ids[kind]) if len(known) else np.full(len(ids[kind]), -1)
    # Two marks below any number: new, and not wanted.
    number[np.isin(ids[kind], np.array(list(left_out), object))] = -2
    numbers[kind] = number
  wanted = (numbers['user'][columns['user']] > -2) & (numbers['item'][columns['item']] > -2)
  baskets = basket_keys(pd.util.hash_array(ids['user'])[columns['user']], columns['time'])
  order = np.lexsort((columns['user'], baskets, columns['time']))
  order = order[wanted[order]]
  columns = {key: column[order] for key, column in columns.items()}
  rows, names, counts = {}, {}, {}
  for kind, known in (('user', log.user_ids), ('item', log.item_ids)):
    codes = columns[kind]
    new = np.flatnonzero(numbers[kind][codes] == -1)
    first_codes = pd.unique(codes[new])
    numbers[kind][first_codes] = len(known) + np.arange(len(first_codes))
    rows[kind] = numbers[kind][codes]
    names[kind] = np.concatenate([known, ids[kind][first_codes]])
    counts[kind] = len(first_codes)
  keep, already_used = _new_rows(log, rows['user'], rows['item'], columns['time'], len(names['item']))
  newest = log.time.max(initial=np.iinfo(np.int64).min)
  category, category_names, recategorised = log.item_category, log.category_names, 0
  if 'category' in columns:
    fresh = columns['time'] >= newest
    category, category_names, recategorised = _categories(
        log, rows['item'], columns['category'],
        strings(values['category'], np.arange(len(values['category']))), fresh, len(names['item']))
  if not keep.any():
    return log, Arrival(already_used=already_used, repeated=len(keep) - already_used, unrated=unrated,
                        unwanted=raw_rows - unrated - len(keep))
  grown = Interactions(
      np.concatenate([log.user, rows['user'][keep].astype(np.int32)]),
      np.concatenate([log.item, rows['item'][keep].astype(np.int32)]),
      np.concatenate([log.time, columns['time'][keep]]), names['user'], names['item'], category, category_names,
      name=log.name)
  return dataclasses.replace(grown, fingerprint=fingerprint(grown)), Arrival(
      rows=int(keep.sum()), users=counts['user'], items=counts['item'],
      late=int((columns['time'][keep] < newest).sum()),
      repeated=int((~keep).sum()) - already_used, already_used=already_used, unrated=unrated,
      unwanted=raw_rows - unrated - len(keep), recategorised=recategorised)


def basket_keys(users: np.ndarray, time: np.ndarray) -> np.ndarray:
  """[n] uint64, the order of rows of one time.

  What a user takes at one time stands together. Otherwise the order is arbitrary, the same in whichever file a row
  comes, and another one at another time: where times are only days, the last rows of a day are nobody's in particular.

  Args:
    users: [n] uint64 digests of the raw ids.
    time: [n] int64.
  """
  keys = users ^ (time.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
  # The last steps of MurmurHash3: every bit of the input moves every bit of the result.
  for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
    keys = (keys ^ (keys >> np.uint64(33))) * np.uint64(factor)
  return keys ^ (keys >> np.uint64(33))


def _new_rows(log: Interactions, user, item, time, num_items: int) -> Tuple[np.ndarray, int]:
  """[n] bool, whether a pair is in the log or an earlier row; and how many rows are in the log with their time."""
  keys = user.astype(np.int64) * num_items + item
  before = log.user.astype(np.int64) * num_items + log.item
  order = np.argsort(before)
  place = np.searchsorted(before, keys, sorter=order)
  there = np.zeros(len(keys), bool)
  inside = np.flatnonzero(place < len(before))
  match = order[place[inside]]
  there[inside] = before[match] == keys[inside]
  same = there[inside] & (log.time[match] == time[inside])
  repeated = pd.Series(keys, copy=False).duplicated().to_numpy()
  return ~(there | repeated), int(same.sum())


def _categories(log: Interactions, item, codes, code_names, fresh, num_items: int):
  """The newest category of each item.

  Args:
    log: what is there.
    item: [n] numbers of the items of the rows.
    codes: [n] their categories.
    code_names: [num_codes] what the codes mean.
    fresh: [n] bool, whether a row may change the category of a known item.
    num_items: items in all.

  Returns:
    [num_items] int32 categories, [num_categories] their names and how many known items have changed theirs.
  """
  known = log.category_names if log.category_names is not None else np.zeros(0, object)
  # Only names that are used get a number, in the order of the rows.
  order = pd.unique(codes)
  number = pd.Index(known).get_indexer(code_names) if len(known) else np.full(len(code_names), -1)
  new = order[number[order] == -1]
  number[new] = len(known) + np.arange(len(new))
  names = np.concatenate([known, code_names[new]])
  told = code_names[codes] != _UNKNOWN
  result = np.full(num_items, -1, np.int64)
  old = len(log.item_ids)
  if log.item_category is not None:
    result[:old] = log.item_category
  before = result[:old].copy()
  use = (fresh | (item >= old)) & told
  # Of several rows of an item the last one, which is the newest, stays.
  result[item[use]] = number[codes[use]]
  if (result < 0).any():
    # Items whose category nobody has told.
    place = np.flatnonzero(names == _UNKNOWN)
    if not len(place):
      names, place = np.append(names, _UNKNOWN), np.array([len(names)])
    result[result < 0] = place[0]
  return result.astype(np.int32), names, int((result[:old] != before).sum())


@dataclasses.dataclass(frozen=True)
class Shrinkage:
  """A log without some users and items.

  Attributes:
    log: what is left, numbered anew.
    users, items: [num_users], [num_items] int64 the number that each had before.
    kept_rows: [num_rows before] bool.
  """
  log: Interactions
  users: np.ndarray
  items: np.ndarray
  kept_rows: np.ndarray


def forget(log: Interactions, user_ids: Iterable[str], item_ids: Iterable[str]) -> Shrinkage:
  """Removes all rows of some users and items; whoever is left without rows vanishes, too.

  Raises:
    UserError: if nothing would be left.
  """
  gone_user = np.isin(log.user_ids, np.array(list(user_ids), object))
  gone_item = np.isin(log.item_ids, np.array(list(item_ids), object))
  kept = ~(gone_user[log.user] | gone_item[log.item])
  if not kept.any():
    raise UserError('--forget_users and --forget_items leave no row of the log: delete the store instead.')
  user, users = pd.factorize(log.user[kept])
  item, items = pd.factorize(log.item[kept])
  category, names = log.item_category, log.category_names
  if category is not None and names is not None:
    category, used = pd.factorize(category[items])
    category, names = category.astype(np.int32), names[used]
  left = Interactions(user.astype(np.int32), item.astype(np.int32), log.time[kept], log.user_ids[users],
                      log.item_ids[items], category, names, name=log.name)
  return Shrinkage(dataclasses.replace(left, fingerprint=fingerprint(left)), users.astype(np.int64),
                   items.astype(np.int64), kept)


@dataclasses.dataclass(frozen=True)
class KeptLog:
  """The log of a store, as it is on disk.

  Attributes:
    number: of its folder; the next one is written beside it.
    numbering: counts how often ids were numbered anew, because some were forgotten.
    interactions: the rows in the order in which they came: by part, and in a part by time.
    parts: for each file that brought rows: 'first_row', 'rows' and what else was said about it.
  """
  number: int
  numbering: int
  interactions: Interactions
  parts: List[Dict[str, Any]]

  def cuts(self, seconds: int = 0) -> np.ndarray:
    """[num_blocks] first row of each block: of each part and, inside, of each calendar period of so many seconds."""
    firsts = [np.array([part['first_row'] for part in self.parts], np.int64)]
    if seconds:
      period = self.interactions.time // seconds
      firsts.append(1 + np.flatnonzero(np.diff(period)))
    return np.unique(np.concatenate(firsts))

  def write(self, folder: pathlib.Path) -> None:
    """Writes folder/<number> in one step."""
    storage.write_prepared(self.interactions, folder / str(self.number), {
        'sources': [], 'numbering': self.numbering, 'parts': self.parts})


def newest(folder: pathlib.Path, numbering: int) -> Optional[int]:
  """Number of the newest log below a folder that has the given numbering; None if there is none.

  A log whose manifest cannot be read counts, so that damage is found.
  """
  for number in sorted(files.numbered(folder), reverse=True):
    manifest = storage.read_manifest(folder / str(number))
    if manifest is None or manifest.get('numbering') == numbering:
      return number
  return None


def read(folder: pathlib.Path, numbering: int) -> KeptLog:
  """The newest log below a folder that has the given numbering; an empty one if there is none.

  Raises:
    UserError: if it is damaged.
  """
  number = newest(folder, numbering)
  if number is None:
    return KeptLog(-1, numbering, empty(), [])
  manifest = storage.read_manifest(folder / str(number))
  interactions = storage.read_prepared(folder / str(number))
  if interactions is None or manifest is None:
    raise UserError(f'{folder / str(number)} is damaged: bring it back from a copy; without it the store cannot '
                    'be updated (its versions can still be served).')
  return KeptLog(number, numbering, interactions, manifest['parts'])
