"""The life of a store as one self-contained HTML page."""
import datetime
from typing import Any, Dict, List, Optional

import numpy as np

from graphsane_tf.reporting import figures, html
from graphsane_tf.runs.store import Store, size_on_disk
from graphsane_tf.serving import export

_METRICS = ('recall@20', 'ndcg@20')
_LIST = 10
# What the options of a gate are called.
_LABELS = {'trained': 'trained today', 'graph_only': 'old weights, new rows',
           'memory': 'memory alone', 'recent': 'recent popularity', 'current': 'version before',
           'popularity': 'popular last week', 'never_updated': 'never updated'}
_MIB = 2**20
# The most categories that have a column of their own.
_CATEGORIES = 8


def page(store: Store, user: Optional[str] = None) -> str:
  """The page.

  Args:
    store: the store.
    user: raw id of somebody whose lists and interests are shown, or None.
  """
  entries = store.versions.manifests()
  current = store.versions.current()
  drawn = figures.Figures()
  sections = [(title, parts) for title, parts in (
      (f'User {user}', _user(store, user, entries) if user is not None else []),
      ('Versions', _versions(entries, current)),
      ('How good', _measured(drawn, entries)),
      ('Decisions', _decisions(entries)),
      ('Drift', _drift(drawn, entries)),
      ('Time and size', _cost(drawn, entries)),
      ('How to read it', [html.paragraph(line) for line in _LEGEND])) if parts]
  return html.page(f'Store {store.name}', html.bullets(_summary(store, entries, current)), sections)


_LEGEND = (
    'Every update holds out its newest rows. All figures of a version are of those rows, for all users who have any '
    'there: of the model trained on the rest of the update, of the old weights with the new rows, of the version that '
    'was served before, of the popularity of the last week, and of the first version, never updated, as long as that '
    'is there. With a memory also of that alone, and of recent popularity as a model that could be published.',
    'What is served was then trained on those rows as well, so its own figures cannot be measured before the next '
    'update.',
    'A version that the gate refuses is kept, but not served; its rows wait for the next update.')


def _day(seconds: Optional[int]) -> str:
  if seconds is None:
    return ''
  return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime('%Y-%m-%d')


def _summary(store: Store, entries, current) -> List[str]:
  served = next((entry for entry in entries if entry['number'] == current), None)
  lines = ['No version is served yet.']
  if served:
    data = served['data']
    lines = [f'Version {current} is served: {data["rows"]:,} rows of {data["users"]:,} users and {data["items"]:,} '
             f'items, from {_day(data["first_time"])} to {_day(data["last_time"])}.']
  made = _updates(entries)
  refused = sum(not entry['published'] for entry in made)
  lines.append(f'{len(made)} versions have been made, {refused} of them refused by the gate; the store takes '
               f'{size_on_disk(store.path) / _MIB:,.1f} MiB.')
  unreadable = [str(number) for number in store.versions.numbers()
                if number not in {entry['number'] for entry in entries}]
  if unreadable:
    lines.append(f'Versions that cannot be read: {", ".join(unreadable)}. Publish a sound one with graphsane rollback.')
  return lines


def _own(entry: Dict[str, Any]) -> Dict[str, float]:
  """What was measured of a version's own move."""
  gate = entry['gate']
  return gate.get('options', {}).get(gate.get('chosen', ''), {})


def _versions(entries, current) -> List[str]:
  cells = []
  for entry in entries:
    state = 'served' if entry['number'] == current else 'published before' if entry['published'] else 'refused'
    state += ', deleted' if entry['deleted'] else ''
    data, measured = entry['data'], _own(entry)
    cells.append([str(entry['number']), state, entry['kind'].replace('_', ' '),
                  entry['created'][:16].replace('T', ' '), _day(data['last_time']), data['rows'],
                  data['users'], data['items'], *[measured.get(metric) for metric in _METRICS]])
  heads = ['version', 'state', 'kind', 'made (UTC)', 'newest row', 'rows', 'users', 'items', *_METRICS]
  return [html.table({'heads': heads, 'cells': cells})] if cells else []


def _updates(entries) -> List[Dict[str, Any]]:
  """Without what was only published again."""
  return [entry for entry in entries if entry['kind'] != 'rollback']


def _measured(drawn: figures.Figures, entries) -> List[str]:
  judged = [entry for entry in _updates(entries) if entry['gate'].get('options')]
  if not judged:
    return []
  names = list(dict.fromkeys(name for entry in judged for name in entry['gate']['options']))
  parts, pictures = [], []
  for metric in _METRICS:
    cells = [[str(entry['number']), _day(entry['data']['last_time']),
              *[entry['gate']['options'].get(name, {}).get(metric) for name in names], entry['gate'].get('users')]
             for entry in judged]
    heads = ['version', 'newest row', *[_LABELS.get(name, name) for name in names], 'users']
    parts += [f'<h3>{html.escape(metric)}</h3>', html.table({'heads': heads, 'cells': cells})]
    lines = {_LABELS.get(name, name): {
        entry['number']: entry['gate']['options'][name][metric] for entry in judged
        if metric in entry['gate']['options'].get(name, {})} for name in names}
    pictures.append(html.picture(drawn.by_version(lines, metric), f'{metric} of the rows held out, by version'))
  return [*parts, html.pictures(pictures)]


def _decisions(entries) -> List[str]:
  cells = []
  for entry in entries:
    gate = entry['gate']
    difference = gate.get('difference') or {}
    cells.append([str(entry['number']), gate['decision'].replace('_', ' '), gate['reason'],
                  *[difference.get(name) for name in ('mean', 'low', 'high')]])
  heads = ['version', 'decision', 'reason', 'difference', 'interval from', 'interval to']
  return [html.table({'heads': heads, 'cells': cells})] if cells else []


