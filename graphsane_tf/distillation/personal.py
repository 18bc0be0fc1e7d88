"""How much of the past a user keeps: less if their interests have moved (Wang et al., 2023)."""
import numpy as np

from graphsane_tf.graph import csr
from graphsane_tf.random import host_generator


def interest_shift(before: csr.Csr, now: csr.Csr, cluster: np.ndarray) -> np.ndarray:
  """[num_users] half the L1 distance between a user's cluster shares before and now: 0 to 1.

  A user without interactions on one of the two sides shows no shift.

  Args:
    before: [num_users, n] earlier interactions.
    now: [num_users, n] recent ones.
    cluster: [n] cluster of each item; -1 leaves an item out.
  """
  num_clusters = int(cluster.max(initial=-1)) + 1
  def shares(table):
    of_edge = cluster[table.indices]
    known = of_edge >= 0
    cell = table.rows()[known].astype(np.int64) * num_clusters + of_edge[known]
    counts = np.bincount(cell, minlength=table.num_rows * num_clusters).reshape(table.num_rows, num_clusters)
    total = counts.sum(axis=1, keepdims=True)
    return counts / np.maximum(total, 1), total[:, 0] > 0
  (old, had), (new, has) = shares(before), shares(now)
  return np.where(had & has, .5 * np.abs(new - old).sum(axis=1), 0.)


def user_weights(options, context, teacher, seed) -> np.ndarray:
  """[teacher.num_users] float32 weights exp(-strength * shift), of mean one.

  Items are clustered by K-means on the teacher's embeddings; a user's shift is between their
  interactions before the block and in it. The publication learns the map from shift to weight; here
  it is this fixed one. `options` is config.personal.
  """
  import sklearn.cluster  # pylint: disable=g-import-not-at-top
  rows = teacher.embedding('item').numpy()
  start = int(host_generator(*seed, name='personal').integers(2**31 - 1))
  label = sklearn.cluster.KMeans(
      min(options.num_clusters, len(rows)), n_init=1, random_state=start).fit_predict(rows)
  cluster = np.full(context.num_items, -1)
  cluster[:len(rows)] = label
  before = teacher.graph.edges.resized(context.num_users, context.num_items)
  shift = interest_shift(before, context.block, cluster)[:teacher.num_users]
  weight = np.exp(-options.strength * shift)
  return (weight / weight.mean()).astype(np.float32)
