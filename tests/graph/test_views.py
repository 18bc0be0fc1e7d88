"""Means over neighbourhoods, whole and sampled, with their gradients."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.graph import csr, views
from graphsane_tf.random import Seeds


@pytest.fixture(name='graph')
def graph_fixture():
  rng = np.random.default_rng(2)
  keys = rng.permutation(9 * 7)[:30]
  keys = keys[keys // 7 != 4]  # User 4 has no items.
  return views.Graph(csr.from_pairs(keys // 7, keys % 7, 9, 7), num_knn=3)


def _dense_mean(table: csr.Csr, rows: np.ndarray) -> np.ndarray:
  matrix = table.matrix().toarray()
  return matrix @ rows / np.maximum(matrix.sum(1, keepdims=True), 1)


@pytest.mark.parametrize('relation', ['ui', 'iu', 'uu', 'ii'])
def test_whole_view_is_the_mean_and_has_its_gradient(graph, relation):
  table = graph.relations[relation].table
  rng = np.random.default_rng(3)
  rows = tf.Variable(rng.normal(size=(table.num_columns, 4)).astype(np.float32))
  weight = rng.normal(size=(table.num_rows, 4)).astype(np.float32)

  @tf.function
  def forward_and_back():
    with tf.GradientTape() as tape:
      mean = graph.whole().mean(relation, None, lambda nodes: views.take(rows, nodes), 2)
      loss = tf.reduce_sum(mean * weight)
    return mean, tape.gradient(loss, rows)

  mean, gradient = forward_and_back()
  np.testing.assert_allclose(mean, _dense_mean(table, rows.numpy()), atol=1e-6)
  matrix = table.matrix().toarray()
  expected = (matrix / np.maximum(matrix.sum(1, keepdims=True), 1)).T @ weight
  np.testing.assert_allclose(gradient, expected, atol=1e-6)


@pytest.mark.parametrize('relation', ['ui', 'iu'])
@pytest.mark.parametrize('whole', [True, False])
def test_smooth_is_the_symmetric_product_and_has_its_gradient(graph, relation, whole):
  table = graph.relations[relation].table
  rng = np.random.default_rng(4)
  rows = tf.Variable(rng.normal(size=(table.num_columns, 4)).astype(np.float32))
  weight = rng.normal(size=(table.num_rows, 4)).astype(np.float32)

  @tf.function
  def forward_and_back():
    with tf.GradientTape() as tape:
      # With a fanout above every degree a sampled view sees all neighbours, too.
      view = graph.whole() if whole else graph.sampled(Seeds(tf.constant([1, 2])))
      found = view.smooth(relation, None if whole else tf.range(table.num_rows),
                          lambda nodes: views.take(rows, nodes), 20)
      loss = tf.reduce_sum(found * weight)
    return found, tape.gradient(loss, rows)

  found, gradient = forward_and_back()
  matrix = table.matrix().toarray()
  scale = [1 / np.sqrt(np.maximum(matrix.sum(axis), 1)) for axis in (1, 0)]
  matrix = scale[0][:, None] * matrix * scale[1]
  np.testing.assert_allclose(found, matrix @ rows.numpy(), atol=1e-6)
  np.testing.assert_allclose(gradient, matrix.T @ weight, atol=1e-6)


@pytest.mark.parametrize('relation', ['ui', 'iu'])
@pytest.mark.parametrize('nodes', [[], [4], [6, 4, 0], [3, 3], [5, 1, 2, 0, 3, 4, 6]])
@pytest.mark.parametrize('part', [0, 1_000])
def test_smooth_of_some_nodes_is_that_of_all_taken_there(graph, relation, nodes, part, monkeypatch):
  """Whether their rows are computed alone (part 0) or with all others."""
  monkeypatch.setattr(views, '_PART', part)
  table = graph.relations[relation].table
  rng = np.random.default_rng(5)
  rows = tf.Variable(rng.normal(size=(table.num_columns, 4)).astype(np.float32))
  weight = rng.normal(size=(len(nodes), 4)).astype(np.float32)

  @tf.function
  def forward_and_back(nodes):
    with tf.GradientTape() as tape:
      found = graph.whole().smooth(relation, nodes, lambda at: views.take(rows, at), 2)
      loss = tf.reduce_sum(found * weight)
    return found, tape.gradient(loss, rows)

  found, gradient = forward_and_back(tf.constant(nodes, tf.int32))
  matrix = table.matrix().toarray()
  scale = [1 / np.sqrt(np.maximum(matrix.sum(axis), 1)) for axis in (1, 0)]
  matrix = (scale[0][:, None] * matrix * scale[1])[nodes]
  np.testing.assert_allclose(found, matrix @ rows.numpy(), atol=1e-6)
  np.testing.assert_allclose(gradient, matrix.T @ weight, atol=1e-6)


def test_draws_are_distinct_neighbours_and_all_of_them_when_few(graph):
  table = graph.relations['ui'].table
  for fanout in (1, 2, 3, 10):
    found, drawn = views.draw_neighbours(
        graph.relations['ui'], tf.range(9), fanout, tf.constant([1, 2]))
    for user in range(9):
      mine = table.indices[table.indptr[user]:table.indptr[user + 1]]
      got = found.numpy()[user][drawn.numpy()[user] > 0]
      assert len(got) == min(len(mine), fanout) == len(set(got))
      assert set(got) <= set(mine)


@pytest.mark.parametrize('fanout', [1, 2, 3])
def test_sampled_mean_is_unbiased(graph, fanout):
  """Mean over many draws, within five standard errors; a wrong divisor or offset is far outside."""
  table = graph.relations['ui'].table
  rows = np.random.default_rng(5).normal(size=(7, 3)).astype(np.float32)

  @tf.function
  def draw(seed):
    view = graph.sampled(Seeds(seed))
    return view.mean('ui', tf.range(9), lambda nodes: tf.gather(rows, nodes), fanout)

  draws = np.stack([draw(tf.constant([7, k])).numpy() for k in range(1500)]).astype(np.float64)
  error = draws.std(0) / np.sqrt(len(draws))
  gap = np.abs(draws.mean(0) - _dense_mean(table, rows))
  assert np.all(gap <= 5 * error + 1e-6)


def test_sampled_view_equals_whole_view_when_it_draws_everything(graph):
  rows = tf.constant(np.random.default_rng(6).normal(size=(7, 3)).astype(np.float32))
  nodes = tf.constant([4, 8, 0])
  sampled = graph.sampled(Seeds(tf.constant([0, 1]))).mean(
      'ui', nodes, lambda n: tf.gather(rows, n), 20)
  np.testing.assert_allclose(
      sampled, _dense_mean(graph.edges, rows.numpy())[nodes.numpy()], atol=1e-6)


def test_a_table_gives_the_same_means_and_gradients_as_rows_asked_for(graph):
  rows = tf.constant(np.random.default_rng(7).normal(size=(7, 3)).astype(np.float32))
  nodes, found = tf.constant([4, 8, 0]), []
  for kind in (views.Table, lambda table: lambda at: views.take(table, at)):
    with tf.GradientTape() as tape:
      tape.watch(rows)
      mean = graph.sampled(Seeds(tf.constant([0, 1]))).mean('ui', nodes, kind(rows), 2)
      loss = tf.reduce_sum(mean * mean)
    found.append((mean, tape.gradient(loss, rows)))
  for one, other in zip(*found):
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_an_empty_neighbour_graph_gives_zeros():
  graph = views.Graph(csr.from_pairs(np.arange(3), np.arange(3), 3, 3), num_knn=2)
  rows = tf.ones([3, 2])
  whole = tf.function(lambda: graph.whole().mean('uu', None, lambda n: rows, 2))()
  sampled = graph.sampled(Seeds(tf.constant([0, 0]))).mean(
      'uu', tf.range(3), lambda n: tf.gather(rows, n), 2)
  assert not whole.numpy().any() and not sampled.numpy().any()
