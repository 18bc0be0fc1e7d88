"""Equations 11 to 14 against NumPy, and their gradients."""
import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from graphsane_tf import clustering
from graphsane_tf.clustering import structural
from graphsane_tf.clustering.structural import StructuralClusters
from graphsane_tf.config import resolved
from graphsane_tf.testing import clusterings
from tests import logs


def _numpy_q(vectors, centres, nu):
  distance = ((vectors[:, None] - centres[None]) ** 2).sum(-1)
  kernel = (1 + distance / nu) ** (-(nu + 1) / 2)
  return kernel / kernel.sum(1, keepdims=True)


def _numpy_p(q):
  weight = q ** 2 / q.sum(0)
  return weight / weight.sum(1, keepdims=True)


@pytest.fixture(name='points')
def points_fixture():
  rng = np.random.default_rng(0)
  return rng.normal(size=(12, 5)), rng.normal(size=(4, 5))


@pytest.mark.parametrize('nu', [1., 3.])
def test_soft_assignment_and_target(points, nu):
  vectors, centres = points
  q = structural.soft_assignment(tf.constant(vectors), tf.constant(centres), nu)
  np.testing.assert_allclose(q, _numpy_q(vectors, centres, nu), rtol=1e-10)
  np.testing.assert_allclose(structural.target(q), _numpy_p(_numpy_q(vectors, centres, nu)),
                             rtol=1e-10)


def test_loss_is_kl_of_target_against_assignment(points):
  q = _numpy_q(*points, 1.)
  expected = scipy.special.rel_entr(_numpy_p(q), q).sum()
  np.testing.assert_allclose(structural.clustering_loss(tf.constant(q)), expected, rtol=1e-10)


def test_target_is_constant_and_gradient_is_that_of_the_cross_entropy(points):
  vectors, centres = (tf.constant(p) for p in points)
  p = _numpy_p(_numpy_q(*points, 1.))

  def cross_entropy(c):
    return -np.sum(p * np.log(_numpy_q(points[0], c, 1.)))

  with tf.GradientTape() as tape:
    tape.watch(centres)
    loss = structural.clustering_loss(structural.soft_assignment(vectors, centres, 1.))
  gradient = tape.gradient(loss, centres).numpy()
  step = 1e-6
  for k, j in ((0, 0), (2, 3), (3, 4)):
    up, down = points[1].copy(), points[1].copy()
    up[k, j] += step
    down[k, j] -= step
    expected = (cross_entropy(up) - cross_entropy(down)) / (2 * step)
    np.testing.assert_allclose(gradient[k, j], expected, rtol=1e-4)


def test_gradients_of_distances_are_tensorflows(points):
  def plain(vectors, centres):
    return tf.reduce_sum((vectors[:, None] - centres) ** 2, axis=2)

  found = []
  for distances in (structural.squared_distances, plain):
    vectors, centres = (tf.constant(part) for part in points)
    with tf.GradientTape() as tape:
      tape.watch([vectors, centres])
      result = tf.reduce_sum(tf.sin(distances(vectors, centres)))
    found.append(tape.gradient(result, [vectors, centres]))
  for one, other in zip(*found):
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_membership_is_a_softmax_with_temperature():
  p = np.array([[.7, .2, .1]])
  np.testing.assert_allclose(
      structural.membership(tf.constant(p), .5), scipy.special.softmax(p / .5, axis=1))


def test_centres_start_from_kmeans_and_stay_until_trained():
  context = logs.context_of(logs.random_log(), 1, dim=4)
  clusters = StructuralClusters(resolved(logs.tiny_config()), context, (0, 1))
  rng = np.random.default_rng(1)
  vectors = np.concatenate([rng.normal(size=(context.num_items // 2, 4)) + 9,
                            rng.normal(size=(context.num_items - context.num_items // 2, 4)) - 9])
  first = clusters.assign(tf.constant(vectors, tf.float32), 0).numpy()
  centres = clusters.centres.numpy()
  assert len(set(first[:context.num_items // 2]) & set(first[context.num_items // 2:])) == 0
  np.testing.assert_array_equal(clusters.assign(tf.constant(vectors, tf.float32), 2), first)
  np.testing.assert_array_equal(clusters.centres, centres)


@pytest.mark.parametrize('name', list(clustering.REGISTRY))
class TestAllClusters(clusterings.Suite):
  pass
