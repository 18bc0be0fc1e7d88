"""One behaviour for every registered sampler; a new one is tested by its line in the registry."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import negatives
from graphsane_tf.evaluation import ranking
from graphsane_tf.negatives import ranked
from graphsane_tf.negatives.base import Draw, NegativeSampler
from graphsane_tf.random import Seeds
from graphsane_tf.testing import samplers as checks
from graphsane_tf.testing.problems import sample, small

SAMPLERS = sorted(negatives.REGISTRY)


@pytest.fixture(scope='module', name='problem')
def _problem():
  return small()


@pytest.mark.parametrize('name', SAMPLERS)
class TestEverySampler(checks.Suite):

  def test_reservoir_larger_than_unobserved_set(self, name):
    problem = small(num_items=20, sane__start_rank=1, sane__size=50, pinsage__start_rank=1,
                    nscaching__size=50)
    checks.check_draws(negatives.REGISTRY[name], problem)
    checks.check_distribution(negatives.REGISTRY[name], problem, 'nearly_all')

  def test_chunks_do_not_matter(self, name, problem, monkeypatch):
    context = problem.context
    def draws():
      return sample(problem.refreshed(negatives.REGISTRY[name]), context.users, context.items,
                    problem.user_vectors, problem.item_vectors, 5)[0].numpy()
    whole = draws()
    monkeypatch.setattr(ranking, '_CHUNK_FLOATS', 100)
    monkeypatch.setattr(ranked, '_CHUNK_FLOATS', 200)
    if name != 'nscaching':  # Its caches are random by chunk.
      np.testing.assert_array_equal(whole, draws())
    checks.check_draws(negatives.REGISTRY[name], problem)


@pytest.mark.parametrize('name', SAMPLERS)
def test_draws_know_their_probability(name, problem):
  """What corrects a softmax is what the sampler states; ESNS counts one try where it may make several."""
  sampler, context = problem.refreshed(negatives.REGISTRY[name]), problem.context
  draw = sampler.draw(tf.constant(context.users), tf.constant(context.items), Seeds(tf.constant([3, 4])))
  if draw.log_probability is None:
    assert sampler.chooses or not sampler.num_slots  # Candidates are uniform.
    return
  assert draw.log_probability.shape == draw.items.shape
  compared = 0
  for user, positive, items, log_probability in zip(
      context.users, context.items, draw.items.numpy(), draw.log_probability.numpy()):
    stated = sampler.probabilities(user, positive, problem.scores(user))
    drawn = np.exp(log_probability)
    uniform = np.isclose(drawn, 1. / context.num_items)
    if name == 'esns':
      assert np.all((drawn <= stated[items] * 1.001) | uniform)
    else:
      np.testing.assert_allclose(drawn[~uniform], stated[items][~uniform], rtol=1e-3)
    compared += (~uniform).sum()
  assert compared > len(context.users)


class _Unmasked(negatives.REGISTRY['dns']):
  """Draws any item, the user's own too."""

  def draw(self, users, positives, seeds):
    shape = [tf.size(users), self.num_slots * self._candidates]
    items = tf.random.stateless_uniform(shape, seeds.next(), 0, self.context.num_items, tf.int32)
    return Draw(items, tf.ones(shape))


class _WrongSign(negatives.REGISTRY['dns']):
  """Takes the easiest candidate."""

  def choose(self, positive, candidate, draw, seeds):
    return super().choose(positive, -candidate, draw, seeds)


class _WrongRank(negatives.REGISTRY['pns']):
  """Draws from the end of the ranking."""

  def refresh(self, user_vectors, item_vectors, epoch):
    super().refresh(user_vectors, -item_vectors, epoch)
    self._stated = type(self).__mro__[1](self.config, self.context, self.seed)
    self._stated.refresh(user_vectors, item_vectors, epoch)

  def probabilities(self, user, positive, scores):
    return self._stated.probabilities(user, positive, scores)


class _Forgetful(NegativeSampler):
  """Keeps its state where no checkpoint looks, and all of it."""

  refresh_epochs = 1

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    self.table = np.zeros((context.num_users, context.num_items), np.float32)

  def refresh(self, user_vectors, item_vectors, epoch):
    scores = tf.matmul(user_vectors, item_vectors, transpose_b=True).numpy()
    scores[self.context.positives.matrix().toarray() > 0] = -np.inf
    self.table = scores

  def draw(self, users, positives, seeds):
    top = tf.math.top_k(tf.gather(self.table, users), self.num_slots)
    return Draw(top.indices, tf.cast(tf.math.is_finite(top.values), tf.float32))


class TestChecksCatchMistakes:
  """The checks fail for samplers that are wrong."""

  def test_missing_mask(self, problem):
    with pytest.raises(AssertionError):
      checks.check_draws(_Unmasked, problem)

  @pytest.mark.parametrize('kind', [_Unmasked, _WrongSign, _WrongRank])
  def test_wrong_distribution(self, problem, kind):
    with pytest.raises(AssertionError):
      checks.check_distribution(kind, problem, 'usual')

  def test_lost_state(self, problem, tmp_path):
    with pytest.raises(AssertionError):
      checks.check_checkpoint(_Forgetful, problem, tmp_path)

  def test_dense_state(self, problem):
    with pytest.raises(AssertionError):
      checks.check_memory(_Forgetful, problem)

  def test_not_random(self, problem):
    with pytest.raises(AssertionError):
      checks.check_reproducible(_Forgetful, problem)

  def test_unstated_probabilities(self, problem):
    with pytest.raises(AssertionError):
      checks.check_distribution(_Forgetful, problem, 'usual')
