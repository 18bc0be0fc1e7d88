"""Writes small logs in each owner's raw format, from arrays of users, items and times.

Every function takes arrays of equal length (times in epoch seconds) and returns the folder, so that
a test may generate any log and read it back through the real reader.
"""
import gzip
import json
import pathlib

import numpy as np


def random_log(num_rows=400, num_users=20, num_items=15, seed=0, days=200):
  """Returns (users, items, times) with repeated pairs, ties and rows out of time order.

  Users and items are numbered from 1; times are whole days, which every format can hold.
  """
  random = np.random.default_rng(seed)
  users = random.integers(1, num_users + 1, num_rows)
  items = random.integers(1, num_items + 1, num_rows)
  start = np.datetime64('2015-01-01', 's').astype(np.int64)
  times = start + 86400 * random.integers(0, days, num_rows)
  return users, items, times


def _stamps(times):
  return [str(stamp) for stamp in np.asarray(times).astype('datetime64[s]')]


def _write(folder, name, lines, newline='\n'):
  path = pathlib.Path(folder) / name
  path.parent.mkdir(parents=True, exist_ok=True)
  content = ''.join(line + newline for line in lines).encode('utf-8')
  path.write_bytes(gzip.compress(content) if name.endswith('.gz') else content)
  return pathlib.Path(folder)


def write_gowalla(folder, users, items, times, compressed=True):
  """SNAP's tab separated check-ins."""
  lines = [f'{user}\t{stamp}Z\t30.2359091167\t-97.7951395833\t{item}'
           for user, item, stamp in zip(users, items, _stamps(times))]
  return _write(folder, 'loc-gowalla_totalCheckins.txt' + ('.gz' if compressed else ''), lines)


def write_yelp(folder, users, items, times, ratings=None, categories=None):
  """Reviews as JSON lines and, given {item: category text or None}, the businesses."""
  ratings = np.full(len(users), 5.0) if ratings is None else ratings
  lines = [json.dumps({'review_id': f'r{row}', 'user_id': f'u{user}', 'business_id': f'b{item}',
                       'stars': float(rating), 'useful': 0, 'text': 'Nice, "really"\nnice.',
                       'date': stamp.replace('T', ' ')})
           for row, (user, item, rating, stamp)
           in enumerate(zip(users, items, ratings, _stamps(times)))]
  if categories is not None:
    _write(folder, 'yelp_academic_dataset_business.json', [
        json.dumps({'business_id': f'b{item}', 'name': 'x', 'attributes': {'WiFi': 'no'},
                    'categories': names}) for item, names in categories.items()])
  return _write(folder, 'yelp_academic_dataset_review.json', lines)


def write_taobao14(folder, users, items, times, categories=None, behaviours=None):
  """Tianchi's mobile log; categories and behaviours are one per row."""
  categories = np.asarray(items) % 3 if categories is None else categories
  behaviours = np.ones(len(users), int) if behaviours is None else behaviours
  lines = ['user_id,item_id,behavior_type,user_geohash,item_category,time']
  lines += [f'{user},{item},{behaviour},,{category},{stamp[:13].replace("T", " ")}'
            for user, item, behaviour, category, stamp
            in zip(users, items, behaviours, categories, _stamps(times))]
  return _write(folder, 'tianchi_mobile_recommend_train_user.csv', lines)


def write_taobao15(folder, users, items, times, categories=None, actions=None, extension='.csv'):
  """The IJCAI-16 log; actions are one per row, 1 buys and 0 clicks."""
  categories = np.asarray(items) % 3 if categories is None else categories
  actions = np.ones(len(users), int) if actions is None else actions
  lines = ['use_ID,sel_ID,ite_ID,cat_ID,act_ID,time']
  lines += [f'{user},77,{item},{category},{action},{stamp[:10].replace("-", "")}'
            for user, item, category, action, stamp
            in zip(users, items, categories, actions, _stamps(times))]
  return _write(folder, f'ijcai2016_taobao{extension}', lines)


def _netflix_lines(movies, users, items, times, ratings):
  days = np.asarray(times).astype('datetime64[s]').astype('datetime64[D]').astype(str)
  lines = []
  for movie in movies:
    rows = np.flatnonzero(items == movie)
    lines.append(f'{movie}:')
    lines += [f'{users[row]},{int(ratings[row])},{days[row]}' for row in rows]
  return lines


def write_netflix(folder, users, items, times, ratings=None, single_files=False):
  """Four combined files, or the older folder of one file per movie."""
  items = np.asarray(items)
  ratings = np.full(len(users), 5) if ratings is None else ratings
  movies = np.unique(items)
  parts = [[movie] for movie in movies] if single_files else np.array_split(movies, 4)
  for number, part in enumerate(parts, start=1):
    name = (f'training_set/mv_{part[0]:07d}.txt' if single_files
            else f'combined_data_{number}.txt')
    _write(folder, name, _netflix_lines(part, users, items, times, ratings))
  return pathlib.Path(folder)


def write_ml10m(folder, users, items, times, ratings=None, genres=None):
  """ratings.dat and, given {item: 'Genre|Genre'}, movies.dat."""
  ratings = np.full(len(users), 3.5) if ratings is None else ratings
  if genres is not None:
    _write(folder, 'movies.dat', [f'{item}::Amélie: "A" Film (2001)::{names}'
                                  for item, names in genres.items()])
  return _write(folder, 'ratings.dat', [f'{user}::{item}::{rating:g}::{time}' for
                                        user, item, rating, time
                                        in zip(users, items, ratings, times)])


def write_csv(path, users, items, times, categories=None, ratings=None, newline='\n', mark=''):
  """A log of the user's own with the usual column names; `.gz` compresses it."""
  extra = {'category': categories, 'rating': ratings}
  extra = {name: values for name, values in extra.items() if values is not None}
  lines = [mark + ','.join(['user', 'item', 'timestamp', *extra])]
  lines += [','.join(map(str, row)) for row in zip(users, items, times, *extra.values())]
  path = pathlib.Path(path)
  _write(path.parent, path.name, lines, newline)
  return path
