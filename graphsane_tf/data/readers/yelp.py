"""Yelp's academic data set: reviews as JSON lines, categories from the file of businesses."""
import pathlib
import re
from typing import Callable, Iterator, List, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from graphsane_tf.data.readers import text

_REVIEWS = pa.schema([('user_id', pa.string()), ('business_id', pa.string()),
                      ('stars', pa.float64()), ('date', pa.string())])
_BUSINESSES = pa.schema([('business_id', pa.string()), ('categories', pa.string())])


def find(folder: pathlib.Path) -> List[pathlib.Path]:
  """The raw files in `folder`, businesses last where they are; empty without reviews."""
  reviews = folder / 'yelp_academic_dataset_review.json'
  businesses = folder / 'yelp_academic_dataset_business.json'
  return [path for path in (reviews, businesses) if path.is_file()] if reviews.is_file() else []


def _first_broken_line(data: bytes) -> int:
  """The 0-based line of the first byte that is not UTF-8, or 0."""
  try:
    data.decode('utf-8')
  except UnicodeDecodeError as error:
    return data.count(b'\n', 0, error.start)
  return 0


def _tables(path: pathlib.Path, schema: pa.Schema) -> Iterator[Tuple[int, bytes, pa.Table]]:
  """Yields (first line, bytes, table) of each piece of a file of JSON lines."""
  for first_line, data in text.pieces(path):
    try:
      table = pa_json.read_json(
          pa.BufferReader(data), pa_json.ReadOptions(block_size=len(data) + 1),
          pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior='ignore'))
      # Arrow trusts JSON to be UTF-8.
      table.validate(full=True)
    except pa.ArrowInvalid as error:
      row = re.search(r'in row (\d+)', str(error))
      line = text.filled_line(data, int(row.group(1))) if row else _first_broken_line(data)
      raise text.bad_line(path, first_line + line, None,
                          f'not the JSON expected ({text.shown(str(error), 200)})') from error
    yield first_line, data, table


def _first_categories(path: pathlib.Path) -> pa.Table:
  """The first category of each business: "Food, Coffee & Tea" is Food."""
  table = pa.concat_tables(table for _, _, table in _tables(path, _BUSINESSES))
  names = pc.fill_null(table['categories'], 'unknown')
  first = pc.utf8_trim_whitespace(pc.list_element(pc.split_pattern(names, ','), 0))
  return pa.table({'business_id': table['business_id'], 'category': first})


def read(files: List[pathlib.Path], log: Callable[[str], None] = print) -> Iterator[pa.Table]:
  """Yields tables with user, item, rating, timestamp and, given businesses, the category."""
  businesses = None
  if len(files) > 1:
    businesses = _first_categories(files[1])
  else:
    log(f'note: {files[0].parent} has no yelp_academic_dataset_business.json, so the items have '
        'no categories.')
  for first_line, data, table in _tables(files[0], _REVIEWS):
    times = pc.strptime(table['date'], format='%Y-%m-%d %H:%M:%S', unit='s', error_is_null=True)
    for name, column in [*zip(table.column_names[:3], table.columns[:3]), ('date', times)]:
      if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise text.bad_line(files[0], first_line + text.filled_line(data, row), name,
                            'the value is missing or malformed')
    result = {'user': table['user_id'], 'item': table['business_id'], 'rating': table['stars'],
              'timestamp': text.seconds(times)}
    if businesses is not None:
      rows = pc.index_in(table['business_id'],
                         value_set=businesses['business_id'].combine_chunks())
      result['category'] = pc.fill_null(businesses['category'].take(rows), 'unknown')
    yield pa.table(result)
