"""Section 5.2 against NumPy: histograms, shift, prior, posterior, item probabilities, draws."""
import numpy as np
import pytest
import scipy.special
import scipy.stats
import tensorflow as tf

from graphsane_tf.config import resolved
from graphsane_tf.negatives import ranked, sane
from graphsane_tf.negatives.sane import posterior
from graphsane_tf.random import Seeds
from tests import logs


def _oracle(context, config, user_vectors, item_vectors, category, user):
  """Every quantity of one user's reservoir, by plain loops over the definitions."""
  options = config.sane
  clusters = int(category.max()) + 1
  block = context.block.matrix().toarray()
  previous = context.previous.matrix().toarray()
  excluded = context.positives.matrix().toarray()
  if options.exclude_history:
    excluded = context.history.matrix().toarray()
  scores = user_vectors[user] @ item_vectors.T
  free = [j for j in np.argsort(-scores, kind='stable') if not excluded[user, j]]
  first = max(1, min(options.start_rank, int(options.max_start_share * context.num_items) + 1))
  reservoir = free[first - 1:first - 1 + options.size]
  histogram = lambda rows: np.bincount(category[rows[user] > 0], minlength=clusters)
  now, before = histogram(block), histogram(previous)
  shift = (now / now.sum() - before / before.sum()
           if now.sum() and before.sum() else np.zeros(clusters))
  alpha = options.strength * len(reservoir) * scipy.special.softmax(
      options.prior_sign * shift / options.temperature)
  counts = np.bincount(category[reservoir], minlength=clusters)
  theta = (alpha + counts) / (alpha + counts).sum()
  weight = theta[category[reservoir]]
  return {'reservoir': reservoir, 'shift': shift, 'alpha': alpha, 'counts': counts, 'theta': theta,
          'probability': weight / weight.sum()}


@pytest.fixture(name='setting', params=[
    {}, {'sane__exclude_history': True}, {'sane__start_rank': 1},
    {'sane__strength': 3., 'sane__temperature': .2}, {'sane__prior_sign': 1},
    # More than there are: some reservoirs are not full.
    {'sane__strength': 3., 'sane__size': 58, 'sane__exclude_history': True}])
def setting_fixture(request):
  log = logs.random_log(rows=900, users=30, items=60, categories=4)
  config = resolved(logs.tiny_config(
      sampler='sane', clusters='categories', sane__max_start_share=.1, **request.param))
  context = logs.context_of(log, 2, dim=6)
  sampler = sane.Sane(config, context, (0, 2))
  rng = np.random.default_rng(3)
  user_vectors = rng.normal(size=(context.num_users, 6)).astype(np.float32)
  item_vectors = rng.normal(size=(context.num_items, 6)).astype(np.float32)
  sampler.refresh(tf.constant(user_vectors), tf.constant(item_vectors), 0)
  return config, context, sampler, user_vectors, item_vectors


def test_reservoir_and_probabilities_follow_the_equations(setting):
  config, context, sampler, user_vectors, item_vectors = setting
  items, cumulative = sampler.items.numpy(), sampler.cumulative.numpy()
  probability = np.diff(cumulative, axis=1, prepend=0.)
  for slot, user in enumerate(sampler.users.numpy()):
    expected = _oracle(context, config, user_vectors, item_vectors, context.item_category, user)
    size = len(expected['reservoir'])
    np.testing.assert_array_equal(items[slot, :size], expected['reservoir'])
    np.testing.assert_allclose(probability[slot, :size], expected['probability'], atol=1e-5)
    np.testing.assert_allclose(probability[slot, size:], 0, atol=1e-6)


