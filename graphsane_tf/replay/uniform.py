"""Replay of old interactions, each equally likely."""
from graphsane_tf.replay.base import ReplayPolicy


class UniformReplay(ReplayPolicy):
  """Every old row has the same chance."""

  def choose(self, users, first, count, rng):
    return first + rng.choice(len(users) - first, count, replace=False)
