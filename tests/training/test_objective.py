"""Every term of a step, its gradient and its update against NumPy."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import backbones, distillation
from graphsane_tf.config import default_config, resolved
from graphsane_tf.blocks.stream import Block
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.graph import views
from graphsane_tf.negatives.base import Choice, Draw, NegativeSampler, NoSampler
from graphsane_tf.random import Seeds
from graphsane_tf.training import optimizers
from graphsane_tf.blocks import context as contexts
from graphsane_tf.training.step import TrainStep
from tests import objective

_USERS, _ITEMS, _SIZE = 5, 6, 3
# Rows before the block, and the block's own: user 4 takes every item there.
_OLD = [(0, 0), (0, 1), (1, 1), (2, 2), (2, 3), (3, 4), (3, 5), (1, 0)]
_NEW = [(0, 2), (1, 3), (2, 0), (3, 1), (0, 5), *((4, item) for item in range(_ITEMS))]
# Users, positives and sampler's negatives repeat within the batch.
_PAIRS = [(0, 2), (4, 3), (1, 3), (0, 5), (2, 0), (3, 1)]
_DRAWN = [[4, 4], [0, 1], [2, 4], [3, 4], [5, 1], [0, 0]]
_WEIGHT = [[1., .5], [0., 0.], [1., 0.], [2., 1.], [1., 1.], [.25, 1.]]
_SEED = [3, 4]
_L2, _PROXIMITY, _NEGATIVES = .3, .25, 5


class _Fixed(NegativeSampler):
  """Gives the same two items with unequal weights to each pair."""

  loss_name = 'fixed'

  def draw(self, users, positives, seeds):
    return Draw(tf.constant(_DRAWN[:len(users)]), tf.constant(_WEIGHT[:len(users)]))


class _Second(NegativeSampler):
  """Draws three candidates for each slot and keeps the one with the second highest score."""

  loss_name = 'second'
  chooses = True
  candidates = [[4, 0, 1, 3, 5, 2]] * len(_PAIRS)

  def draw(self, users, positives, seeds):
    return Draw(tf.constant(self.candidates), tf.ones([len(users), 6]))

  def choose(self, positive, candidate, draw, seeds):
    order = tf.argsort(tf.reshape(candidate, [-1, 2, 3]), axis=2, direction='DESCENDING')
    columns = order[:, :, 1] + [0, 3]
    return Choice(columns, tf.sigmoid(positive)[:, None] * tf.constant([[1., 2.]]))


class _Case:
  """A step over a hand-sized block, and the same objective in NumPy."""

  def __init__(self, backbone='mgccf', sampler=_Fixed, propagation='whole', rate=.2, train=None, **changes):
    config = default_config()
    config.train.update(train or {})
    config.model.update({
        'embedding_dim': _SIZE, 'num_knn': 20, 'fanout': (20, 20), 'dropout': rate, 'l2': _L2,
        'proximity': _PROXIMITY, **changes})
    config.train.num_negatives = _NEGATIVES
    config.train.batch_size = 4
    self.config = config = resolved(config)
    user, item = np.array(_OLD + _NEW, np.int32).T
    log = Interactions(user, item, np.arange(len(user)), np.array(list('abcde'), object),
                       np.array(list('uvwxyz'), object))
    none = slice(0, 0)
    context = contexts.cut(
        log, Block(1, slice(len(_OLD), len(user)), none, none, _USERS, _ITEMS),
        Block(0, slice(0, len(_OLD)), none, none, 4, _ITEMS))
    kind = backbones.REGISTRY[backbone]
    self.graph = views.Graph(context.history, 20 if kind.uses_knn else 0)
    self.backbone = kind(_USERS, _ITEMS, config.model, (0, 1))
    self.sampler = sampler(config, context, (0, 1))
    rng = np.random.default_rng(1)
    for variable in self.backbone.trainable_variables:
      variable.assign(rng.normal(size=variable.shape) * .8)
    self.optimizer = optimizers.adam(.01, self.backbone.trainable_variables)
    self.step = TrainStep(
        config, context, self.graph, self.backbone, self.sampler,
        distillation.REGISTRY['none'](config, context, None, (0, 1)), self.optimizer, propagation)
    self._whole, self._rate, self._name = propagation == 'whole', rate, backbone

  def weights(self):
    """The model's weights by name, float64."""
    return {name: v.numpy().astype(np.float64)
            for name, v in self.backbone.named_variables().items()}

  def view(self, seeds):
    # Another stream than the step's: what is drawn there makes no difference.
    return self.graph.whole() if self._whole else self.graph.sampled(seeds.child('view'))

  def found(self, pairs=None, seed=tuple(_SEED)):
    """The step's losses and their gradient by weight."""
    users, items = (tf.constant(part, tf.int32) for part in np.array(pairs or _PAIRS).T)
    seeds = Seeds(tf.constant(seed))
    with tf.GradientTape() as tape:
      losses = self.step.losses(self.view(seeds), users, items, seeds)
      total = sum(losses.values())
    names = self.backbone.named_variables()
    gradients = tape.gradient(total, list(names.values()))
    return losses, {name: tf.convert_to_tensor(value).numpy()
                    for name, value in zip(names, gradients)}

  def expected(self, weights=None, chosen=None, pairs=None, seed=tuple(_SEED)):
    """The terms by name.

    Args:
      weights: by name; None takes the model's.
      chosen: [B, 2] items and [B, 2] weights of the sampler; None takes the fixed ones.
      pairs: the batch.
      seed: of the step.
    """
    weights, pairs = weights or self.weights(), pairs or _PAIRS
    users, positives = np.array(pairs).T
    draws, count = objective.Draws(seed), self.sampler.num_slots
    graph = objective.Graph(_OLD + _NEW, _USERS, _ITEMS)
    uniform, valid = objective.uniform_negatives(
        draws, users, set(_NEW), _ITEMS, _NEGATIVES - count)
    drawn, weight = chosen or (_DRAWN, _WEIGHT)
    mates = None
    if self._name == 'mgccf' and self.config.model.proximity:
      mates = [objective.partners(draws, graph.near[relation], nodes)
               for relation, nodes in (('uu', users), ('ii', positives))]
    asked = {'u': np.arange(_USERS), 'i': np.arange(_ITEMS)}
    if self._rate:
      # Rows of the masks are the distinct nodes in the order in which the step meets them.
      distinct = lambda *parts: np.array(list(dict.fromkeys(
          int(node) for part in parts for node in np.ravel(part) if node is not None)))
      asked = {'u': distinct(users, mates[0]), 'i': distinct(positives, np.concatenate(
          [uniform, np.array(drawn)[:len(users)]], axis=1), mates[1])}
    layers = objective.MODELS[self._name](weights, graph, self._rate, draws).encode(asked, self._whole)
    final = {kind: dict(zip(asked[kind], layers[kind][-1])) for kind in 'ui'}
    table = {'u': weights['user_table'], 'i': weights['item_table']}
    terms = {'bpr': 0., self.sampler.loss_name: 0., 'l2': 0., 'proximity': 0.}
    for row, (user, positive) in enumerate(pairs):
      u, p = final['u'][user], final['i'][positive]
      near, far = ([final['i'][item] for item in np.asarray(items)[row]] for items in (uniform, drawn))
      far = far[:count]
      terms['bpr'] += objective.bpr(u, p, near, valid[row])
      terms[self.sampler.loss_name] += objective.bpr(u, p, far, weight[row])
      terms['l2'] += _L2 * objective.half_squares(u, p, *near, *far)
      for kind, node, mate in zip('ui', (user, positive), [m[row] for m in mates or ()]):
        if mate is not None:
          for rows in (final[kind], table[kind]):
            terms['proximity'] += _PROXIMITY * np.sum((rows[node] - rows[mate]) ** 2)
    if not count:
      del terms[self.sampler.loss_name]
    if mates is None:
      del terms['proximity']
    return {name: value / len(pairs) for name, value in terms.items()}

  def expected_gradient(self):
    """Central differences of the sum of the terms, by weight."""
    weights, result = self.weights(), {}
    for name, value in weights.items():
      result[name] = np.zeros_like(value)
      for place in np.ndindex(value.shape):
        start, total = value[place], []
        for shift in (1e-5, -1e-5):
          value[place] = start + shift
          total.append(sum(self.expected(weights).values()))
        value[place] = start
        result[name][place] = (total[0] - total[1]) / 2e-5
    return result


