"""What must hold for every backbone; each check raises AssertionError where it does not."""
import json
import pathlib
from typing import List, Tuple

import numpy as np
import tensorflow as tf

from graphsane_tf import backbones
from graphsane_tf.backbones.base import Backbone
from graphsane_tf.config import default_config
from graphsane_tf.graph import csr, views
from graphsane_tf.random import Seeds
from graphsane_tf.serving.backbone import Trainable

USERS, ITEMS = 7, 6


def seeds() -> Seeds:
  return Seeds(tf.constant([4, 5]))


def config_of(**changes):
  """`config.model` for a small graph."""
  model = default_config().model
  model.embedding_dim = 4
  model.num_knn = 3
  model.update(changes)
  return model


def small(name: str, **changes) -> Tuple[Backbone, views.Graph]:
  """A backbone whose weights are not tiny, and a graph with a user and an item without neighbours."""
  kind = backbones.REGISTRY[name]
  config = config_of(**changes)
  backbone = kind(USERS, ITEMS, config, (0,))
  rng = np.random.default_rng(2)
  for variable in backbone.trainable_variables:
    variable.assign(rng.normal(size=variable.shape) * .7)
  dense = np.random.default_rng(1).random((USERS, ITEMS)) < .4
  dense[2] = False
  dense[:, 4] = False
  rows, columns = np.nonzero(dense)
  edges = csr.from_pairs(rows, columns, USERS, ITEMS)
  return backbone, views.Graph(edges, config.num_knn if kind.uses_knn else 0)


def check_shapes(name: str) -> None:
  """`num_layers` finite layers of the nodes asked for, the last of size `size_of`; all edges or drawn ones."""
  backbone, graph = small(name)
  size = type(backbone).size_of(backbone.config)
  users, items = tf.constant([5, 2, 0]), tf.constant([4, 1])
  for view, asked in ((graph.whole(), (None, None)), (graph.whole(), (users, items)),
                      (graph.sampled(seeds()), (users, items))):
    encoding = backbone.encode(view, asked[0], asked[1], seeds(), training=True)
    for layers, nodes, total in ((encoding.user, asked[0], USERS), (encoding.item, asked[1], ITEMS)):
      count = total if nodes is None else len(nodes)
      assert len(layers) == backbone.num_layers
      assert all(layer.shape[0] == count and np.isfinite(layer).all() for layer in layers)
      assert layers[-1].shape == [count, size], f'size_of says {size}'


def check_deterministic(name: str) -> None:
  """All representations are the same whenever they are asked for, and those of `encode`."""
  backbone, graph = small(name)
  represent = backbone.representer(graph)
  encoding = backbone.encode(graph.whole(), None, None, seeds(), training=False)
  for one, other, layers in zip(represent(), represent(), (encoding.user, encoding.item)):
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one, layers[-1], rtol=1e-4, atol=1e-5)


def check_gradients(name: str) -> None:
  """Gradients reach every weight and are finite."""
  backbone, graph = small(name)
  with tf.GradientTape() as tape:
    encoding = backbone.encode(graph.whole(), None, None, seeds(), training=True)
    loss = tf.reduce_sum(tf.matmul(encoding.user[-1], encoding.item[-1], transpose_b=True))
  gradients = dict(zip(backbone.named_variables(), tape.gradient(loss, backbone.trainable_variables)))
  for key, gradient in gradients.items():
    assert gradient is not None and np.isfinite(tf.convert_to_tensor(gradient)).all(), key
  for key in ('user_table', 'item_table'):
    assert np.abs(tf.convert_to_tensor(gradients[key])).sum() > 0, key


def check_growth(name: str) -> None:
  """A larger model takes over the weights and the rows of old nodes, and gives new ones a start."""
  backbone, graph = small(name)
  bigger = backbones.REGISTRY[name](USERS + 2, ITEMS + 1, backbone.config, (1,))
  bigger.grow_from(backbone, graph)
  for key, value in backbone.named_variables().items():
    np.testing.assert_array_equal(bigger.named_variables()[key][:value.shape[0]], value)
  assert np.abs(bigger.user_table[USERS:]).sum() > 0


