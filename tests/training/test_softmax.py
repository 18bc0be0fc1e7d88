"""The softmax's corrections, masks and gradient against NumPy, and what the corrections are for."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import negatives
from graphsane_tf.negatives.base import Draw, NoSampler
from graphsane_tf.testing import distillers
from graphsane_tf.training.softmax import Softmax
from tests import logs, objective
from tests.training import test_objective as hand

_TEMPERATURE = .7
# Probabilities of the fixed draws, no two alike.
_PROBABILITY = np.linspace(.05, .6, 12).reshape(6, 2)


class _Stated(hand._Fixed):
  """The fixed draws with their probabilities."""

  def draw(self, users, positives, seeds):
    draw = super().draw(users, positives, seeds)
    return Draw(draw.items, draw.weight, tf.constant(np.log(_PROBABILITY), tf.float32))


class _Case(hand._Case):
  """The hand-sized step with a softmax, without dropout, L2 and proximity."""

  def __init__(self, sampler=_Stated, backbone='lightgcn', **changes):
    super().__init__(backbone, sampler, rate=0., l2=0., proximity=0.,
                     train={'loss': 'softmax', 'softmax_temperature': _TEMPERATURE}, **changes)

  def expected(self, weights=None, chosen=None, pairs=None, seed=tuple(hand._SEED)):
    weights, pairs = weights or self.weights(), pairs or hand._PAIRS
    count = self.sampler.num_slots
    users, _ = np.array(pairs).T
    draws, num_uniform = objective.Draws(seed), hand._NEGATIVES - count
    uniform, valid = objective.uniform_negatives(draws, users, set(hand._NEW), hand._ITEMS, num_uniform)
    graph = objective.Graph(hand._OLD + hand._NEW, hand._USERS, hand._ITEMS)
    everyone = {'u': np.arange(hand._USERS), 'i': np.arange(hand._ITEMS)}
    layers = objective.MODELS[self._name](weights, graph, 0., draws).encode(everyone, self._whole)
    exp = np.exp(layers['u'][-1] @ layers['i'][-1].T / _TEMPERATURE)
    # How often an item is expected among the step's positives, and among a pair's uniform negatives.
    share = len(pairs) / len(hand._NEW)
    there = [1. - (1. - share) ** sum(i == item for _, i in hand._NEW) + num_uniform / hand._ITEMS
             for item in range(hand._ITEMS)]
    total = 0.
    for row, (user, positive) in enumerate(pairs):
      below = exp[user, positive]
      for item in {i for _, i in pairs}:
        if (user, item) not in hand._NEW:
          below += exp[user, item] / there[item]
      for item, weight in zip(uniform[row], valid[row]):
        below += weight * exp[user, item] / there[item]
      for slot in range(count):
        probability = _PROBABILITY[row, slot] if type(self.sampler) is _Stated else 1. / hand._ITEMS
        below += hand._WEIGHT[row][slot] * exp[user, hand._DRAWN[row][slot]] / (count * probability)
      total -= np.log(exp[user, positive] / below)
    return {'softmax': total / len(pairs)}


@pytest.mark.parametrize('sampler,backbone', [
    (_Stated, 'lightgcn'), (hand._Fixed, 'lightgcn'), (NoSampler, 'lightgcn'), (_Stated, 'mgccf')])
def test_value_and_gradient_equal_numpy(sampler, backbone):
  case = _Case(sampler, backbone)
  losses, gradients = case.found()
  assert list(losses) == ['softmax']
  assert float(losses['softmax']) == pytest.approx(case.expected()['softmax'], rel=1e-4)
  for name, value in case.expected_gradient().items():
    np.testing.assert_allclose(gradients[name], value, rtol=2e-3, atol=1e-4, err_msg=name)


def test_a_user_who_has_taken_everything_teaches_nothing():
  case = _Case(NoSampler)
  losses, gradients = case.found([(4, 3), (4, 1)])
  assert float(losses['softmax']) == 0.
  assert not any(value.any() for value in gradients.values())


def test_other_losses_stay():
  case = hand._Case('mgccf', rate=0., train={'loss': 'softmax'})
  expected = hand._Case('mgccf', rate=0.).expected()
  losses, _ = case.found()
  assert list(losses) == ['softmax', 'l2', 'proximity']
  for name in ('l2', 'proximity'):
    assert float(losses[name]) == pytest.approx(expected[name], rel=1e-4)


def test_the_sum_over_a_step_is_that_over_the_catalogue_on_average():
  """Popular items are in most steps, rare ones in few, and items without a pair come by uniform draws only."""
  log = logs.random_log(rows=3000, users=60, items=120)
  context = logs.context_of(log, 0)
  rng = np.random.default_rng(0)
  items = np.minimum((120 * rng.random(1000) ** 3).astype(int), 110)
  object.__setattr__(context, 'users', context.users[:1000])
  object.__setattr__(context, 'items', items)
  mass = rng.random(context.num_items) + .5
  size, num_uniform, total, rounds = 50, 8, 0., 4000
  count = np.exp(Softmax(context, 1., num_uniform).log_count(np.arange(context.num_items), size))
  for _ in range(rounds):
    total += (mass / count)[np.unique(rng.choice(items, size, replace=False))].sum()
    total += (mass / count)[rng.integers(context.num_items, size=num_uniform)].sum()
  assert total / rounds == pytest.approx(mass.sum(), rel=.01)
  # A step with all pairs has all their items for certain.
  alone = np.exp(Softmax(context, 1., 0).log_count(np.unique(items), 1000))
  np.testing.assert_allclose(alone, 1.)


def test_a_step_that_is_the_whole_block():
  """Each of the block's items is there for certain, the others only as uniform negatives."""
  context = logs.context_of(logs.random_log(rows=600), 1)
  items = np.arange(context.num_items)
  count = np.exp(Softmax(context, 1., 3).log_count(items, len(context.users)))
  taken = np.isin(items, context.items)
  assert 0 < taken.sum() < len(items)
  np.testing.assert_allclose(count, taken + 3 / len(items), rtol=1e-4)


@pytest.mark.parametrize('sampler,changes', [
    *((name, {}) for name in sorted(negatives.REGISTRY)),
    ('sane', {'sane__candidates': 2}), ('dns', {'train__num_negatives': 2})])
def test_every_sampler_has_slots_in_it(tmp_path, sampler, changes):
  """Also those that choose, and without any uniform negative; the slots matter."""
  bench = distillers.Bench(tmp_path)
  losses = {}
  for name in (sampler, 'uniform'):
    trainer, _ = bench.trainer(distillers.config_of('none', sampler=name, train__loss='softmax', **changes))
    trainer.sampler.refresh(*trainer.represent(), 0)
    with tf.GradientTape() as tape:
      losses[name] = bench.losses(trainer)['softmax']
    gradients = tape.gradient(losses[name], trainer.model.backbone.trainable_variables)
    assert np.isfinite(losses[name])
    assert all(np.isfinite(tf.convert_to_tensor(gradient)).all() for gradient in gradients)
  assert (losses[sampler] == losses['uniform']) == (sampler == 'uniform')
