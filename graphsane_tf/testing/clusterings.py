"""What must hold for all item clusters; each check raises AssertionError where it does not."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import clustering
from graphsane_tf.config import resolved
from graphsane_tf.testing import logs

DIM = 4


def small(name: str):
  """Clusters of a block's items, and their representations."""
  context = logs.context_of(logs.random_log(), 1, dim=DIM)
  clusters = clustering.REGISTRY[name](resolved(logs.tiny_config()), context, (0, 1))
  return clusters, tf.random.stateless_normal([context.num_items, DIM], [1, 2])


class Suite:
  """What must hold for all item clusters; a subclass is parametrised with `name`."""

  @pytest.mark.parametrize('epoch', [0, 3])
  def test_assignments_are_clusters(self, name, epoch):
    clusters, vectors = small(name)
    assigned = clusters.assign(vectors, epoch)
    assert assigned.dtype == tf.int32 and assigned.shape == [len(vectors)]
    assert np.all((assigned.numpy() >= 0) & (assigned.numpy() < clusters.num_clusters))

  def test_memberships_are_shares(self, name):
    clusters, vectors = small(name)
    shares = clusters.memberships(vectors, 0).numpy()
    assert shares.shape == (len(vectors), clusters.num_clusters) and np.all(shares >= 0)
    np.testing.assert_allclose(shares.sum(axis=1), 1., rtol=1e-5)
    np.testing.assert_array_equal(np.argmax(shares, axis=1), clusters.assign(vectors, 0))

  def test_reproducible(self, name):
    (first, vectors), (other, _) = small(name), small(name)
    np.testing.assert_array_equal(first.assign(vectors, 0), other.assign(vectors, 0))

  def test_checkpoint(self, name, tmp_path):
    (clusters, vectors), (fresh, _) = small(name), small(name)
    clusters.assign(vectors, 0)
    path = tf.train.Checkpoint(clusters=clusters).write(str(tmp_path / 'state'))
    tf.train.Checkpoint(clusters=fresh).read(path).assert_existing_objects_matched()
    np.testing.assert_array_equal(clusters.assign(vectors, 1), fresh.assign(vectors, 1))
