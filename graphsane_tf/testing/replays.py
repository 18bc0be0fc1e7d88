"""What must hold for every replay policy; each check raises AssertionError where it does not."""
from typing import Optional

import numpy as np

from graphsane_tf import replay
from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.blocks.stream import Block
from graphsane_tf.config import default_config, resolved
from graphsane_tf.data.interactions import Interactions

# Rows before the block.
HISTORY = 300


def context_with(replayed: Optional[np.ndarray] = None) -> BlockContext:
  """300 old rows: user 0 has 200 of them, users 1 to 10 have ten each; then 20 rows of a block."""
  rng = np.random.default_rng(0)
  user = np.concatenate([np.zeros(200, np.int32), np.repeat(np.arange(1, 11, dtype=np.int32), 10)])
  item = np.concatenate([np.arange(200), np.tile(np.arange(10), 10)]).astype(np.int32)
  order = rng.permutation(HISTORY)
  user = np.concatenate([user[order], np.full(20, 11, np.int32)])
  item = np.concatenate([item[order], np.arange(20, dtype=np.int32)])
  log = Interactions(user, item, np.arange(len(user)), np.arange(12).astype(object),
                     np.arange(200).astype(object))
  return contexts.cut(log, Block(1, slice(HISTORY, 320), slice(0, 0), slice(0, 0), 12, 200),
                      Block(0, slice(0, HISTORY), slice(0, 0), slice(0, 0), 11, 200), replayed)


def users() -> np.ndarray:
  """[300] users of the old rows."""
  return context_with().log_users[:HISTORY]


def policy(name: str, seed: int = 0, **options):
  """A policy with fields of `config.replay_options`."""
  c = default_config()
  c.update_from_flattened_dict({f'replay_options.{k}': v for k, v in options.items()})
  return replay.REGISTRY[name](resolved(c), (seed, 1))


class Suite:
  """What must hold for every replay policy; a subclass is parametrised with `name`."""

  def test_draws_its_share_of_different_old_rows(self, name):
    rows = policy(name, ratio=.2).rows(users())
    assert len(rows) == 60 == len(set(rows.tolist()))
    assert rows.min() >= 0 and rows.max() < HISTORY

  def test_same_seed_same_rows(self, name):
    np.testing.assert_array_equal(*(policy(name, ratio=.2).rows(users()) for _ in range(2)))

  def test_window_keeps_to_the_newest_rows(self, name):
    rows = policy(name, ratio=.2, window=.25).rows(users())
    assert len(rows) == 60 and rows.min() >= 225 and rows.max() < HISTORY
    np.testing.assert_array_equal(policy(name, ratio=.9, window=.25).rows(users()), np.arange(225, HISTORY))

  def test_nothing_and_everything(self, name):
    assert len(policy(name, ratio=0.).rows(users())) == 0
    np.testing.assert_array_equal(policy(name, ratio=1.).rows(users()), np.arange(HISTORY))

  def test_no_history(self, name):
    assert len(policy(name, ratio=.5).rows(users()[:0])) == 0

  def test_replayed_pairs_are_true_edges_and_never_negatives(self, name):
    own = len(context_with().users)
    context = context_with(policy(name, ratio=.2).rows(users()))
    edges = set(zip(context.log_users.tolist(), context.log_items.tolist()))
    pairs = list(zip(context.users.tolist(), context.items.tolist()))
    assert len(pairs) == own + 60 and set(pairs) <= edges
    assert context.positives.matrix().sum() == own + 60
    assert context.block.matrix().sum() == own
