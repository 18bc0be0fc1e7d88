"""A training encode, dropout on, against NumPy with the masks that the seeds give."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import backbones
from graphsane_tf.config import default_config
from graphsane_tf.graph import csr, views
from graphsane_tf.random import Seeds
from tests import objective

_USERS, _ITEMS = 7, 6
_PAIRS = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 3), (3, 3), (3, 4), (4, 4), (4, 5), (5, 5),
          (5, 0), (6, 2), (6, 1), (6, 5)]
_SEED = [4, 5]


def _make(name, size=6, **changes):
  """A backbone with weights that every part of it feels, its graph, and its weights."""
  kind = backbones.REGISTRY[name]
  config = default_config().model
  # More neighbours than any node has: nothing is cut off or left to chance.
  config.update({'embedding_dim': size, 'num_knn': 20, 'fanout': (20, 20), **changes})
  backbone = kind(_USERS, _ITEMS, config, (0,))
  rng = np.random.default_rng(2)
  weights = {}
  for key, variable in backbone.named_variables().items():
    weights[key] = (rng.normal(size=variable.shape) * .7).astype(np.float32).astype(np.float64)
    variable.assign(weights[key])
  edges = csr.from_pairs(*np.array(_PAIRS).T, _USERS, _ITEMS)
  return backbone, views.Graph(edges, 20 if kind.uses_knn else 0), weights


def _expected(name, weights, nodes, rate, whole):
  model = objective.MODELS[name](weights, objective.Graph(_PAIRS, _USERS, _ITEMS), rate,
                                 objective.Draws(_SEED))
  return model.encode(nodes, whole)


def _check(encoding, expected):
  for layers, values in ((encoding.user, expected['u']), (encoding.item, expected['i'])):
    assert len(layers) == len(values)
    for layer, value in zip(layers, values):
      np.testing.assert_allclose(layer, value, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize('propagation', ['whole', 'sampled'])
@pytest.mark.parametrize('rate', [.2, .5])
@pytest.mark.parametrize('name', list(objective.MODELS))
def test_training_encode_equals_numpy(name, rate, propagation):
  backbone, graph, weights = _make(name, dropout=rate)
  nodes = {'u': np.array([5, 2, 0, 6]), 'i': np.array([4, 1, 3])}
  whole = propagation == 'whole'
  # The view draws from a stream of its own, so that the masks are the first draws of the other.
  view = graph.whole() if whole else graph.sampled(Seeds(tf.constant([8, 9])))
  found = backbone.encode(view, tf.constant(nodes['u'], tf.int32), tf.constant(nodes['i'], tf.int32),
                          Seeds(tf.constant(_SEED)), training=True)
  _check(found, _expected(name, weights, nodes, rate, whole))


@pytest.mark.parametrize('name', list(objective.MODELS))
def test_every_node_without_dropout_equals_numpy(name):
  """Nothing is dropped with a rate of 0, nor outside of training."""
  everyone = {'u': np.arange(_USERS), 'i': np.arange(_ITEMS)}
  for rate, training in ((0., True), (.5, False)):
    backbone, graph, weights = _make(name, size=5, dropout=rate)
    found = backbone.encode(graph.whole(), None, None, Seeds(tf.constant(_SEED)), training=training)
    _check(found, _expected(name, weights, everyone, 0., True))
