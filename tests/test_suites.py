"""The suites of `graphsane_tf.testing` fail for methods that are wrong (tests/negatives has those of samplers)."""
import collections

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import backbones, clustering, config_rules, distillation, peers, registry, replay
from graphsane_tf.backbones.lightgcn import LightGCN
from graphsane_tf.clustering.base import ItemClusters
from graphsane_tf.clustering.kmeans import KMeansClusters
from graphsane_tf.distillation.base import Distiller
from graphsane_tf.evaluation import ranking
from graphsane_tf.peers.base import Peer
from graphsane_tf.replay.base import ReplayPolicy
from graphsane_tf.testing import backbones as of_backbones
from graphsane_tf.testing import clusterings, distillers, registries, replays
from graphsane_tf.testing import peers as of_peers


@pytest.fixture(autouse=True)
def _restored():
  with registries.restored():
    yield


def _fails(check, *arguments):
  with pytest.raises(AssertionError):
    check(*arguments)


@pytest.fixture(name='bench', scope='module')
def _bench(tmp_path_factory):
  return distillers.Bench(tmp_path_factory.mktemp('bench'))


class TestDistillers:

  def _register(self, losses, fields=('wrong.weight',)):
    distillation.REGISTRY.register('wrong', weight=(1., config_rules.WEIGHT))(
        type('Wrong', (Distiller,), {'weight_fields': fields, 'losses': losses}))

  def test_a_loss_that_is_not_finite(self, bench):
    self._register(lambda self, batch: {'wrong': tf.reduce_sum(batch.backbone.user_table) / 0.})
    _fails(distillers.check_losses, bench, 'wrong')

  def test_a_loss_that_does_not_pull(self, bench):
    self._register(lambda self, batch: {'wrong': tf.ones([])})
    _fails(distillers.check_losses, bench, 'wrong')

  def test_a_teacher_that_is_not_frozen(self, bench):
    def losses(self, batch):
      self.teacher.trainable = True
      return {'wrong': tf.reduce_sum(batch.backbone.user_table[0] * self.teacher.embedding('user')[0])}
    self._register(losses)
    _fails(distillers.check_losses, bench, 'wrong')

  def test_a_teacher_that_is_changed(self, bench):
    def losses(self, batch):
      self.teacher.backbone.user_table.assign_add(tf.ones_like(self.teacher.backbone.user_table))
      return {'wrong': tf.reduce_sum(batch.backbone.user_table)}
    self._register(losses)
    _fails(distillers.check_losses, bench, 'wrong')

  def test_weights_that_are_not_named(self, bench):
    self._register(lambda self, batch: {'wrong': tf.reduce_sum(batch.backbone.user_table)}, fields=())
    _fails(distillers.check_losses, bench, 'wrong')

  def test_a_weight_without_effect(self, bench):
    self._register(lambda self, batch: {'wrong': tf.reduce_sum(batch.backbone.user_table ** 2)})
    distillers.check_losses(bench, 'wrong')
    _fails(distillers.check_without_weight, bench, 'wrong')


