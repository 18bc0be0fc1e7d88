"""Neighbour tables against dense matrices."""
import numpy as np
import pytest

from graphsane_tf.graph import csr


@pytest.fixture(name='table')
def table_fixture():
  rng = np.random.default_rng(0)
  keys = rng.permutation(7 * 5)[:14]
  return csr.from_pairs(keys // 5, keys % 5, 7, 5), keys


def test_matrix_has_the_edges(table):
  edges, keys = table
  dense = np.zeros((7, 5))
  dense[keys // 5, keys % 5] = 1
  np.testing.assert_array_equal(edges.matrix().toarray(), dense)
  np.testing.assert_array_equal(edges.transposed().matrix().toarray(), dense.T)
  np.testing.assert_array_equal(edges.degree, dense.sum(1))


def test_neighbours_are_ascending(table):
  edges, _ = table
  for row in range(edges.num_rows):
    found = edges.indices[edges.indptr[row]:edges.indptr[row + 1]]
    assert np.all(np.diff(found) > 0)


def test_select_keeps_the_order_asked_for(table):
  edges, _ = table
  rows = np.array([5, 0, 3])
  np.testing.assert_array_equal(
      edges.select(rows).matrix().toarray(), edges.matrix().toarray()[rows])


def test_resized_and_empty(table):
  edges, _ = table
  larger = edges.resized(9, 6).matrix().toarray()
  assert larger.shape == (9, 6)
  np.testing.assert_array_equal(larger[:7, :5], edges.matrix().toarray())
  empty = csr.from_pairs(np.zeros(0, int), np.zeros(0, int), 3, 4)
  assert empty.matrix().nnz == 0 and empty.num_rows == 3