_CASES = [('mgccf', 'whole', .2), ('mgccf', 'sampled', 0.), ('lightgcn', 'whole', 0.),
          ('lightgcn', 'sampled', 0.), ('pinsage', 'whole', 0.)]


@pytest.mark.parametrize('backbone,propagation,rate', _CASES)
def test_every_term_equals_numpy(backbone, propagation, rate):
  case = _Case(backbone, propagation=propagation, rate=rate)
  losses, _ = case.found()
  expected = case.expected()
  assert list(losses) == [name for name in ('bpr', 'fixed', 'l2', 'proximity') if name in expected]
  for name, value in expected.items():
    assert value > 0. and float(losses[name]) == pytest.approx(value, rel=1e-4), name


@pytest.mark.parametrize('backbone,propagation,rate', _CASES[:3])
def test_the_gradient_is_that_of_the_sum(backbone, propagation, rate):
  case = _Case(backbone, propagation=propagation, rate=rate)
  _, gradients = case.found()
  expected = case.expected_gradient()
  assert gradients.keys() == expected.keys()
  for name, value in expected.items():
    np.testing.assert_allclose(gradients[name], value, rtol=2e-3, atol=1e-4, err_msg=name)


def test_a_step_without_sampler_l2_and_proximity_has_bpr_only():
  case = _Case(sampler=NoSampler, rate=0., l2=0., proximity=0.)
  losses, _ = case.found()
  assert list(losses) == ['bpr']
  assert float(losses['bpr']) == pytest.approx(case.expected()['bpr'], rel=1e-4)


