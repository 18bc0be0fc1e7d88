"""Counter-based randomness: every draw is a function of (seed, block, epoch, step, place)."""
import zlib

import numpy as np
import tensorflow as tf


def host_generator(*counter: int, name: str = '') -> np.random.Generator:
  """A NumPy generator for a place in the run, e.g. `host_generator(seed, block, epoch)`."""
  return np.random.default_rng([*counter, zlib.crc32(name.encode())])


def host_seed(*counter: int, name: str = '') -> np.ndarray:
  """[2] int32 seed for TensorFlow's stateless operations, for a place in the run."""
  return host_generator(*counter, name=name).integers(
      np.iinfo(np.int32).max, size=2, dtype=np.int32)


class Seeds:
  """Hands out independent seeds below one seed, in the order of the calls.

  The order is fixed when a `tf.function` is traced, so the same code gives the same draws.
  """

  def __init__(self, seed: tf.Tensor):
    self._seed = seed
    self._count = 0

  def next(self) -> tf.Tensor:
    """[2] int32, a seed that no other call has been given."""
    self._count += 1
    return tf.random.experimental.stateless_fold_in(self._seed, self._count)

  def child(self, name: str) -> 'Seeds':
    """A stream of its own below the same seed: drawing from it moves no other stream."""
    return Seeds(tf.random.experimental.stateless_fold_in(
        self._seed, zlib.crc32(name.encode()) >> 2 | 1 << 30))
