"""Small blocks with every kind of user, for tests of samplers."""
import dataclasses

import numpy as np
import tensorflow as tf

from graphsane_tf import config as config_lib
from graphsane_tf.blocks.stream import Block
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.random import Seeds
from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.context import BlockContext

DIM = 8


@dataclasses.dataclass(frozen=True)
class Problem:
  """A block with a model's representations.

  Attributes:
    context: block 1.
    config: resolved configuration.
    user_vectors, item_vectors: [num_users, DIM], [num_items, DIM] float32 tensors.
    cases: kinds of users by name: 'usual', 'new', 'one_item', 'nearly_all'.
  """
  context: BlockContext
  config: object
  user_vectors: tf.Tensor
  item_vectors: tf.Tensor
  cases: dict

  def pair(self, case: str):
    """The user of a case and one of their items in the block."""
    user = self.cases[case]
    table = self.context.positives
    return user, int(table.indices[table.indptr[user]])

  def scores(self, user: int) -> np.ndarray:
    """[num_items]."""
    return tf.linalg.matvec(self.item_vectors, self.user_vectors[user]).numpy()

  def sampler(self, kind):
    return kind(self.config, self.context, (0, 1))

  def refreshed(self, kind, epoch: int = 0):
    """A sampler that has seen the model."""
    sampler = self.sampler(kind)
    sampler.refresh(self.user_vectors, self.item_vectors, epoch)
    return sampler


def interactions(user, item, num_users, num_items, categories=4) -> Interactions:
  """A log without times or ids that matter."""
  return Interactions(
      user=np.asarray(user, np.int32), item=np.asarray(item, np.int32),
      time=np.arange(len(user)), user_ids=np.array([f'u{k}' for k in range(num_users)], object),
      item_ids=np.array([f'i{k}' for k in range(num_items)], object),
      item_category=(np.arange(num_items) % categories).astype(np.int32),
      category_names=np.array([f'c{k}' for k in range(categories)], object))


def small(num_items: int = 60, num_users: int = 20, seed: int = 0, everything: bool = False,
          **changes) -> Problem:
  """A block in which user 0 is new, 1 has one item, 2 all but one, 3 and more a few.

  Args:
    num_items: size of the catalogue, the last tenth of it new.
    num_users: users, of whom one more is new.
    seed: of the log and the vectors.
    everything: user 3 takes every item in the block.
    **changes: configuration fields, with __ for the dots.
  """
  rng = np.random.default_rng(seed)
  few = max(1, min(6, num_items // 3))
  old_items = num_items - num_items // 10
  pairs = []
  for user in range(num_users):
    pairs.append((user, rng.permutation(old_items)[:few]))
  new = num_users
  block = [(new, rng.permutation(num_items)[:few]), (1, rng.permutation(num_items)[:1]),
           (2, rng.permutation(num_items)[:num_items - 1])]
  block += [(user, rng.permutation(num_items)[:few]) for user in range(3, num_users)]
  if everything:
    block[3] = (3, np.arange(num_items))
  # The last item occurs, so that the catalogue has its full size.
  block[0][1][0] = num_items - 1
  block[0] = (new, np.unique(block[0][1]))
  def flat(rows):
    return (np.concatenate([np.full(len(items), user) for user, items in rows]),
            np.concatenate([items for _, items in rows]))
  before, now = flat(pairs), flat(block)
  start, stop = len(before[0]), len(before[0]) + len(now[0])
  log = interactions(np.concatenate([before[0], now[0]]), np.concatenate([before[1], now[1]]),
                     num_users + 1, num_items)
  later = slice(stop, stop)
  context = contexts.cut(log, Block(1, slice(start, stop), later, later, num_users + 1, num_items),
                         Block(0, slice(0, start), later, later, num_users, old_items),
                         representation_dim=DIM)
  config = config_lib.default_config()
  # Steep enough for a test to see that ranks are not uniform.
  config.pns.probability = .05
  config.update_from_flattened_dict({name.replace('__', '.'): v for name, v in changes.items()})
  vectors = [tf.constant(rng.normal(size=(n, DIM)).astype(np.float32))
             for n in (num_users + 1, num_items)]
  return Problem(context, config_lib.resolved(config), vectors[0], vectors[1],
                 cases={'usual': 5, 'new': new, 'one_item': 1, 'nearly_all': 2})


def sample(sampler, users, positives, user_vectors, item_vectors, seed):
  """The negatives that a step would train on: items [B, n] and weights [B, n]."""
  users, positives = tf.constant(users, tf.int32), tf.constant(positives, tf.int32)
  seeds = Seeds(tf.constant([seed, 1]))
  draw = sampler.draw(users, positives, seeds)
  if not sampler.chooses:
    return draw.items, draw.weight
  rows = tf.gather(user_vectors, users)
  scores = tf.linalg.matvec(tf.gather(item_vectors, draw.items), rows)
  positive = tf.reduce_sum(rows * tf.gather(item_vectors, positives), axis=1)
  choice = sampler.choose(positive, scores, draw, seeds)
  return tf.gather(draw.items, choice.columns, batch_dims=1), choice.weight
