"""Replay that prefers users with few interactions."""
import numpy as np

from graphsane_tf.replay.base import ReplayPolicy, weighted_rows


class InverseDegreeReplay(ReplayPolicy):
  """A row is drawn in proportion to (1 / its user's degree) ^ exponent.

  The degree counts all of the user's rows before the block, whatever the window.
  """

  def choose(self, users, first, count, rng):
    degree = np.bincount(users, minlength=1)[users[first:]]
    return first + weighted_rows(degree ** -float(self.options.exponent), count, rng)
