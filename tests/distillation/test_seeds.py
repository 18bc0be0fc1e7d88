"""What distillers cluster: with which seeds and settings, and what becomes of it."""
import numpy as np
import pytest
import sklearn.cluster

from graphsane_tf.distillation import personal
from graphsane_tf.distillation.graphsail import GraphSail, self_coefficients
from graphsane_tf.random import host_generator
from tests.distillation import oracles


@pytest.fixture(name='made')
def _made(monkeypatch):
  """Notes how every K-means is made."""
  made = []

  class Spy(sklearn.cluster.KMeans):

    def __init__(self, n_clusters=8, **options):
      super().__init__(n_clusters, **options)
      made.append((n_clusters, options))

  monkeypatch.setattr(sklearn.cluster, 'KMeans', Spy)
  return made


def _seed(number, name):
  return int(host_generator(number, 1, name=name).integers(2_147_483_647))


@pytest.mark.parametrize('clusters,counts', [(2, (2, 2)), (99, (4, 5))])
def test_graphsail_clusters_each_kind_with_a_seed_of_its_own(made, clusters, counts):
  """No more clusters than nodes: four old users and five old items."""
  case = oracles.Case(oracles.config(**{'graphsail.num_clusters': clusters}))
  for number in range(8):
    GraphSail(case.config, case.context, case.teacher, (number, 1))
  expected = [(count, {'n_init': 1, 'random_state': _seed(number, f'graphsail_{kind}')})
              for number in range(8) for kind, count in zip(('user', 'item'), counts)]
  assert [entry for entry in made if 'random_state' in entry[1]] == expected


def test_personal_weights_cluster_the_teachers_items(made):
  case = oracles.Case(oracles.config(**{'personal.strength': 2., 'personal.num_clusters': 3}))
  for number in range(8):
    personal.user_weights(case.config.personal, case.context, case.teacher, (number, 1))
  assert [entry for entry in made if 'random_state' in entry[1]] == [
      (3, {'n_init': 1, 'random_state': _seed(number, 'personal')}) for number in range(8)]
  made.clear()
  many = oracles.config(**{'personal.num_clusters': 99}).personal
  personal.user_weights(many, case.context, case.teacher, (0, 1))
  assert made[0][0] == 5  # No more than old items.


def test_personal_weights_by_hand():
  """exp(-strength * shift) over its mean, by a loop over users."""
  case = oracles.Case(oracles.config(**{'personal.strength': 1.5, 'personal.num_clusters': 2}))
  weights = personal.user_weights(case.config.personal, case.context, case.teacher, (0, 1))
  label = sklearn.cluster.KMeans(2, n_init=1, random_state=_seed(0, 'personal')).fit_predict(
      case.old_rows['item'])
  shift = []
  for user in range(4):
    shares = []
    for pairs in (oracles.OLD, oracles.NEW):
      counts = np.array([sum(u == user and i < 5 and label[i] == k for u, i in pairs) for k in (0, 1)])
      shares.append(counts / counts.sum() if counts.sum() else None)
    both = all(share is not None for share in shares)
    shift.append(.5 * np.abs(shares[1] - shares[0]).sum() if both else 0.)
  expected = np.exp(-1.5 * np.array(shift))
  assert len(set(np.round(expected, 3))) > 1
  np.testing.assert_allclose(weights, expected / expected.mean(), rtol=1e-5)
  assert weights.dtype == np.float32


def test_self_coefficients_of_nodes_without_any_interaction():
  np.testing.assert_allclose(self_coefficients(np.array([3., 0., 1.]), np.array([4., 0., 1.])),
                             np.array([.75, 0., 1.]) / np.sqrt(.75 ** 2 + 1), rtol=1e-6)
  np.testing.assert_array_equal(self_coefficients(np.zeros(2), np.zeros(2)), [0., 0.])
