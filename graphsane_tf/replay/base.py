"""What a replay policy is."""
import abc

import numpy as np

from graphsane_tf.random import host_generator


class ReplayPolicy(abc.ABC):
  """Chooses old rows that a block trains on again, once, before its first epoch.

  To add one: subclass, implement `choose`, and register it (`graphsane_tf.registry`); docs/extending.md
  has a whole example. Rows are numbers in the log below the block's first row; the pairs trained on are
  those rows' own users and items.
  """

  def __init__(self, config, seed):
    """Takes the whole configuration and (seed, block)."""
    self.config = config
    self.options = config.replay_options
    self.seed = seed

  def rows(self, users: np.ndarray) -> np.ndarray:
    """[n] int64 numbers of the rows that a block replays, ascending.

    Args:
      users: [num_history_rows] user of each row before the block.
    """
    total = len(users)
    first = total - int(round(self.options.window * total))
    count = min(int(round(self.options.ratio * total)), total - first)
    chosen = self.choose(users, first, count,
                         host_generator(*self.seed, name='replay'))
    return np.sort(np.asarray(chosen, np.int64))

  @abc.abstractmethod
  def choose(self, users: np.ndarray, first: int, count: int,
             rng: np.random.Generator) -> np.ndarray:
    """Chooses `count` different rows among first, ..., len(users) - 1.

    Args:
      users: [num_history_rows] user of each row before the block.
      first: the first row that may be replayed.
      count: how many; never more than there are.
      rng: seeded by the place in the run.
    """


class NoReplay(ReplayPolicy):
  """The block's own rows only."""

  def choose(self, users, first, count, rng):
    return np.zeros(0, np.int64)


def weighted_rows(weight: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
  """[count] different positions, drawn one after another in proportion to [n] positive weights.

  An exponential clock of rate w rings first with probability w over the sum of all; so the first
  `count` to ring are such a draw without replacement.
  """
  clock = rng.exponential(size=len(weight)) / weight
  return np.argpartition(clock, count - 1)[:count] if count else np.zeros(0, np.int64)
