"""Small logs, contexts and configurations."""
import numpy as np
import pandas as pd

from graphsane_tf.config import default_config
from graphsane_tf.blocks.stream import BlockStream
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.context import BlockContext


def interactions_of(user, item, category=None) -> Interactions:
  """A log with the given rows, in time order, renumbered by first appearance."""
  user, user_ids = pd.factorize(np.asarray(user))
  item, item_ids = pd.factorize(np.asarray(item))
  names = lambda ids, letter: np.array([f'{letter}{k}' for k in ids], object)
  return Interactions(
      user.astype(np.int32), item.astype(np.int32), np.arange(len(user), dtype=np.int64),
      names(user_ids, 'u'), names(item_ids, 'i'),
      None if category is None else np.asarray(category, np.int32)[item_ids],
      None if category is None else np.array([f'c{k}' for k in range(max(category) + 1)], object),
      name='test', fingerprint='test')


def random_log(rows=600, users=30, items=40, seed=0, categories=4) -> Interactions:
  """Unique random pairs with categories."""
  rng = np.random.default_rng(seed)
  keys = rng.permutation(users * items)[:rows]
  return interactions_of(keys // items, keys % items, rng.integers(categories, size=items))


def growing_log() -> Interactions:
  """With two incremental blocks: blocks of 120 rows after a base of 360; the later ones bring new users and items."""
  rng = np.random.default_rng(5)
  user = np.concatenate([rng.integers(0, 24, 3000), rng.integers(0, 30, 3000)])
  item = np.concatenate([rng.integers(0, 30, 3000), rng.integers(0, 36, 3000)])
  def distinct(part, count, known):
    keys = [k for k in dict.fromkeys((user[part] * 100 + item[part]).tolist()) if k not in known]
    return keys[:count]
  first = distinct(slice(0, 3000), 360, set())
  keys = np.array(first + distinct(slice(3000, None), 240, set(first)))
  return interactions_of(keys // 100, keys % 100)


def context_of(log: Interactions, index: int, dim: int = 0) -> BlockContext:
  """The context of block `index` of a log, for representations of size `dim`."""
  stream = BlockStream(log)
  return contexts.cut(log, stream.block(index), stream.block(index - 1) if index else None,
                      representation_dim=dim)


def tiny_config(**changes):
  """A configuration that trains in seconds; `changes` are dotted fields with __ for dots."""
  config = default_config()
  config.model.embedding_dim = 8
  config.model.num_knn = 5
  config.train.batch_size = 64
  config.train.base_epochs = 2
  config.train.epochs = 2
  config.sane.size = 10
  config.clustering.num_clusters = 3
  config.update_from_flattened_dict(
      {name.replace('__', '.'): value for name, value in changes.items()})
  return config
