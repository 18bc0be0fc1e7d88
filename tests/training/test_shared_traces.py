"""A step that was traced for an earlier, smaller block does what the block's own would, for every registered method."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import backbones, clustering, distillation, negatives, traced
from graphsane_tf.config import resolved
from graphsane_tf.negatives.base import Draw, NegativeSampler
from graphsane_tf.training import assembly
from graphsane_tf.training.block import new_model
from tests import logs

# Every method of the package is in one of them, with all that has tensors of its own.
_CASES = {
    'fine_tuning': {'backbone': 'mgccf', 'model__proximity': .1, 'train__new_row_moments': 'corrected'},
    'strong': {'backbone': 'lightgcn', 'sampler': 'sane', 'train__loss': 'softmax'},
    'graphsail': {'backbone': 'lightgcn', 'kd': 'graphsail'},
    'paper': {'sampler': 'sane', 'kd': 'sgct', 'kd_strength': .1, 'clusters': 'structural'},
    'adaptive': {'sampler': 'sane', 'sane_variant': 'adaptive', 'clusters': 'kmeans', 'kd': 'lsp'},
    'sampled': {'backbone': 'pinsage', 'sampler': 'pinsage', 'model__propagation': 'sampled'},
    'lwckd': {'backbone': 'lightgcn', 'kd': 'lwckd', 'lwckd__num_positives': 2, 'lwckd__num_negatives': 2,
              'lwckd__num_knn_positives': 2, 'lwckd__num_knn_negatives': 2, 'model__num_layers': 1},
    'categories': {'backbone': 'lightgcn', 'sampler': 'sane', 'clusters': 'categories', 'sane__soft_membership': True},
    'warp': {'backbone': 'lightgcn', 'sampler': 'warp', 'personal__strength': 2., 'kd': 'sgct'},
    'pns': {'backbone': 'lightgcn', 'sampler': 'pns', 'pns__max_depth': 20, 'model__l2': .01},
    'nscaching': {'backbone': 'lightgcn', 'sampler': 'nscaching'},
    'esns': {'backbone': 'lightgcn', 'sampler': 'esns', 'train__loss': 'softmax'},
    'demix': {'backbone': 'lightgcn', 'sampler': 'demix'},
    'dns': {'backbone': 'lightgcn', 'sampler': 'dns', 'train__loss': 'softmax'},
}
# Each case traces for seconds: the slow tests have the others.
_QUICK = ('strong', 'paper')
# Where TensorFlow knows how many rows a mean has, it multiplies by the reciprocal instead of dividing.
_ROUNDED = ('graphsail',)


def _log():
  """Each block has new users and new items, and more than 128 of each: TensorFlow makes constants of shorter tensors
  that a function has seen, which it then rounds otherwise."""
  rng = np.random.default_rng(0)
  growth = np.linspace(0., 1., 3000)
  user, item = rng.integers(0, (150 + 100 * growth).astype(int)), rng.integers(0, (140 + 80 * growth).astype(int))
  _, first = np.unique(user * 1000 + item, return_index=True)
  kept = np.sort(first)
  return logs.interactions_of(user[kept], item[kept], np.arange(220) % 4)


def _trained(config, log, index, folder):
  """Weights, state of the optimiser and representations after two short stretches of a block."""
  trainer = assembly.trainer_for(config, log, index, folder, new_model(
      config, assembly.context_of(config, log, index - 1), 1e-2))
  if trainer.sampler.refresh_epochs:
    trainer.sampler.refresh(*trainer.represent(), 0)
  order = tf.constant(np.random.default_rng(index).permutation(len(trainer.context.users)).astype(np.int32))
  # The second one has a short step, the batch's rest.
  losses = [trainer.run_steps(order, tf.constant([3, 4]), tf.constant(first), tf.constant(1)).numpy()
            for first in (0, len(order) // config.train.batch_size)]
  return [*losses, *(part.numpy() for part in trainer.represent()),
          *(variable.numpy() for variable in [*trainer.step.variables, *trainer.model.optimizer.variables()])]


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=() if name in _QUICK else pytest.mark.slow) for name in _CASES])
def test_a_shared_step_is_that_of_the_block(tmp_path, name):
  config, log = resolved(logs.tiny_config(**_CASES[name])), _log()
  traced.forget()
  _trained(config, log, 1, tmp_path / 'first')
  before = dict(traced.counts)
  found = _trained(config, log, 2, tmp_path / 'shared')
  assert traced.counts == before, 'block 2 has not taken the traces of block 1'
  with traced.alone():
    expected = _trained(config, log, 2, tmp_path / 'alone')
  assert len(found) == len(expected)
  for one, other in zip(found, expected):
    np.testing.assert_allclose(one, other, rtol=1e-5 if name in _ROUNDED else 0., atol=1e-7 if name in _ROUNDED else 0.)


class _Asking(NegativeSampler):
  """A sampler from elsewhere, whose traced code asks for a number of its block."""

  def draw(self, users, positives, seeds):
    shape = [tf.size(users), self.num_slots]
    items = tf.random.stateless_uniform(shape, seeds.next(), 0, self.context.num_items, tf.int32)
    return Draw(items, tf.ones_like(items, tf.float32))


def test_a_method_that_asks_for_its_block_is_traced_for_each(tmp_path):
  negatives.REGISTRY.register('asking')(_Asking)
  try:
    config, log = resolved(logs.tiny_config(backbone='lightgcn', sampler='asking')), _log()
    before = dict(traced.counts)
    found = [_trained(config, log, index, tmp_path / 'shared') for index in (1, 2)]
    assert traced.counts['alone'] == before['alone'] + 2
    with traced.alone():
      for one, other in zip(found[1], _trained(config, log, 2, tmp_path / 'alone')):
        np.testing.assert_array_equal(one, other)
  finally:
    negatives.REGISTRY.forget('asking')


def test_every_method_takes_part():
  # The plugins that other tests register are not the package's.
  for field, registry in (('backbone', backbones), ('sampler', negatives), ('kd', distillation),
                          ('clusters', clustering)):
    default = {'backbone': 'mgccf', 'sampler': 'uniform', 'kd': 'none', 'clusters': 'structural'}[field]
    tried = {case.get(field, default) for case in _CASES.values()}
    assert tried >= set(registry.REGISTRY) - set(registry.REGISTRY.own())
