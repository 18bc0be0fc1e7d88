"""User-user and item-item graphs: exact nearest neighbours by cosine of binary interaction rows."""
import numpy as np
import scipy.sparse
import tensorflow as tf

from graphsane_tf.graph import csr


@tf.function(reduce_retracing=True)
def _top(similarity: tf.Tensor, k: tf.Tensor):
  return tf.math.top_k(similarity, k=k)


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
  scale = 1. / np.sqrt(np.maximum(edges.degree, 1)).astype(np.float32)
  rows = scipy.sparse.diags(scale) @ edges.matrix()
  columns = rows.T.tocsr()
  k = min(num_neighbours, max(count - 1, 0))
  chunk = max(1, chunk_floats // max(count, 1))
  found_rows, found_columns = [], []
  for start in range(0, count if k else 0, chunk):
    stop = min(start + chunk, count)
    similarity = (rows[start:stop] @ columns).toarray()
    similarity[np.arange(stop - start), np.arange(start, stop)] = 0.
    values, indices = _top(tf.constant(similarity), tf.constant(k))
    keep = values.numpy() > 0.
    found_rows.append(np.repeat(np.arange(start, stop), keep.sum(1)))
    found_columns.append(indices.numpy()[keep])
  empty = np.zeros(0, np.int64)
  return csr.from_pairs(np.concatenate(found_rows or [empty]),
                        np.concatenate(found_columns or [empty]), count, count)