def _drift(drawn: figures.Figures, entries) -> List[str]:
  moved = [entry for entry in _updates(entries) if entry.get('drift')]
  cells = []
  for entry in moved:
    drift = entry['drift']
    scores = drift.get('scores', {})
    quantiles = [scores.get(side, {}).get(name) for side in ('before', 'after') for name in ('p10', 'p50', 'p90')]
    cells.append([str(entry['number']), drift['new_users'], drift['new_items'], drift['popularity_change'],
                  drift['shifted_users'], drift['compared_users'], *quantiles])
  if not cells:
    return []
  heads = ['version', 'new users', 'new items', 'popularity change', 'users with a shift', 'users compared',
           *[f'score {name} {side}' for side in ('before', 'after') for name in ('p10', 'p50', 'p90')]]
  pictures = []
  for name, label in (('popularity_change', 'change of popularity, 0 to 1'),
                      ('shifted_users', 'users with other interests')):
    line = {entry['number']: entry['drift'][name] for entry in moved if entry['drift'][name] is not None}
    if len(line) > 1:
      pictures.append(html.picture(drawn.by_version({label: line}, label), f'{label}, by version'))
  return [html.table({'heads': heads, 'cells': cells}), html.paragraph(
      'Scores are quantiles of the best 20 items of up to 1,000 users, of the version before and of this one.', 'note'),
          html.pictures(pictures)]


def _cost(drawn: figures.Figures, entries) -> List[str]:
  made = _updates(entries)
  stages = list(dict.fromkeys(name for entry in made for name in entry.get('seconds', {})))
  cells = [[str(entry['number']), entry.get('arrived', {}).get('rows'),
            *[entry.get('seconds', {}).get(name) for name in stages], entry['bytes'] // 1024] for entry in made]
  if not cells:
    return []
  pictures = []
  if 'total' in stages:
    line = {entry['number']: entry['seconds']['total'] for entry in made if 'total' in entry.get('seconds', {})}
    pictures.append(html.picture(drawn.by_version({'seconds': line}, 'seconds'), 'seconds of each update, by version'))
  sizes = {entry['number']: entry['bytes'] / 1024 for entry in made}
  pictures.append(html.picture(drawn.by_version({'KiB': sizes}, 'KiB'), 'size of each version in KiB'))
  heads = ['version', 'new rows', *[f'{name} (s)' for name in stages], 'KiB']
  return [html.table({'heads': heads, 'cells': cells}), html.pictures(pictures)]


def _user(store: Store, user: str, entries) -> List[str]:
  """Lists before and after the newest update, and what the user has taken, update by update."""
  return [*_lists(store, user, entries), *_interests(store, user)]


def _lists(store: Store, user: str, entries) -> List[str]:
  current = store.versions.current()
  published = {entry['number']: entry for entry in entries if entry['published'] and not entry['deleted']}
  if current not in published:
    return []
  parent = published[current]['parent']
  shown = [number for number in (parent, current) if number in published]
  lists = {number: export.recommend(str(store.versions.path(number)), [user], _LIST)[0] for number in shown}
  place = {number: {item: rank for rank, (item, _) in enumerate(items, 1)} for number, items in lists.items()}
  heads = ['rank']
  cells: List[List[Any]] = [[str(rank)] for rank in range(1, _LIST + 1)]
  for number in shown:
    heads += [f'version {number}', f'score of {number}']
    for rank, row in enumerate(cells):
      row.extend(lists[number][rank] if rank < len(lists[number]) else ['', None])
  if len(shown) == 2:
    heads.append('in the one before')
    for rank, row in enumerate(cells):
      item = lists[current][rank][0] if rank < len(lists[current]) else None
      row.append('' if item is None else f'rank {place[parent][item]}' if item in place[parent] else 'not listed')
  parts = [html.table({'heads': heads, 'cells': cells})]
  if len(shown) < 2:
    parts.append(html.paragraph('There is no version before it to compare with.', 'note'))
  return [f'<h3>{html.escape("Lists before and after the newest version")}</h3>', *parts]


def _interests(store: Store, user: str) -> List[str]:
  kept = store.log()
  log = kept.interactions
  number = np.flatnonzero(log.user_ids == user)
  if not len(number):
    return [html.paragraph('The log does not know this user: they get what is popular.')]
  rows = np.flatnonzero(log.user == number[0])
  update = np.searchsorted([part['first_row'] for part in kept.parts], rows, side='right') - 1
  if log.item_category is not None and log.category_names is not None:
    category = log.item_category[log.item[rows]]
    counts = np.bincount(category, minlength=len(log.category_names))
    often = [kind for kind in np.argsort(-counts, kind='stable')[:_CATEGORIES] if counts[kind]]
    heads, kinds = [str(log.category_names[kind]) for kind in often], [category == kind for kind in often]
  else:
    heads, kinds = [], []
  cells = []
  for part in np.unique(update):
    mine = update == part
    cells.append([f'update {part}' if part else 'history', _day(int(log.time[rows[mine]].max())), int(mine.sum()),
                  *[int((mine & kind).sum()) for kind in kinds]])
  shown = {'heads': ['rows of', 'newest', 'items taken', *heads], 'cells': cells}
  return ['<h3>What they have taken</h3>', html.table(shown),
          html.paragraph('Columns of names are categories, the most frequent first.', 'note') if heads else '']