def test_only_chosen_candidates_count():
  """By the current scores, in the triplet term and in L2; the candidates left out count nowhere."""
  case = _Case('lightgcn', sampler=_Second, rate=0.)
  users, items = (v.numpy() for v in case.backbone.representer(case.graph)())
  chosen, weight = [], []
  for user, positive in _PAIRS:
    scores = items @ users[user]
    slots = [sorted(_Second.candidates[0][first:first + 3], key=lambda item: -scores[item])
             for first in (0, 3)]
    chosen.append([slot[1] for slot in slots])
    weight.append([each / (1 + np.exp(-scores[positive])) for each in (1., 2.)])
  losses, _ = case.found()
  expected = case.expected(chosen=(chosen, weight))
  for name, value in expected.items():
    assert float(losses[name]) == pytest.approx(value, rel=1e-4), name


def test_scores_that_choose_have_no_gradient():
  case = _Case('lightgcn', sampler=_Second, rate=0., l2=0.)
  seen = []
  choose = case.sampler.choose

  def recorded(positive, candidate, draw, seeds):
    choice = choose(positive, candidate, draw, seeds)
    seen.append((positive, candidate, choice.weight))
    return choice

  case.sampler.choose = recorded
  users, items = (tf.constant(part, tf.int32) for part in np.array(_PAIRS).T)
  with tf.GradientTape() as tape:
    seeds = Seeds(tf.constant(_SEED))
    case.step.losses(case.view(seeds), users, items, seeds)
    total = sum(tf.reduce_sum(part) for part in seen[0])
  assert not any(gradient is not None
                 for gradient in tape.gradient(total, case.backbone.trainable_variables))


def _adam(weights, gradients, moments, number, rate=.01):
  """One update of Adam in NumPy; `moments` by name are changed in place."""
  for name, gradient in gradients.items():
    m, v = moments.setdefault(name, (np.zeros_like(gradient), np.zeros_like(gradient)))
    m, v = .9 * m + .1 * gradient, .999 * v + .001 * gradient ** 2
    moments[name] = m, v
    weights[name] = weights[name] - rate * (m / (1 - .9 ** number)) / (
        np.sqrt(v / (1 - .999 ** number)) + 1e-8)


def test_one_update_is_adams_and_lowers_the_objective():
  case = _Case(rate=.2)
  before, weights = sum(case.expected().values()), case.weights()
  gradients = case.expected_gradient()
  _adam(weights, gradients, {}, 1)
  users, items = (tf.constant(part, tf.int32) for part in np.array(_PAIRS).T)
  seeds = Seeds(tf.constant(_SEED))
  found = case.step._update(case.view(seeds), users, items, seeds)
  assert float(found['loss']) == pytest.approx(before, rel=1e-4)
  for name, value in case.weights().items():
    # The first update of Adam is as long where the gradient is tiny, and rounding decides its sign.
    clear = np.abs(gradients[name]) > 1e-3
    assert clear.mean() > .5
    np.testing.assert_allclose(value[clear], weights[name][clear], rtol=0., atol=1e-4)
  assert sum(case.expected().values()) < before - .01


def test_a_stretch_runs_its_own_steps_in_order():
  """Steps 1 and 2 of an epoch of 10 pairs, 4 a step: the last one is short. Sums over the steps."""
  case, other = (_Case(sampler=NoSampler, rate=0.) for _ in range(2))
  order = np.array([10, 3, 7, 1, 0, 9, 5, 2, 8, 4], np.int32)
  run = case.step.compile()
  seed = tf.constant([5, 6])
  totals = run(tf.constant(order), seed, tf.constant(1), tf.constant(2)).numpy()
  assert case.step.loss_names == ['bpr', 'l2', 'proximity', 'loss']
  weights, moments, expected = other.weights(), {}, np.zeros(4)
  for number, rows in ((1, order[4:8]), (2, order[8:])):
    pairs = [_NEW[row] for row in rows]
    below = tuple(tf.random.experimental.stateless_fold_in(seed, number).numpy().tolist())
    terms = other.expected(pairs=pairs, seed=below)
    expected += [*(terms[name] for name in ('bpr', 'l2', 'proximity')), sum(terms.values())]
    _, gradients = other.found(pairs, below)
    _adam(weights, gradients, moments, number)
    for name, variable in other.backbone.named_variables().items():
      variable.assign(weights[name])
  np.testing.assert_allclose(totals, expected, rtol=1e-3)
  for name, value in case.weights().items():
    np.testing.assert_allclose(value, weights[name], rtol=0., atol=5e-4, err_msg=name)
  assert int(case.optimizer.iterations) == 2 and case.step.num_traces == 1
