"""A step's parts are those of the whole step."""
import subprocess
import sys

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


_MIRRORED = '''
import graphsane_tf
from graphsane_tf import workers
import numpy as np
import tensorflow as tf
fellows = workers.start('mirrored', devices=3)
from graphsane_tf.training import optimizers, strategies

def trained(split, share):
  table, old = tf.Variable(tf.reshape(tf.range(12.), [6, 2])), {'table': tf.ones([4, 2])}
  adam = optimizers.adam(.1, [table])
  update = optimizers.NewRows(optimizers.Update(adam, [table]), old, {'table': table})
  def step():
    gradients = split.total([share * tf.reshape(tf.range(12.), [6, 2])])
    update.apply_gradients([(gradients[0], table)])
    return {'size': tf.norm(gradients[0])}
  run = tf.function(lambda: split.run(step), autograph=False)
  for _ in range(3):
    size = run()['size']
  return table, float(size)

expected, size = trained(strategies.Alone(), 1.)
with fellows.scope():
  table, shared = trained(strategies.of(fellows.strategy), 1 / 3)
  vector = tf.Variable(tf.zeros([4]))
np.testing.assert_allclose(shared, size, rtol=1e-6)
copies = fellows.strategy.experimental_local_results(table)
assert len(copies) == 3 and fellows.name == 'mirrored, 3 replicas on 1 worker'
for copy in copies:
  np.testing.assert_allclose(copy.numpy(), expected.numpy(), rtol=1e-6)
vector[1:3].assign([5., 6.])
fellows.settle([vector])
for copy in fellows.strategy.experimental_local_results(vector):
  assert copy.numpy().tolist() == [0., 5., 6., 0.]
print('fine')
'''


@pytest.mark.slow
def test_updates_and_assignments_reach_every_replica():
  done = subprocess.run([sys.executable, '-c', _MIRRORED], capture_output=True, text=True, check=False)
  assert done.stdout.endswith('fine\n'), done.stderr
