"""Generated logs of the shapes of known data sets: sizes and skew are theirs, content is not."""
import dataclasses
from typing import Dict

import numpy as np
import pandas as pd

from graphsane_tf.data.interactions import Interactions

# Rows that a user takes from their own group of items, and the number of groups.
_OWN_SHARE = .5
_GROUPS = 20


@dataclasses.dataclass(frozen=True)
class Shape:
  """Size of a log."""
  name: str
  num_users: int
  num_items: int
  num_edges: int


SHAPES: Dict[str, Shape] = {shape.name: shape for shape in (
    Shape('gowalla', 6_000, 5_600, 281_000),
    Shape('taobao14', 8_800, 39_000, 749_000),
    Shape('netflix', 64_000, 10_000, 12_400_000),
    # Of which the base block, where LightGCN is timed, has 810,000.
    Shape('lightgcn', 30_000, 41_000, 1_350_000))}


def generate(shape: Shape, seed: int = 0) -> Interactions:
  """A log of a shape: unique pairs in random order, with skewed activity and popularity."""
  rng = np.random.default_rng([seed, shape.num_edges])
  activity = np.cumsum(rng.lognormal(sigma=.8, size=shape.num_users))
  popularity = np.cumsum(1. / (np.arange(shape.num_items) + .02 * shape.num_items) ** .8)
  # Every user and every item occurs, so that the shape is the one asked for.
  longer = max(shape.num_users, shape.num_items)
  all_ids = _keys(np.arange(longer) % shape.num_users, np.arange(longer) % shape.num_items, shape)
  keys = all_ids
  while len(keys) < shape.num_edges:
    # Many of the last missing ones are drawn in vain: frequent pairs are there already.
    count = 2 * (shape.num_edges - len(keys))
    user = np.searchsorted(activity, rng.random(count) * activity[-1])
    item = np.searchsorted(popularity, rng.random(count) * popularity[-1])
    own = np.minimum(item // _GROUPS * _GROUPS + user % _GROUPS, shape.num_items - 1)
    item = np.where(rng.random(count) < _OWN_SHARE, own, item)
    keys = np.sort(np.concatenate([keys, _keys(user, item, shape)]))
    # np.unique may hash large arrays, which takes several times as long as sorting.
    keys = keys[np.append(True, keys[1:] > keys[:-1])]
  others = rng.permutation(np.setdiff1d(keys, all_ids, assume_unique=True))
  keys = np.concatenate([all_ids, others[:shape.num_edges - len(all_ids)]])
  rng.shuffle(keys)
  user, item = (pd.factorize(part)[0].astype(np.int32)
                for part in (keys // shape.num_items, keys % shape.num_items))
  return Interactions(
      user, item, np.arange(len(keys), dtype=np.int64),
      *(np.arange(number).astype(str).astype(object) for number in (
          shape.num_users, shape.num_items)),
      name=shape.name, fingerprint=f'{shape}-{seed}')


def _keys(user: np.ndarray, item: np.ndarray, shape: Shape) -> np.ndarray:
  return user.astype(np.int64) * shape.num_items + item
