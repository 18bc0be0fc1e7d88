"""User-user and item-item graphs: exact nearest neighbours by cosine of binary interaction rows."""
from typing import Iterator, Tuple

import numpy as np
import scipy.sparse
import tensorflow as tf

from graphsane_tf.graph import csr


@tf.function(reduce_retracing=True)
def _top(similarity: tf.Tensor, k: tf.Tensor):
  return tf.math.top_k(similarity, k=k)


def cosine_chunks(edges: csr.Csr, chunk_floats: int = 1 << 24) -> Iterator[Tuple[int, np.ndarray]]:
  """Cosines of all rows' binary interaction vectors, a stretch of rows at a time.

  Args:
    edges: interactions, [num_rows, num_columns].
    chunk_floats: bound on the entries held at once.

  Yields:
    The number of the first row and [n, num_rows] float32 cosines, 0 of a row with itself.
  """
  count = edges.num_rows
  scale = 1. / np.sqrt(np.maximum(edges.degree, 1)).astype(np.float32)
  rows = scipy.sparse.diags(scale) @ edges.matrix()
  columns = rows.T.tocsr()
  chunk = max(1, chunk_floats // max(count, 1))
  for start in range(0, count, chunk):
    similarity = (rows[start:start + chunk] @ columns).toarray()
    places = np.arange(len(similarity))
    similarity[places, start + places] = 0.
    yield start, similarity


def cosine_neighbours(edges: csr.Csr, num_neighbours: int, chunk_floats: int = 1 << 24) -> csr.Csr:
  """The `num_neighbours` most similar other rows of each row.

  Rows are compared by the cosine of their binary interaction vectors. Rows that share nothing are
  never neighbours, so a row may have fewer neighbours than asked for (an isolated one has none).
  Ties go to the lower number. The similarity matrix is made in chunks of `chunk_floats` entries.

  Args:
    edges: interactions, [num_rows, num_columns].
    num_neighbours: k, 15 in MGCCF.
    chunk_floats: bound on the entries of similarity held at once.

  Returns:
    [num_rows, num_rows] neighbour table, at most `num_neighbours` entries a row.
  """
  count = edges.num_rows
  k = min(num_neighbours, max(count - 1, 0))
  found_rows, found_columns = [], []
  for start, similarity in cosine_chunks(edges, chunk_floats) if k else ():
    values, indices = _top(tf.constant(similarity), tf.constant(k))
    keep = values.numpy() > 0.
    found_rows.append(np.repeat(start + np.arange(len(keep)), keep.sum(1)))
    found_columns.append(indices.numpy()[keep])
  empty = np.zeros(0, np.int64)
  return csr.from_pairs(np.concatenate(found_rows or [empty]),
                        np.concatenate(found_columns or [empty]), count, count)
