"""What must hold for every sampler; each check raises AssertionError where it does not."""
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from graphsane_tf import negatives
from graphsane_tf.random import Seeds
from graphsane_tf.testing.problems import Problem, sample, small

CASES = ('usual', 'new', 'one_item', 'nearly_all')


def check_draws(kind, problem: Problem) -> None:
  """Shapes, types, valid ids, and never a positive of the current block."""
  sampler = problem.refreshed(kind)
  context = problem.context
  taken = context.positives.matrix().toarray() > 0
  for seed in range(4):
    items, weight = sample(sampler, context.users, context.items, problem.user_vectors,
                           problem.item_vectors, seed)
    assert items.dtype == tf.int32 and weight.dtype == tf.float32
    assert items.shape == weight.shape and items.shape[0] == len(context.users)
    assert items.shape[1] >= sampler.num_slots
    items, weight = items.numpy(), weight.numpy()
    assert np.all(np.isfinite(weight)) and np.all(weight >= 0)
    assert np.all((items >= 0) & (items < context.num_items))
    assert not np.any(taken[context.users[:, None], items] & (weight > 0))


def check_loss(kind, problem: Problem) -> None:
  """The loss is one finite number a pair, and pushes the positive up."""
  sampler = problem.refreshed(kind)
  context = problem.context
  users, positives = context.users, context.items
  if not sampler.num_slots:
    return
  seeds = Seeds(tf.constant([0, 1]))
  draw = sampler.draw(tf.constant(users), tf.constant(positives), seeds)
  rows = tf.gather(problem.user_vectors, users)
  positive = tf.reduce_sum(rows * tf.gather(problem.item_vectors, positives), axis=1)
  negative = tf.linalg.matvec(tf.gather(problem.item_vectors, draw.items), rows)
  if sampler.chooses:
    draw = sampler.choose(positive, negative, draw, seeds)
    negative = tf.gather(negative, draw.columns, batch_dims=1)
  with tf.GradientTape() as tape:
    tape.watch([positive, negative])
    loss = sampler.loss(positive, negative, draw)
  up, down = tape.gradient(loss, [positive, negative])
  assert loss.shape == [len(users)] and np.all(np.isfinite(loss))
  assert np.all(up.numpy() <= 1e-6) and np.all(down.numpy() >= -1e-6) and tf.reduce_sum(down) > 0


def check_distribution(kind, problem: Problem, case: str, draws: int = 3000) -> None:
  """Draws of the first slot follow the stated probabilities: chi-square, three fixed seeds."""
  sampler = problem.refreshed(kind)
  user, positive = problem.pair(case)
  stated = sampler.probabilities(user, positive, problem.scores(user))
  if stated is None:
    assert not sampler.num_slots, 'state the probabilities, so that draws can be tested'
    return
  assert stated.shape == (problem.context.num_items,) and np.all(stated >= 0)
  # All zero says that there is nothing to train on.
  if stated.any():
    np.testing.assert_allclose(stated.sum(), 1., rtol=1e-5)
  for seed in (11, 12, 13):
    items, weight = sample(sampler, [user] * draws, [positive] * draws, problem.user_vectors,
                           problem.item_vectors, seed)
    drawn = items.numpy()[:, 0][weight.numpy()[:, 0] > 0]
    assert len(drawn) > draws / 20 or not stated.any()
    observed = np.bincount(drawn, minlength=len(stated)).astype(float)
    assert not observed[stated == 0].any(), 'items were drawn whose probability is zero'
    order = np.argsort(stated)
    # Rare items share a cell, because the test needs five expected draws in each.
    cell = np.minimum(np.cumsum(stated[order]) * len(drawn) // 5, 1e9)
    _, cell = np.unique(cell, return_inverse=True)
    expected = np.bincount(cell, stated[order]) * len(drawn)
    observed = np.bincount(cell, observed[order])
    big = expected > 0
    if big.sum() > 1:
      statistic = ((observed - expected)[big] ** 2 / expected[big]).sum()
      assert scipy.stats.chi2.sf(statistic, big.sum() - 1) > 1e-4


def check_reproducible(kind, problem: Problem) -> None:
  """The same seed gives the same draws in another sampler, another seed others."""
  context = problem.context
  def draws(seed):
    return sample(problem.refreshed(kind), context.users, context.items, problem.user_vectors,
                  problem.item_vectors, seed)[0].numpy()
  first = draws(3)
  np.testing.assert_array_equal(first, draws(3))
  assert not first.size or np.any(first != draws(4))


def check_checkpoint(kind, problem: Problem, folder) -> None:
  """A fresh sampler that reads the state draws and goes on as the one that wrote it."""
  context = problem.context
  sampler = problem.refreshed(kind)
  path = tf.train.Checkpoint(sampler=sampler).write(str(folder / 'state'))
  fresh = problem.sampler(kind)
  tf.train.Checkpoint(sampler=fresh).read(path).assert_existing_objects_matched()
  for epoch in (1, 2):
    one, other = (sample(s, context.users, context.items, problem.user_vectors,
                         problem.item_vectors, 5)[0].numpy() for s in (sampler, fresh))
    np.testing.assert_array_equal(one, other)
    for either in (sampler, fresh):
      if either.refresh_epochs and epoch % either.refresh_epochs == 0:
        either.refresh(problem.user_vectors, problem.item_vectors, epoch)


def check_memory(kind, problem: Problem) -> None:
  """No array of users x items: neither state nor constants."""
  context = problem.context
  sampler = problem.refreshed(kind)
  limit = context.num_users * context.num_items // 3
  for module in (sampler, *sampler.submodules):
    for name, value in vars(module).items():
      if isinstance(value, (np.ndarray, tf.Tensor, tf.Variable)):
        assert np.prod(value.shape) < limit, f'{type(module).__name__}.{name} is {value.shape}'


def check_full_user(kind) -> None:
  """A user who has taken every item has no negative."""
  problem = small(num_items=8, everything=True)
  _, weight = sample(problem.refreshed(kind), [3, 3], [0, 1], problem.user_vectors, problem.item_vectors, 0)
  assert not np.any(weight.numpy()), 'there is nothing to draw'


class Suite:
  """What must hold for every sampler; a subclass is parametrised with `name`."""

  @pytest.fixture
  def problem(self):
    return small()

  def test_draws(self, name, problem):
    check_draws(negatives.REGISTRY[name], problem)

  def test_loss(self, name, problem):
    check_loss(negatives.REGISTRY[name], problem)

  @pytest.mark.parametrize('case', CASES)
  def test_distribution(self, name, problem, case):
    check_distribution(negatives.REGISTRY[name], problem, case)

  def test_reproducible(self, name, problem):
    check_reproducible(negatives.REGISTRY[name], problem)

  def test_checkpoint(self, name, problem, tmp_path):
    check_checkpoint(negatives.REGISTRY[name], problem, tmp_path)

  @pytest.mark.parametrize('num_items', [2, 7])
  def test_tiny_catalogue(self, name, num_items):
    problem = small(num_items=num_items)
    check_draws(negatives.REGISTRY[name], problem)
    check_distribution(negatives.REGISTRY[name], problem, 'usual')
    check_distribution(negatives.REGISTRY[name], problem, 'nearly_all')

  def test_user_who_has_taken_everything(self, name):
    check_full_user(negatives.REGISTRY[name])

  def test_memory(self, name):
    check_memory(negatives.REGISTRY[name], small(num_items=2000, num_users=400, pns__max_depth=300))
