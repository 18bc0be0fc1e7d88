"""The small drift log as files by day, and a store that trains in seconds."""
import pathlib

import numpy as np
import pandas as pd

from graphsane_tf.data import drift
from tests import logs

# Rows of the history and of the days after it; the second day is too small to hold anything out.
CUTS = {'history': (0, 6000), 'monday': (6000, 7200), 'tuesday': (7200, 7260), 'wednesday': (7260, 8400)}


def frame():
  log = drift.generate('small', 0)
  return pd.DataFrame({'user': log.user_ids[log.user], 'item': log.item_ids[log.item], 'timestamp': log.time,
                       'category': log.category_names[log.item_category[log.item]]})


def write_days(folder: pathlib.Path):
  """Files by name: those of CUTS, 'whole' (up to Monday), and 'popular', a day on which popularity is hard to beat."""
  rows = frame()
  parts = {name: rows[first:stop] for name, (first, stop) in CUTS.items()}
  parts['whole'] = rows[:CUTS['monday'][1]]
  parts['popular'] = popular_day(parts['history'])
  paths = {}
  for name, part in parts.items():
    paths[name] = folder / f'{name}.csv'
    part.to_csv(paths[name], index=False)
  return paths


def popular_day(history: pd.DataFrame) -> pd.DataFrame:
  """Each user takes the most popular items of the last week that they have not taken."""
  last = history[history.timestamp > history.timestamp.max() - 7 * 86400]
  order = last.item.value_counts(sort=True).sort_index(kind='stable').sort_values(
      ascending=False, kind='stable').index.to_numpy()
  taken = history.groupby('user').item.agg(set)
  rows = []
  for user, items in taken.items():
    # They are taken in turns, so that the newest rows are everybody's last ones.
    for turn, item in enumerate([item for item in order if item not in items][:5][::-1]):
      rows.append((user, item, history.timestamp.max() + 60 + turn))
  day = pd.DataFrame(rows, columns=['user', 'item', 'timestamp'])
  category = history.drop_duplicates('item').set_index('item').category
  return day.assign(category=category[day.item].to_numpy()).sort_values('timestamp', kind='stable')


def config(**changes):
  return logs.tiny_config(**{'backbone': 'lightgcn', 'train__batch_size': 512, 'model__embedding_dim': 4, **changes})


# The same as flags.
FLAGS = ('--backbone=lightgcn', '--batch_size=512', '--embedding_dim=4', '--base_epochs=2', '--epochs=2')


def weights(store, number):
  """The variables of a version by name."""
  manifest = store.versions.check(number)
  model = store.model(manifest, store.context_of(manifest, store.log()))
  return {name: np.array(variable) for name, variable in model.backbone.named_variables().items()}
