"""From raw tables to `Interactions`: filter, de-duplicate, k-core, sort, renumber."""
import dataclasses
import hashlib
import json
import pathlib
from typing import Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from graphsane_tf.data import ordering, spelling
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.data.recipes import Recipe
from graphsane_tf.errors import UserError

_BATCH_ROWS = 1 << 21
# Arrow's text columns hold at most 2 GiB.
_BATCH_BYTES = 1 << 29


def fingerprint(interactions: Interactions) -> str:
  """A hex digest of everything in the table but its name and notes."""
  digest = hashlib.sha256()
  for array in (interactions.user, interactions.item, interactions.time,
                interactions.item_category):
    if array is not None:
      digest.update(str((array.dtype.str, array.shape)).encode('utf-8'))
      digest.update(np.ascontiguousarray(array).data)
  for ids in (interactions.user_ids, interactions.item_ids, interactions.category_names):
    names = None if ids is None else [str(name) for name in ids]
    digest.update(json.dumps(names).encode('utf-8'))
  return digest.hexdigest()


def _batches(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
  """Joins small tables, so that many small files do not become many small dictionaries."""
  held: List[pa.Table] = []
  for table in tables:
    held.append(table)
    if (sum(map(len, held)) >= _BATCH_ROWS
        or sum(table.nbytes for table in held) >= _BATCH_BYTES):
      yield pa.concat_tables(held)
      held = []
  if held:
    yield pa.concat_tables(held)


def _numbered(table: pa.Table, key: str, names: Dict[str, pa.Array]) -> np.ndarray:
  """int32 codes of a column; those in `names` keep theirs, and new ones are added."""
  chunks = [table[key].combine_chunks().dictionary_encode()]
  if key in names:
    # One dictionary of all that was read, or many large ones would have to be held.
    none = pa.array([], pa.int32())
    chunks.insert(0, pa.DictionaryArray.from_arrays(none, names[key]))
    chunks = pa.chunked_array(chunks).unify_dictionaries().chunks
  names[key] = chunks[0].dictionary
  return chunks[-1].indices.to_numpy()


def _read(tables: Iterable[pa.Table], min_rating: Optional[float], name: str):
  """Reads the tables one by one, keeping only codes.

  Returns:
    The columns (user, item, time and perhaps category; the ids as int32 codes) in pieces, what the codes stand for,
    the newest time of the raw log and its number of rows. Without any row that is rated well enough there is
    nothing that codes stand for.
  """
  chunks: ordering.Chunks = {'time': []}
  names: Dict[str, pa.Array] = {}
  newest, raw_rows = None, 0
  for table in _batches(tables):
    if not len(table):
      continue
    raw_rows += len(table)
    latest = pc.max(table['timestamp']).as_py()
    newest = latest if newest is None else max(newest, latest)
    if min_rating is not None:
      if 'rating' not in table.column_names:
        raise UserError(f'min_rating is {min_rating:g} but {name} has no ratings; leave '
                        'min_rating out or name the column with --rating_column.')
      table = table.filter(pc.greater_equal(table['rating'], min_rating))
      if not len(table):
        continue
    chunks['time'].append(table['timestamp'].to_numpy())
    for key in ('user', 'item', 'category'):
      if key in table.column_names:
        chunks.setdefault(key, []).append(_numbered(table, key, names))
  pa.default_memory_pool().release_unused()
  return chunks, names, newest, raw_rows


def collect(tables: Iterable[pa.Table], min_rating: Optional[float], name: str):
  """As `_read`, with each column whole; 'time' is [0] and the only one where no row is left."""
  chunks, *more = _read(tables, min_rating, name)
  columns = {key: np.concatenate(pieces) if pieces else np.zeros(0, np.int64) for key, pieces in chunks.items()}
  return columns, *more


def _counts(codes: np.ndarray) -> np.ndarray:
  """np.bincount, which would copy all codes at once."""
  counts = np.zeros(int(codes.max()) + 1, np.int64)
  for start in range(0, len(codes), _BATCH_ROWS):
    counts += np.bincount(codes[start:start + _BATCH_ROWS], minlength=len(counts))
  return counts


def _core(columns: Dict[str, np.ndarray], recipe: Recipe, name: str) -> None:
  """Drops rare users, then rare items, until every one left has enough rows."""
  smallest = {'user': recipe.min_user_interactions, 'item': recipe.min_item_interactions}
  settled = False
  while not settled:
    settled = True
    for key, minimum in smallest.items():
      keep = (_counts(columns[key]) >= minimum)[columns[key]]
      if not keep.all():
        ordering.select(columns, keep)
        settled = False
      if not len(keep) or not keep.any():
        raise UserError(f'min_user_interactions={smallest["user"]} and min_item_interactions='
                        f'{smallest["item"]} together left no rows of {name}; lower them.')


def _years_before(time: int, years: int, name: str) -> int:
  """The time as many calendar years before `time`, both in seconds."""
  try:
    return int((pd.Timestamp(np.datetime64(time, 's')) - pd.DateOffset(years=years)).timestamp())
  except (ValueError, OverflowError) as error:
    raise UserError(f'{name} ends on {np.datetime64(time, "s")}, of which the last {years} years '
                    'cannot be taken; check its times.') from error


def _renumber(codes: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
  """Numbers codes by first appearance; returns int32 numbers and the code of each number."""
  numbers, codes = pd.factorize(codes)
  return numbers.astype(np.int32), codes


def strings(values: pa.Array, codes: np.ndarray) -> np.ndarray:
  return values.take(pa.array(codes)).cast(pa.string()).to_numpy(zero_copy_only=False)


def clean(tables: Union[pa.Table, Iterable[pa.Table]], recipe: Recipe, name: str,
          scratch: Optional[pathlib.Path] = None) -> Interactions:
  """Applies a recipe to a raw log.

  Args:
    tables: a table or several, with columns user, item (text or whole numbers), timestamp (int64
      seconds) and perhaps rating and category. A row without a rating fails any `min_rating`.
    recipe: the filters.
    name: the data set's name.
    scratch: a folder where a large log may spill; None is the system's place for temporary files.

  Returns:
    The table in time order, ties in file order, ids numbered by first appearance.

  Raises:
    UserError: a filter left nothing.
  """
  chunks, values, newest, rows = _read([tables] if isinstance(tables, pa.Table) else tables,
                                       recipe.min_rating, name)
  if not rows:
    raise UserError(f'{name} has no rows; check the source file.')
  if not values:
    raise UserError(f'min_rating={recipe.min_rating:g} left no rows of {name} (it has '
                    f'{rows:,}); choose a lower --min_rating.')
  notes = []

  def count_dropped(left: int, sentence: str) -> None:
    nonlocal rows
    dropped, rows = rows - left, left
    if dropped:
      notes.append(f'{dropped:,} {sentence}')

  count_dropped(sum(map(len, chunks['time'])), f'rows not rated {recipe.min_rating} or better dropped: --min_rating')
  if recipe.last_years is not None:
    since = _years_before(newest, recipe.last_years, name)
    recent = [piece >= since for piece in chunks['time']]
    chunks = {key: [piece[kept] for piece, kept in zip(pieces, recent) if kept.any()]
              for key, pieces in chunks.items()}
    if not chunks['time']:
      raise UserError(f'last_years={recipe.last_years} left no rows of {name}.')
    count_dropped(sum(map(len, chunks['time'])), f'rows older than the last {recipe.last_years} years dropped')
  columns = ordering.one_row_a_pair(chunks, recipe.duplicates, scratch)
  count_dropped(len(columns['time']), f'repeats dropped, {recipe.duplicates} kept: --duplicates')
  _core(columns, recipe, name)
  count_dropped(len(columns['time']), 'rows of rare users or items dropped: --min_user_interactions, '
                '--min_item_interactions')

  user, user_codes = _renumber(columns.pop('user'))
  item, item_codes = _renumber(columns.pop('item'))
  category = names = None
  if 'category' in columns:
    # Writing in reverse leaves the category of each item's first row.
    category = np.empty(len(item_codes), np.int32)
    category[item[::-1]] = columns['category'][::-1]
    category, category_codes = _renumber(category)
    names = strings(values['category'], category_codes)
  user_ids, item_ids = strings(values['user'], user_codes), strings(values['item'], item_codes)
  notes += filter(None, (spelling.warning('users', user_ids), spelling.warning('items', item_ids)))
  result = Interactions(user=user, item=item, time=columns['time'], user_ids=user_ids, item_ids=item_ids,
                        item_category=category, category_names=names, name=name,
                        notes=tuple(notes))
  return dataclasses.replace(result, fingerprint=fingerprint(result))
