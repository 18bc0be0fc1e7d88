"""Nearest neighbours against scikit-learn's cosine similarities."""
import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from graphsane_tf.graph import csr, knn


@pytest.mark.parametrize('chunk', [1 << 24, 100, 1])
def test_matches_a_dense_computation(chunk):
  rng = np.random.default_rng(1)
  keys = rng.permutation(20 * 12)[:70]
  edges = csr.from_pairs(keys // 12, keys % 12, 20, 12)
  found = knn.cosine_neighbours(edges, 4, chunk)
  similarity = cosine_similarity(edges.matrix().toarray())
  np.fill_diagonal(similarity, 0)
  for row in range(20):
    order = [j for j in np.lexsort((np.arange(20), -similarity[row].round(6)))
             if similarity[row, j] > 0]
    mine = found.indices[found.indptr[row]:found.indptr[row + 1]]
    np.testing.assert_allclose(
        np.sort(similarity[row, mine]), np.sort(similarity[row, order[:4]]), rtol=1e-5)
    assert row not in mine and len(mine) == min(4, len(order))


def test_rows_that_share_nothing_have_no_neighbours():
  edges = csr.from_pairs(np.arange(3), np.arange(3), 3, 3)
  assert len(knn.cosine_neighbours(edges, 2).indices) == 0
