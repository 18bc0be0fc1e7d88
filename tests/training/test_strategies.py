"""A step's parts are those of the whole step."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import backbones
from graphsane_tf.negatives.base import Draw
from graphsane_tf.random import Seeds
from graphsane_tf.testing.backbones import small
from graphsane_tf.training import strategies

_SEED = tf.constant([3, 4])


class _Replica(strategies.Replicas):
  """One of some replicas; what it brings together is its own part."""

  def __init__(self, number, count):
    super().__init__(None)
    self._number_of = number, count

  @property
  def _place(self):
    return self._number_of

  def total(self, values):
    return values


@pytest.mark.parametrize('name', list(backbones.REGISTRY))
def test_parts_of_nodes_are_those_of_all(name):
  """Neighbours, dropout and sums of a part are those of the same nodes in the whole batch."""
  backbone, graph = small(name, dropout=.5)
  users, items = tf.constant([5, 0, 3, 2, 1]), tf.constant([1, 4, 0, 2])
  alone = strategies.Alone()
  whole = alone.encode(backbone, alone.view(graph, Seeds(_SEED)), users, items, lambda: (7, 9), Seeds(_SEED + 1))
  parts = []
  for number in range(3):
    replica = _Replica(number, 3)
    parts.append(replica.encode(
        backbone, replica.view(graph, Seeds(_SEED)), users, items, lambda: (7, 9), Seeds(_SEED + 1)))
  for kind in ('user', 'item'):
    layers = [getattr(part, kind) for part in parts]
    expected = getattr(whole, kind)
    assert all(len(part) == len(expected) for part in layers)
    np.testing.assert_allclose(layers[0][0], expected[0], rtol=1e-6)
    for layer in range(1, len(expected)):
      np.testing.assert_allclose(sum(part[layer] for part in layers), expected[layer], rtol=1e-5, atol=1e-6)
      np.testing.assert_array_equal(layers[0][layer - len(expected)], layers[0][layer])


@pytest.mark.parametrize('count', [1, 2, 3])
def test_rows_are_split_among_replicas(count):
  draw = Draw(tf.reshape(tf.range(14), [7, 2]), tf.ones([7, 2]))
  owns = [_Replica(number, count).own(draw) for number in range(count)]
  np.testing.assert_array_equal(np.concatenate([own.weight for own in owns]), draw.weight)
  assert all(own.log_probability is None for own in owns)


def test_shares_add_up():
  losses = tf.constant([1., 2., 4.])
  replicas = [_Replica(number, 2) for number in range(2)]
  total = sum(replica.mean(replica.own(losses), 3.) for replica in replicas)
  np.testing.assert_allclose(total, strategies.Alone().mean(losses, 3.))
  shares = [replica.part_of({'kl': tf.constant(3.)})['kl'] for replica in replicas]
  np.testing.assert_allclose(sum(shares), 3.)
