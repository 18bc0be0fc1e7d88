"""Seeds and settings of K-means, logs without categories, and kernels with several degrees of freedom."""
import dataclasses

import numpy as np
import pytest
import sklearn.cluster
import tensorflow as tf

from graphsane_tf import clustering
from graphsane_tf.clustering import structural
from graphsane_tf.config import resolved
from graphsane_tf.errors import UserError
from tests import logs

_LOG = logs.random_log()


def _clusters(name, seed=(3, 1), **changes):
  config = resolved(logs.tiny_config(clusters=name, **changes))
  return clustering.REGISTRY[name](config, logs.context_of(_LOG, 1, 4), seed)


def test_kmeans_is_seeded_by_the_place_in_the_run(monkeypatch):
  """The same numbers in every version: seed, block and epoch decide, and nothing else."""
  made = []

  class Spy(sklearn.cluster.KMeans):

    def __init__(self, n_clusters=8, **options):
      super().__init__(n_clusters, **options)
      made.append((n_clusters, options))

  monkeypatch.setattr(sklearn.cluster, 'KMeans', Spy)
  vectors = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
  clusters = _clusters('kmeans', clustering__num_clusters=7, clustering__kmeans_iterations=3)
  for epoch in range(12):
    assert clusters.assign(tf.constant(vectors), epoch).shape == [40]
  made = [(number, options) for number, options in made if 'random_state' in options]
  expected = [int(np.random.default_rng([3, 1, epoch]).integers(2_147_483_647)) for epoch in range(12)]
  assert [options.pop('random_state') for _, options in made] == expected
  assert all(entry == (7, {'n_init': 1, 'max_iter': 3}) for entry in made)


def test_no_more_clusters_than_items():
  context = logs.context_of(_LOG, 1, 4)
  assert _clusters('kmeans', clustering__num_clusters=10_000).num_clusters == context.num_items
  assert _clusters('kmeans', clustering__num_clusters=3).num_clusters == 3


@pytest.mark.fault('log without categories')
def test_categories_need_categories():
  clustering.REGISTRY['categories'].check(_LOG)
  bare = dataclasses.replace(_LOG, item_category=None, category_names=None)
  with pytest.raises(UserError, match='--clusters=categories needs item categories'):
    clustering.REGISTRY['categories'].check(bare)
  for name in ('kmeans', 'structural'):
    clustering.REGISTRY[name].check(bare)


def test_given_categories_are_the_logs():
  clusters = _clusters('categories')
  number = logs.context_of(_LOG, 1).num_items
  assert clusters.num_clusters == 4
  np.testing.assert_array_equal(clusters.assign(tf.zeros([number, 4]), 0), _LOG.item_category[:number])
  np.testing.assert_array_equal(clusters.memberships(tf.zeros([number, 4]), 0),
                                np.eye(4)[_LOG.item_category[:number]])


@pytest.mark.parametrize('nu', [.5, 2., 2.5, 4.])
def test_kernels_by_their_definition(nu):
  rng = np.random.default_rng(1)
  vectors, centres = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
  distance = ((vectors[:, None] - centres) ** 2).sum(axis=2)
  kernel = (1 + distance / nu) ** (-(nu + 1) / 2)
  found = structural.soft_assignment(
      tf.constant(vectors, tf.float32), tf.constant(centres, tf.float32), nu)
  np.testing.assert_allclose(found, kernel / kernel.sum(axis=1, keepdims=True), rtol=1e-4)
