"""Neighbour tables in files against tables in memory."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.graph import csr, views
from graphsane_tf.random import Seeds


@pytest.mark.parametrize('num_knn', [0, 2])
def test_views_of_mapped_tables_are_the_same(monkeypatch, num_knn):
  rng = np.random.default_rng(0)
  edges = csr.from_pairs(*np.nonzero(rng.random((30, 20)) < .2), 30, 20)
  rows = tf.constant(rng.normal(size=(20, 3)), tf.float32)
  nodes = tf.constant([3, 29, 0])

  def seen(graph):
    sampled = graph.sampled(Seeds(tf.constant([1, 2])))
    return [view.mean('ui', nodes, views.Table(rows), 4).numpy() for view in (sampled, graph.plain())]

  expected = seen(views.Graph(edges, num_knn))
  monkeypatch.setattr(views, '_MAPPED_EDGES', 1)
  graph = views.Graph(edges, num_knn)
  assert all(isinstance(relation.table.indices, np.memmap) for relation in graph.relations.values())
  np.testing.assert_array_equal(graph.edges.indices, edges.indices)
  np.testing.assert_array_equal(graph.edges.transposed().indices, edges.transposed().indices)
  for found, wanted in zip(seen(graph), expected):
    np.testing.assert_array_equal(found, wanted)