class TestBackbones:

  def _register(self, **members):
    backbones.REGISTRY.register('wrong')(type('Wrong', (LightGCN,), members))

  def test_the_package_passes(self):
    self._register()
    for check in (of_backbones.check_shapes, of_backbones.check_deterministic, of_backbones.check_growth):
      check('wrong')

  def test_a_wrong_size(self):
    self._register(size_of=classmethod(lambda cls, config: 3))
    _fails(of_backbones.check_shapes, 'wrong')

  def test_a_wrong_number_of_layers(self):
    self._register(num_layers=2)
    _fails(of_backbones.check_shapes, 'wrong')

  def test_randomness_outside_of_training(self):
    def encode(self, view, users, items, seeds, training):
      encoding = LightGCN.encode(self, view, users, items, seeds, training)
      encoding.user[-1] += tf.random.normal(tf.shape(encoding.user[-1]))
      return encoding
    self._register(encode=encode)
    _fails(of_backbones.check_deterministic, 'wrong')

  def test_no_gradient(self):
    def encode(self, view, users, items, seeds, training):
      encoding = LightGCN.encode(self, view, users, items, seeds, training)
      encoding.user[-1] = tf.stop_gradient(encoding.user[-1])
      encoding.item[-1] = tf.stop_gradient(encoding.item[-1])
      return encoding
    self._register(encode=encode)
    _fails(of_backbones.check_gradients, 'wrong')

  def test_rows_that_are_lost(self):
    self._register(grow_from=lambda self, old, graph: None)
    _fails(of_backbones.check_growth, 'wrong')

  def test_a_start_without_the_seed(self):
    self._register(matrix=lambda self, name, rows, columns: tf.Variable(tf.ones([rows, columns]), name=name))
    _fails(of_backbones.check_start, 'wrong')

  def test_scores_that_are_not_those_of_the_representations(self):
    self._register(call=lambda self, inputs, training=False: tf.zeros(tf.shape(inputs[0])))
    _fails(of_backbones.check_call, 'wrong')

  def test_weights_that_keras_does_not_see(self, tmp_path):
    def encode(self, view, users, items, seeds, training):
      encoding = LightGCN.encode(self, view, users, items, seeds, training)
      encoding.user[-1] *= hidden[id(self)]
      return encoding
    hidden = collections.defaultdict(lambda: tf.Variable(1. + len(hidden)))
    self._register(encode=encode)
    _fails(of_backbones.check_keras, 'wrong', tmp_path)


@pytest.mark.parametrize('choose,test', [
    (lambda self, users, first, count, rng: np.arange(count), 'window_keeps_to_the_newest_rows'),
    (lambda self, users, first, count, rng: np.arange(first, len(users))[:count - 1],
     'draws_its_share_of_different_old_rows'),
    (lambda self, users, first, count, rng: np.full(count, first), 'draws_its_share_of_different_old_rows'),
    (lambda self, users, first, count, rng: np.random.permutation(len(users))[:count], 'same_seed_same_rows')])
def test_replay_policies(choose, test):
  replay.REGISTRY.register('wrong')(type('Wrong', (ReplayPolicy,), {'choose': choose}))
  _fails(getattr(replays.Suite(), f'test_{test}'), 'wrong')


@pytest.mark.parametrize('base,assign,test', [
    (ItemClusters, lambda self, vectors, epoch: tf.fill([len(vectors)], self.num_clusters), 'assignments_are_clusters'),
    (ItemClusters, lambda self, vectors, epoch: tf.zeros([3], tf.int32), 'assignments_are_clusters'),
    (KMeansClusters, lambda self, vectors, epoch: tf.constant(np.random.permutation(len(vectors)) % 3, tf.int32),
     'reproducible')])
def test_clusters(base, assign, test):
  clustering.REGISTRY.register('wrong')(type('Wrong', (base,), {'assign': assign}))
  suite = clusterings.Suite()
  arguments = ('wrong', 0) if test == 'assignments_are_clusters' else ('wrong',)
  _fails(getattr(suite, f'test_{test}'), *arguments)


class _Tiles(ranking.Scorer):
  """Scores that depend on where a tile begins."""

  def __init__(self, context):
    self.num_users, self.num_items = context.num_users, context.num_items

  def tile(self, start, stop):
    def write(users, out):
      out[:] = np.arange(stop - start)
    return write


@pytest.mark.parametrize('fit', [
    lambda self, context: ranking.DotProduct(np.full((context.num_users, 1), np.nan), np.ones((context.num_items, 1))),
    lambda self, context: _Tiles(context)])
def test_peers(fit):
  peers.REGISTRY.register('wrong')(type('Wrong', (Peer,), {'fit': fit}))
  _fails(of_peers.Suite().test_scores_are_finite_and_do_not_depend_on_tiles_or_chunks, 'wrong')


def test_nothing_is_left_behind():
  assert not any(names.own() for names in registry.REGISTRIES.values())
