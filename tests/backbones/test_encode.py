"""Each backbone against dense NumPy matrices, and one view against the other."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import backbones
from graphsane_tf.backbones.base import dropout
from graphsane_tf.graph import csr
from graphsane_tf.random import Seeds
from graphsane_tf.testing import backbones as suite
from graphsane_tf.testing.backbones import ITEMS, USERS, seeds, small


def _mean_matrix(table: csr.Csr) -> np.ndarray:
  dense = table.matrix().toarray()
  return dense / np.maximum(dense.sum(axis=1, keepdims=True), 1)


def _unit(rows):
  return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


def _mgccf(b, graph, depth=2):
  mean = {name: _mean_matrix(relation.table) for name, relation in graph.relations.items()}
  e = {'u': b.user_table.numpy(), 'i': b.item_table.numpy()}
  w = {name: value.numpy() for name, value in b.named_variables().items()}
  def merge(a, c, weight):
    return np.tanh(np.concatenate([a, c], axis=1) @ weight)
  def layer(tower, own, other, level):
    """Layer `level` at nodes `own` within a tower, whose weights alternate between users and items."""
    if not level:
      return e[own]
    name = 'outer' if level == depth else 'inner' if level == 1 else f'inner{level}'
    return merge(e[own], mean[own + other] @ layer(tower, other, own, level - 1), w[f'{tower}_{name}'])
  result = []
  for own, other, tower, opposite in (('u', 'i', 'user', 'item'), ('i', 'u', 'item', 'user')):
    near = merge(e[own], mean[own + own] @ e[own], w[f'{tower}_knn'])
    below = [layer(tower if (depth - level) % 2 == 0 else opposite, own, other, level) for level in range(depth)]
    result.append([*below, np.concatenate([np.tanh(layer(tower, own, other, depth)), np.tanh(near), e[own]], axis=1)])
  return result


def _lightgcn(b, graph):
  dense = graph.edges.matrix().toarray()
  full = np.block([[np.zeros((USERS, USERS)), dense], [dense.T, np.zeros((ITEMS, ITEMS))]])
  scale = 1 / np.sqrt(np.maximum(full.sum(axis=1), 1))
  normal = scale[:, None] * full * scale
  layers = [np.concatenate([b.user_table.numpy(), b.item_table.numpy()])]
  for _ in range(3):
    layers.append(normal @ layers[-1])
  layers.append(np.mean(layers, axis=0))
  return [[layer[:USERS] for layer in layers], [layer[USERS:] for layer in layers]]


def _pinsage(b, graph):
  w = {name: value.numpy() for name, value in b.named_variables().items()}
  def dense(name, rows):
    return np.maximum(rows @ w[name] + w[f'{name}_bias'], 0)
  layers = {'u': [b.user_table.numpy()], 'i': [b.item_table.numpy()]}
  for number in (1, 2):
    new = {}
    for own, other in ('ui', 'iu'):
      near = _mean_matrix(graph.relations[own + other].table) @ dense(
          f'{own}_neighbour{number}', layers[other][-1])
      both = np.concatenate([layers[own][-1], near], axis=1)
      new[own] = _unit(dense(f'{own}_merge{number}', both))
    for own in 'ui':
      layers[own].append(new[own])
  return [layers[own] + [np.sqrt(10.) * _unit(dense(f'{own}_hidden', layers[own][-1])
                                              @ w[f'{own}_output'])] for own in 'ui']


_ORACLES = {'mgccf': _mgccf, 'lightgcn': _lightgcn, 'pinsage': _pinsage}


@pytest.mark.parametrize('name', list(backbones.REGISTRY))
class TestEveryBackbone(suite.Suite):

  def test_whole_view_equals_dense_matrices(self, name):
    backbone, graph = small(name)
    found = backbone.encode(graph.whole(), None, None, seeds(), training=False)
    for layers, expected in zip((found.user, found.item), _ORACLES[name](backbone, graph)):
      assert len(layers) == len(expected) == backbone.num_layers
      for layer, value in zip(layers, expected):
        np.testing.assert_allclose(layer, value, rtol=1e-4, atol=1e-5)
    assert found.user[-1].shape[1] == backbone.representation_dim

  def test_sampling_all_neighbours_equals_the_whole_view(self, name):
    backbone, graph = small(name, fanout=(10, 10))
    whole = backbone.encode(graph.whole(), None, None, seeds(), training=False)
    users, items = tf.constant([5, 2, 0]), tf.constant([4, 1])
    found = backbone.encode(graph.sampled(seeds()), users, items, seeds(), training=False)
    for layer, expected in zip(found.user + found.item, whole.user + whole.item):
      nodes = users if expected.shape[0] == USERS else items
      np.testing.assert_allclose(layer, tf.gather(expected, nodes), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('depth', [1, 3])
def test_mgccf_with_other_numbers_of_layers(depth):
  backbone, graph = small('mgccf', mgccf_layers=depth, fanout=(10, 10))
  asked = tf.constant([5, 2, 0]), tf.constant([4, 1])
  for view, nodes in ((graph.whole(), (None, None)), (graph.sampled(seeds()), asked)):
    found = backbone.encode(view, *nodes, seeds(), training=False)
    for layers, expected, rows in zip((found.user, found.item), _mgccf(backbone, graph, depth), nodes):
      assert len(layers) == len(expected) == backbone.num_layers == depth + 1
      for layer, value in zip(layers, expected):
        np.testing.assert_allclose(layer, value if rows is None else value[rows], rtol=1e-4, atol=1e-5)


def test_pinsage_scores_stay_within_its_scale():
  backbone, graph = small('pinsage', pinsage_scale=6.)
  users, items = backbone.representer(graph)()
  assert np.abs(users.numpy() @ items.numpy().T).max() <= 6. + 1e-4


def test_dropout_keeps_the_mean_and_drops_the_stated_share():
  values = tf.ones([400, 30])
  found, scale = dropout(values, .2, tf.constant([1, 2]))
  found = found.numpy()
  rate = 51 / 256  # Of 256 levels, the nearest to .2.
  assert scale == pytest.approx(1 / (1 - rate), rel=1e-6)
  assert set(np.unique(found)) == {0., 1.}
  share = 1 - np.mean(found)
  assert abs(share - rate) < 4 * np.sqrt(rate * (1 - rate) / found.size)
  other = dropout(values, .2, tf.constant([1, 3]))[0].numpy()
  agree = np.mean((found > 0) == (other > 0))
  assert abs(agree - (rate ** 2 + (1 - rate) ** 2)) < .03
  # Neither a value's place in its word nor its row tells anything.
  assert np.all(np.abs(np.mean(found > 0, axis=0) - (1 - rate)) < 5 * np.sqrt(.16 / 400))


def test_mgccf_with_dropout_has_the_same_mean():
  """With small values tanh is linear, so the mean over masks is the value without dropout."""
  backbone, graph = small('mgccf', dropout=.5)
  for table in (backbone.user_table, backbone.item_table):
    table.assign(table * 1e-3)

  @tf.function
  def final(seed):
    encoding = backbone.encode(graph.whole(), None, None, Seeds(seed), training=True)
    return encoding.user[-1], encoding.item[-1]

  plain = backbone.representer(graph)()
  draws = [[part.numpy() for part in final(tf.constant([6, number]))] for number in range(800)]
  for side, parts in enumerate(zip(*draws)):
    parts = np.stack(parts).astype(np.float64)
    error = parts.std(axis=0) / np.sqrt(len(parts))
    assert error.max() > 0.
    gap = np.abs(parts.mean(axis=0) - plain[side].numpy())
    assert np.all(gap <= 5 * error + 1e-8)