def check_start(name: str) -> None:
  """The same seed gives the same weights, another one others."""
  def weights(seed):
    return backbones.REGISTRY[name](USERS, ITEMS, config_of(), (seed,)).named_variables()
  first, other = weights(0), weights(1)
  for key, value in weights(0).items():
    np.testing.assert_array_equal(first[key], value)
  assert np.any(first['user_table'].numpy() != other['user_table'].numpy())


def check_call(name: str) -> None:
  """Called with pairs, a connected model gives the dot products of final representations."""
  backbone, graph = small(name)
  users, items = np.array([5, 2, 0, 5, 6]), np.array([4, 1, 1, 0, 4])
  user_rows, item_rows = (rows.numpy() for rows in backbone.representer(graph)())
  scores = backbone.connect(graph)((users, items))
  np.testing.assert_allclose(scores, (user_rows[users] * item_rows[items]).sum(axis=1), rtol=1e-4, atol=1e-5)
  np.testing.assert_array_equal(backbone((users, items)), scores)


def check_keras(name: str, folder: pathlib.Path) -> None:
  """What Keras offers for models works: configuration, weights in files, summary, training on labelled pairs."""
  backbone, graph = small(name)
  pairs = np.arange(4), np.arange(4)
  described = json.loads(json.dumps(backbone.get_config()))
  twin = type(backbone).from_config(described).connect(graph)
  assert json.loads(json.dumps(twin.get_config())) == described
  names = [weight.name for weight in backbone.weights]
  assert names == [weight.name for weight in twin.weights] and len(set(names)) == len(names), names
  backbone.save_weights(str(folder / 'weights'))
  twin.load_weights(str(folder / 'weights')).assert_consumed()
  np.testing.assert_array_equal(twin(pairs), backbone.connect(graph)(pairs))
  lines: List[str] = []
  backbone.summary(print_fn=lines.append)
  assert f'Total params: {sum(np.prod(weight.shape) for weight in backbone.weights)} ' in '\n'.join(lines)
  loss = tf.keras.losses.BinaryCrossentropy(from_logits=True)
  twin.compile(tf.keras.optimizers.legacy.SGD(.1), loss, run_eagerly=True)
  twin.fit(tf.data.Dataset.from_tensors((pairs, np.array([1., 0., 1., 0.]))), epochs=1, verbose=0)
  assert np.any(twin.user_table.numpy() != backbone.user_table.numpy())


def check_saved(name: str, folder: pathlib.Path) -> None:
  """A SavedModel has its weights and graph: representations are the same there, and gradients reach every weight."""
  backbone, graph = small(name)
  tf.saved_model.save(Trainable(backbone, graph, None), str(folder))
  loaded = tf.saved_model.load(str(folder))
  rows = backbone.representer(graph)()
  for got, wanted in zip(map(loaded.represent().get, ('users', 'items')), rows):
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
  weights = dict(loaded.weights)
  assert set(weights) == set(backbone.named_variables())
  with tf.GradientTape() as tape:
    total = tf.reduce_sum(loaded(tf.range(ITEMS, dtype=tf.int64), tf.range(ITEMS, dtype=tf.int64)))
  for key, gradient in zip(weights, tape.gradient(total, list(weights.values()))):
    assert gradient is not None and np.isfinite(tf.convert_to_tensor(gradient)).all(), key


class Suite:
  """What must hold for every backbone; a subclass is parametrised with `name`."""

  def test_shapes(self, name):
    check_shapes(name)

  def test_deterministic(self, name):
    check_deterministic(name)

  def test_gradients(self, name):
    check_gradients(name)

  def test_growth(self, name):
    check_growth(name)

  def test_start(self, name):
    check_start(name)

  def test_call(self, name):
    check_call(name)

  def test_keras(self, name, tmp_path):
    check_keras(name, tmp_path)

  def test_saved(self, name, tmp_path):
    check_saved(name, tmp_path)