def test_a_device_computes_the_same(setting):
  """TensorFlow's device is the CPU here; all of a rebuild after the ranking."""
  _, _, sampler, _, _ = setting
  for start, stop in ((0, sampler.table.num_slots), (3, 9)):
    found = sampler.running_sums(start, stop, on_device=True)
    assert isinstance(found, tf.Tensor)
    np.testing.assert_allclose(found, sampler.running_sums(start, stop, on_device=False), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(sampler.running_sums(start, stop), sampler.cumulative[start:stop])


@pytest.mark.parametrize('seed', [0, 1, 2])
def test_draws_follow_the_probabilities(setting, seed):
  _, context, sampler, _, _ = setting
  probability = np.diff(sampler.cumulative.numpy(), axis=1, prepend=0.)
  slot = 4
  user = int(sampler.users.numpy()[slot])
  users = tf.fill([5000], user)
  draw = sampler.draw(users, users, Seeds(tf.constant([seed, 5])))
  counts = np.bincount(draw.items.numpy().ravel(), minlength=context.num_items)
  expected = np.zeros(context.num_items)
  np.add.at(expected, sampler.items.numpy()[slot], probability[slot])
  assert not counts[expected < 1e-7].any()
  keep = expected > 1e-7
  expected = expected[keep] / expected[keep].sum() * counts.sum()
  assert scipy.stats.chisquare(counts[keep], expected).pvalue > 1e-3


def test_a_reversed_sign_is_noticed():
  """The oracle above would be worthless if the sign made no difference to it."""
  right = posterior.prior(np.array([[.5, -.5, 0.]]), 1., 10.)[0]
  assert right[1] > right[2] > right[0]
  np.testing.assert_allclose(right.sum(), 10., rtol=1e-6)


def test_shift_is_zero_without_a_previous_block():
  current = np.array([[1., 3.], [2., 2.], [0., 0.]])
  previous = np.array([[0., 0.], [4., 0.], [1., 1.]])
  np.testing.assert_allclose(
      posterior.interest_shift(current, previous), [[0., 0.], [-.5, .5], [0., 0.]])


def test_posterior_limits():
  counts, shift = np.array([[6., 3., 1.]]), np.array([[.2, -.4, .2]])
  flat = posterior.posterior_mean(posterior.prior(shift, 0., 10.), counts)
  np.testing.assert_allclose(flat, [[.6, .3, .1]], rtol=1e-6)
  strong = posterior.posterior_mean(posterior.prior(shift, 1e6, 10.), counts)
  np.testing.assert_allclose(strong[0], scipy.special.softmax([-.2, .4, -.2]), rtol=1e-4)


def test_hand_computed_case():
  """Two categories; the user went from (3, 1) to (1, 3); Q = 4 with counts (1, 3)."""
  shift = posterior.interest_shift(np.array([[1., 3.]]), np.array([[3., 1.]]))
  np.testing.assert_allclose(shift, [[-.5, .5]])
  alpha = posterior.prior(shift, 1., 4.)
  e = np.exp(1.)
  np.testing.assert_allclose(alpha, [[4 * e / (1 + e), 4 / (1 + e)]], rtol=1e-6)
  theta = posterior.posterior_mean(alpha, np.array([[1., 3.]]))
  np.testing.assert_allclose(theta, [[(4 * e / (1 + e) + 1) / 8, (4 / (1 + e) + 3) / 8]], rtol=1e-6)
  probability = posterior.item_probabilities(theta[:, [0, 1, 1, 1]], np.ones([1, 4]))
  a, b = theta[0]
  np.testing.assert_allclose(probability, [np.array([a, b, b, b]) / (a + 3 * b)], rtol=1e-6)


def test_users_new_to_the_model_get_uniform_negatives():
  log = logs.interactions_of(
      np.concatenate([np.repeat(np.arange(10), 6), np.repeat(np.arange(5, 15), 4)]),
      np.concatenate([np.tile(np.arange(6), 10), np.tile(np.arange(20, 24), 10)]),
      np.zeros(24, int))
  config = resolved(logs.tiny_config(sampler='sane', clusters='categories', sane__start_rank=1,
                                     sane__size=3))
  context = logs.context_of(log, 3)
  new = np.setdiff1d(context.users, np.arange(context.num_old_users))
  assert len(new)
  sampler = sane.Sane(config, context, (0, 3))
  sampler.refresh(tf.ones([context.num_users, 2]), tf.ones([context.num_items, 2]), 0)
  users = tf.fill([4000], int(new[0]))
  drawn = sampler.draw(users, users, Seeds(tf.constant([0, 1]))).items.numpy().ravel()
  taken = context.positives.matrix().toarray()[new[0]] > 0
  counts = np.bincount(drawn, minlength=context.num_items)
  assert not counts[taken].any()
  assert scipy.stats.chisquare(counts[~taken]).pvalue > 1e-3


@pytest.mark.parametrize('items,expected', [(10_000, 201), (5_000, 201), (2_000, 81), (20, 1)])
def test_the_band_starts_earlier_in_small_catalogues(items, expected):
  options = resolved(logs.tiny_config()).sane
  assert ranked.start_rank(options, items) == expected
