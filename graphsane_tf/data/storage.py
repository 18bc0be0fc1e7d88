"""The prepared folder: a cleaned log as Parquet files beside a manifest that vouches for them."""
import hashlib
import json
import pathlib
from typing import Any, Dict, Optional

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphsane_tf import files
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError

FORMAT = 1
MANIFEST = 'manifest.json'
_DIGEST = 'manifest_sha256'
_TABLES = ('interactions.parquet', 'users.parquet', 'items.parquet', 'categories.parquet')

_ROW_COLUMNS = {'user': np.int32, 'item': np.int32, 'time': np.int64}
_BATCH_ROWS = 1 << 20


def write_prepared(interactions: Interactions, folder, manifest_extra: Dict[str, Any]) -> None:
  """Writes the folder in one step: it is whole or, after a kill, as it was before.

  Args:
    interactions: the cleaned log.
    folder: where to write; replaced if it exists.
    manifest_extra: more entries of the manifest, such as the recipe and the source files.
  """
  tables = [
      pa.table({'user': interactions.user, 'item': interactions.item, 'time': interactions.time}),
      pa.table({'id': pa.array(interactions.user_ids, pa.string())}),
      pa.table({'id': pa.array(interactions.item_ids, pa.string())}),
  ]
  if interactions.item_category is not None:
    tables[2] = tables[2].append_column('category', pa.array(interactions.item_category))
    tables.append(pa.table({'name': pa.array(interactions.category_names, pa.string())}))
  with files.replaced_directory(folder) as temporary:
    for file_name, table in zip(_TABLES, tables):
      pq.write_table(table, temporary / file_name)
    write_manifest(temporary, {
        'format': FORMAT,
        'name': interactions.name,
        'fingerprint': interactions.fingerprint,
        'counts': {'rows': len(interactions), 'users': interactions.num_users,
                   'items': interactions.num_items},
        'notes': list(interactions.notes),
        'sha256': {file_name: files.sha256(temporary / file_name)
                   for file_name, _ in zip(_TABLES, tables)},
        **manifest_extra,
    })


def write_manifest(folder, manifest: Dict[str, Any]) -> None:
  """Writes a manifest with a digest of itself."""
  files.write_json(pathlib.Path(folder) / MANIFEST, {**manifest, _DIGEST: _digest(manifest)})


def _digest(manifest: Dict[str, Any]) -> str:
  content = {key: value for key, value in manifest.items() if key != _DIGEST}
  return hashlib.sha256(json.dumps(content, sort_keys=True).encode('utf-8')).hexdigest()


def read_manifest(folder) -> Optional[Dict[str, Any]]:
  """The manifest of a prepared folder, or None when it is missing, malformed or changed."""
  try:
    manifest = files.read_json(pathlib.Path(folder) / MANIFEST)
  except (UserError, OSError, UnicodeDecodeError, RecursionError):
    return None
  return manifest if _is_manifest(manifest) else None


def _is_manifest(value: Any) -> bool:
  """Whether what a manifest holds has the types that reading it relies on."""
  if not isinstance(value, dict) or value.get('format') != FORMAT:
    return False
  # Manifests of earlier versions have no notes and no digest.
  value.setdefault('notes', [])
  if _DIGEST in value and value[_DIGEST] != _digest(value):
    return False
  kinds = {'name': str, 'fingerprint': str, 'sha256': dict, 'sources': list, 'notes': list}
  if not all(isinstance(value.get(key), kind) for key, kind in kinds.items()):
    return False
  if not all(isinstance(note, str) for note in value['notes']):
    return False
  return all(isinstance(entry, dict) and isinstance(entry.get('file'), str)
             and {'bytes', 'mtime_ns', 'sha256'} <= set(entry) for entry in value['sources'])


def read_prepared(folder) -> Optional[Interactions]:
  """Reads a prepared folder, or returns None when any byte of it is missing or changed."""
  folder = pathlib.Path(folder)
  manifest = read_manifest(folder)
  if manifest is None:
    return None
  expected = manifest['sha256']
  try:
    if set(_TABLES[:3]) - set(expected) or set(expected) - set(_TABLES):
      return None
    if any(files.sha256(folder / name) != digest for name, digest in expected.items()):
      return None
    rows = _read_rows(folder / _TABLES[0])
    tables = {name: pq.read_table(folder / name) for name in expected if name != _TABLES[0]}
    users, items = (tables[name] for name in _TABLES[1:3])
    has_categories = _TABLES[3] in tables
    return Interactions(
        **rows,
        user_ids=_names(users['id']), item_ids=_names(items['id']),
        item_category=_numbers(items['category']) if has_categories else None,
        category_names=_names(tables[_TABLES[3]]['name']) if has_categories else None,
        name=manifest['name'], fingerprint=manifest['fingerprint'],
        notes=tuple(manifest['notes']))
  except (OSError, KeyError, TypeError, ValueError, pa.ArrowException):
    return None


def _read_rows(path: pathlib.Path) -> Dict[str, np.ndarray]:
  """The columns of all rows, which are not held twice while they are read."""
  with pq.ParquetFile(path) as source:
    columns = {name: np.empty(source.metadata.num_rows, kind) for name, kind in _ROW_COLUMNS.items()}
    start = 0
    for batch in source.iter_batches(_BATCH_ROWS, columns=list(columns)):
      for name, values in columns.items():
        values[start:start + len(batch)] = batch[name].to_numpy()
      start += len(batch)
  return columns


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
  # A copy, because Arrow's own memory is read-only.
  return np.array(column.to_numpy())


def _names(column: pa.ChunkedArray) -> np.ndarray:
  return column.combine_chunks().to_numpy(zero_copy_only=False)
