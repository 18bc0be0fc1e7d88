"""A store in a few lines."""
import datetime
from typing import Any, Dict

from graphsane_tf.runs.store import Store, size_on_disk

_FIELDS = ('number', 'kind', 'parent', 'update', 'created', 'bytes', 'published', 'deleted')
_METRICS = ('recall@20', 'ndcg@20')


def collect(store: Store) -> Dict[str, Any]:
  """What there is to know of a store."""
  kept = store.log()
  log = kept.interactions
  current = store.versions.current()
  entries = [{**{name: manifest[name] for name in _FIELDS}, 'rows': manifest['data']['rows'],
              'decision': manifest['gate']['decision'], 'move': manifest['gate'].get('chosen'),
              'reason': manifest['gate']['reason'],
              'options': manifest['gate'].get('options', {})} for manifest in store.versions.manifests()]
  rows = next((entry['rows'] for entry in entries if entry['number'] == current), 0)
  return {'store': str(store.path), 'name': store.name, 'current': current,
          'rows': len(log), 'users': log.num_users, 'items': log.num_items, 'waiting': len(log) - rows,
          'first_time': int(log.time.min()) if len(log) else None,
          'last_time': int(log.time.max()) if len(log) else None, 'updates': len(kept.parts),
          'bytes': size_on_disk(store.path), 'versions': entries}


def _date(seconds) -> str:
  return 'never' if seconds is None else datetime.datetime.fromtimestamp(
      seconds, datetime.timezone.utc).isoformat(' ', 'seconds')[:-6]


def text(found: Dict[str, Any]) -> str:
  """The same for a person."""
  size = f'{found["bytes"] / 2**20:,.1f} MiB'
  lines = [f'{found["store"]}: version {found["current"]} of {found["name"]} is served; {size}',
           f'log: {found["rows"]:,} rows of {found["users"]:,} users and {found["items"]:,} items, '
           f'{_date(found["first_time"])} to {_date(found["last_time"])} UTC; {found["waiting"]:,} rows wait', '',
           f'{"version":>7}  {"made (UTC)":16}  {"kind":10}  {"rows":>11}  ' + '  '.join(
               f'{metric:>9}' for metric in _METRICS) + '  decision']
  for entry in found['versions']:
    measured = entry['options'].get(entry['move'], {})
    figures = [f'{measured[metric]:.4f}' if metric in measured else '' for metric in _METRICS]
    mark = '*' if entry['number'] == found['current'] else ' '
    lines.append(f'{entry["number"]:6}{mark}  {entry["created"][:16].replace("T", " "):16}  {entry["kind"]:10}  '
                 f'{entry["rows"]:11,}  ' + '  '.join(f'{figure:>9}' for figure in figures) + f'  {entry["decision"]}'
                 + (' (deleted)' if entry['deleted'] else ''))
  return '\n'.join(lines)
