"""The adaptive reservoir: its estimates against NumPy and planted truth, and its behaviour."""
import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from graphsane_tf.config import resolved
from graphsane_tf.data import drift
from graphsane_tf.errors import UserError
from graphsane_tf.graph import csr, views
from graphsane_tf.negatives.sane import Sane, evidence
from graphsane_tf.negatives.sane.posterior import balancing_weights
from graphsane_tf.runs import incremental
from tests import logs
from graphsane_tf.testing import samplers as checks
from graphsane_tf.testing.problems import small

pytestmark = pytest.mark.usefixtures('short_exports')


class _Studied(Sane):
  """A sampler that has looked at a model before, as the trainer lets it."""

  def refresh(self, user_vectors, item_vectors, epoch):
    self.study(lambda: (user_vectors[:self.context.num_old_users],
                        item_vectors[:self.context.num_old_items]))
    super().refresh(user_vectors, item_vectors, epoch)


@pytest.mark.parametrize('changes', [
    {}, {'sane__balance': 0.}, {'sane__max_risk': 1e3},
    {'sane__candidates': 2}, {'sane__soft_membership': True},
    {'num_items': 7}])
class TestBehaviour:

  def test_draws_and_loss(self, changes):
    problem = small(sane_variant='adaptive', **changes)
    checks.check_draws(_Studied, problem)
    checks.check_loss(_Studied, problem)

  @pytest.mark.parametrize('case', ['usual', 'new', 'one_item', 'nearly_all'])
  def test_distribution(self, changes, case):
    checks.check_distribution(_Studied, small(sane_variant='adaptive', **changes), case)

  def test_reproducible_and_saved(self, changes, tmp_path):
    problem = small(sane_variant='adaptive', **changes)
    checks.check_reproducible(_Studied, problem)
    checks.check_checkpoint(_Studied, problem, tmp_path)


def test_ranks_against_a_loop():
  rng = np.random.default_rng(0)
  users, items = rng.normal(size=(6, 3)).astype('f'), rng.normal(size=(9, 3)).astype('f')
  items[4] = items[7]  # Equal scores: the lower number first.
  excluded = csr.from_pairs([0, 0, 3, 5], [1, 8, 2, 0], 6, 9)
  pairs = np.array([(u, i) for u in range(6) for i in range(9) if not excluded.contains([u], [i])])
  found = evidence.pair_ranks(tf.constant(users), tf.constant(items), *pairs.T, excluded)
  for (user, item), rank in zip(pairs, found):
    scores = users[user] @ items.T
    free = [j for j in range(9) if not excluded.contains([user], [j])]
    order = sorted(free, key=lambda j: (-np.float32(scores[j]), j))
    assert rank == 1 + order.index(item) or np.isclose(scores[order[rank - 1]], scores[item])
  assert found[np.flatnonzero((pairs == (1, 7)).all(1))] == 1 + found[
      np.flatnonzero((pairs == (1, 4)).all(1))]


def test_ranks_do_not_depend_on_the_chunks(monkeypatch):
  rng = np.random.default_rng(0)
  vectors = [tf.constant(rng.normal(size=(n, 4)).astype('f')) for n in (40, 30)]
  users, items = np.repeat(np.arange(40), 2), rng.integers(30, size=80)
  nothing = csr.from_pairs([], [], 40, 30)
  whole = evidence.pair_ranks(*vectors, users, items, nothing)
  monkeypatch.setattr(evidence, '_CHUNK_FLOATS', 100)
  np.testing.assert_array_equal(whole, evidence.pair_ranks(*vectors, users, items, nothing))


def test_risk_is_takings_over_chances_made_monotone():
  # Three users; bins 1, 2, 3, 4-5, 6-7, 8-10: rates 2/3, 1/3, 2/3, 1/6, 0, 1/9.
  curve = evidence.risk_curve(np.array([1, 1, 2, 3, 3, 4, 9]), 3, 10)
  np.testing.assert_array_equal(curve.first, [1, 2, 3, 4, 6, 8])
  # Ranks 2 and 3 rise, and so do 6 to 10: both are pooled by their room.
  np.testing.assert_allclose(curve.rate, [2 / 3, 1 / 2, 1 / 2, 1 / 6, 1 / 15, 1 / 15])
  np.testing.assert_allclose(curve.passed, [0, 2 / 7, 3 / 7, 5 / 7, 6 / 7, 6 / 7])
  assert curve.uniform == pytest.approx(7 / 30)
  # All ten ranks are among the first 20: their mean is 7/30.
  assert [curve.first_rank(risk) for risk in (3., 2.2, 1., .5, .1)] == [1, 2, 4, 6, 8]


def test_the_band_is_relative_to_the_first_twenty_ranks():
  # Ten users; ranks 1 to 15 are taken four times each, 16 to 31 twice, 32 to 63 once, the rest never.
  ranks = np.concatenate([np.repeat(np.arange(1, 16), 4), np.repeat(np.arange(16, 32), 2),
                          np.arange(32, 64)])
  curve = evidence.risk_curve(ranks, 10, 1000)
  top = (15 * .4 + 5 * .2) / 20
  for share, first in ((.4 / top, 1), (.2 / top, 16), (.1 / top, 32), (.09 / top, 64)):
    assert curve.first_rank(share + 1e-9) == first
    assert curve.first_rank(share - 1e-9) > first or first == 64


def test_balancing_weights_against_a_loop():
  rng = np.random.default_rng(0)
  items = np.stack([rng.permutation(12)[:5] for _ in range(7)])
  items[3, 3:] = items[5, :] = -1  # Short and empty reservoirs.
  pairs = rng.integers(1, 9, 7)
  count = np.zeros(14)
  for row, number in zip(items, pairs):
    for item in row[row >= 0]:
      count[item] += number
  for balance in (.5, 1.):
    expected = [1. if not n else n ** -balance for n in count]
    np.testing.assert_allclose(balancing_weights(items, pairs, 14, balance), expected)
  np.testing.assert_array_equal(balancing_weights(items, pairs, 14, 0.), np.ones(14))


@pytest.mark.parametrize('balance', [0., 1.])
def test_balance_evens_out_how_often_items_are_drawn(balance):
  # Every user ranks the same items first; those of their own group come next.
  rng = np.random.default_rng(0)
  log = logs.random_log(rows=3000, users=60, items=200)
  config = resolved(logs.tiny_config(
      sampler='sane', sane__start_rank=1, sane__uniform_theta=True, sane__balance=balance,
      sane__size=50))
  context = logs.context_of(log, 2, dim=10)
  sampler = Sane(config, context, (0, 2))
  popular = np.arange(context.num_items) < 30
  group = rng.integers(9, size=context.num_items)
  users = np.concatenate([np.eye(9)[rng.integers(9, size=context.num_users)],
                          np.ones([context.num_users, 1])], axis=1)
  items = np.concatenate([np.eye(9)[group], 2. * popular[:, None]], axis=1)
  items += .01 * rng.normal(size=items.shape)
  sampler.refresh(tf.constant(users, tf.float32), tf.constant(items, tf.float32), 0)
  drawn = np.zeros(context.num_items)
  for user, positive in zip(context.users, context.items):
    if user in sampler.table.users:
      drawn += sampler.probabilities(user, positive, np.zeros(context.num_items))
  ratio = drawn[popular].mean() / drawn[~popular].mean()
  if balance:
    assert ratio < 1.6
  else:
    assert ratio > 4.


def test_risk_of_a_planted_rate_is_found():
  rng = np.random.default_rng(0)
  number, users = 3000, 2000
  rate = .2 / np.arange(1, number + 1) ** .7
  taken = rng.random((users, number)) < rate
  curve = evidence.risk_curve(np.nonzero(taken)[1] + 1, users, number)
  for first, found in zip(curve.first[:-1], curve.rate[:-1]):
    assert found == pytest.approx(rate[int(first * 1.2) - 1], rel=.25)
  # .2 / r^.7 = .01 at r = 72.
  assert 51 <= curve.first_rank(.01 / rate[:20].mean()) <= 91


@pytest.mark.parametrize('density', [.1, .02])
def test_the_band_does_not_depend_on_how_much_users_take(density):
  # The same preferences in a log where users take five times as much begin the band at the same rank.
  rng = np.random.default_rng(0)
  number, users = 2000, 4000
  taken = rng.random((users, number)) < density / np.arange(1, number + 1) ** .5
  curve = evidence.risk_curve(np.nonzero(taken)[1] + 1, users, number)
  # The mean of 1 / sqrt(r) over ranks 1 to 20 is .38: a quarter of that is reached at rank 111.
  assert curve.first_rank(.25) in (91, 128)


def test_sampled_pairs_are_all_pairs_of_some_users(monkeypatch):
  monkeypatch.setattr(evidence, 'MAX_PAIRS', 12)
  users, items = np.repeat(np.arange(10), 3), np.arange(30)
  found, taken, number = evidence.sampled_pairs(np.random.default_rng(0), users, items)
  assert number == 4 and len(found) == 12
  np.testing.assert_array_equal(taken // 3, found)


def _planted_counts(concentration, rng, users=4000, categories=8, rows=10):
  shares = rng.dirichlet(np.ones(categories), users) * .9 + .1 / categories
  moved = np.stack([rng.dirichlet(concentration * share) for share in shares])
  return np.stack([rng.multinomial(rows, share) for share in moved]).astype(float), shares


@pytest.mark.parametrize('concentration', [2., 10., 60.])
def test_planted_concentration_is_found(concentration):
  counts, shares = _planted_counts(concentration, np.random.default_rng(1))
  assert evidence.fit_concentration(counts, shares) == pytest.approx(concentration, rel=.15)


def test_without_any_shift_the_concentration_is_large_and_nobody_moves():
  rng = np.random.default_rng(2)
  shares = rng.dirichlet(np.ones(6), 3000) * .9 + .1 / 6
  counts = np.stack([rng.multinomial(10, share) for share in shares]).astype(float)
  concentration = evidence.fit_concentration(counts, shares)
  assert concentration > 300
  shift, _ = evidence.evidence_shift(counts, shares, concentration)
  assert np.abs(shift).max() < .05


def test_log_evidence_sums_to_one_over_all_counts():
  shares = np.array([[.2, .5, .3]])
  total = 0.
  for a in range(5):
    for b in range(5 - a):
      counts = np.array([[a, b, 4 - a - b]], float)
      ways = np.exp(scipy.special.gammaln(5) - scipy.special.gammaln(counts + 1).sum())
      total += ways * np.exp(evidence.log_evidence(counts, shares, 7.)[0])
  assert total == pytest.approx(1.)


def test_evidence_shift_is_the_posterior_mean_minus_the_long_run():
  counts, shares = np.array([[9., 0., 1.], [1., 0., 0.]]), np.array([[.2, .4, .4], [.5, .25, .25]])
  shift, real = evidence.evidence_shift(counts, shares, 5.)
  for row in range(2):
    posterior = (5. * shares[row] + counts[row]) / (5. + counts[row].sum())
    np.testing.assert_allclose(shift[row], posterior - shares[row])
  # Nine of ten in a category with a long-run share of a fifth is a shift; one row alone is not.
  np.testing.assert_array_equal(real, [True, False])


@pytest.mark.parametrize('size', [20, 55])
def test_probabilities_follow_their_definition(size):
  """Reservoirs of 55 items are not full: nobody has that many left."""
  log = logs.random_log(rows=900, users=30, items=60, categories=4)
  config = resolved(logs.tiny_config(
      sampler='sane', clusters='categories', sane_variant='adaptive', sane__strength=2.,
      sane__temperature=.05, sane__size=size))
  context = logs.context_of(log, 2, dim=6)
  sampler = Sane(config, context, (0, 2))
  vectors = [tf.random.stateless_normal([n, 6], [0, n]) for n in (context.num_users, context.num_items)]
  sampler.refresh(*vectors, 0)
  sampler.shift.concentration.assign(3.)
  number = len(sampler.users)
  found = sampler.explain(0, number)
  category = log.item_category[:context.num_items]
  before = context.before.matrix().toarray()
  total = np.bincount(category[context.before.indices], minlength=4) + 1e-3
  moved = 0
  for slot, user in enumerate(sampler.users.numpy()):
    history = np.bincount(category[before[user] > 0], minlength=4)
    now = np.bincount(category[context.block.matrix().toarray()[user] > 0], minlength=4)
    long_run = (history + total / total.sum()) / (history.sum() + 1)
    shift, real = evidence.evidence_shift(now[None].astype(float), long_run[None], 3.)
    shift = shift[0] * (real[0] and history.sum() > 0)
    moved += bool(shift.any())
    count = sampler.table.count.numpy()[slot]
    items = sampler.items.numpy()[slot][:count]
    tilt = np.exp(-shift / .05)[category[items]]
    valid = np.arange(sampler.size) < sampler.table.count.numpy()[:, None]
    held = ((sampler.items.numpy()[:, :, None] == items) & valid[:, :, None]).any(axis=1)
    weight = (1. + 2. * tilt / tilt.mean()) / (held.T @ context.positives.degree[sampler.users.numpy()])
    np.testing.assert_allclose(found['probability'][slot][:count], weight / weight.sum(), rtol=1e-4)
    assert not found['probability'][slot][count:].any()
  assert 0 < moved < number


def test_however_cold_the_prior_probabilities_are_numbers():
  config = resolved(logs.tiny_config(sampler='sane', clusters='categories', sane_variant='adaptive',
                                     sane__temperature=1e-4))
  context = logs.context_of(logs.random_log(rows=900, users=30, items=60, categories=4), 2, dim=6)
  sampler = Sane(config, context, (0, 2))
  sampler.refresh(*(tf.random.stateless_normal([n, 6], [0, n]) for n in (context.num_users, context.num_items)), 0)
  sampler.shift.concentration.assign(3.)
  found = sampler.explain(0, len(sampler.users))
  assert np.abs(found['shift']).max() > .1
  np.testing.assert_allclose(found['probability'].sum(axis=1), 1., rtol=1e-5)


@pytest.mark.parametrize('block', [1, 2, 3])
def test_on_the_planted_log_movers_have_the_evidence(block):
  log, truth = drift.generate('default'), drift.truth('default')
  context = logs.context_of(log, block, dim=4)
  config = resolved(logs.tiny_config(sampler='sane', clusters='categories', sane_variant='adaptive'))
  sampler = Sane(config, context, (0, block))
  sampler.refresh(tf.random.stateless_normal([context.num_users, 4], [0, 1]),
                  tf.random.stateless_normal([context.num_items, 4], [0, 2]), 0)
  number = len(sampler.users)
  shift = sampler.explain(0, number)['shift']
  users = sampler.users.numpy()
  real = np.abs(shift).sum(axis=1) > 0
  moved, stayed = truth.move_time[users] == block, ~truth.mover[users]
  assert real[moved].mean() > .8 and real[stayed].mean() < .1
  found = moved & real
  assert np.mean(shift[found].argmin(1) == truth.lost_category[users][found]) > .8
  assert np.mean(shift[found].argmax(1) == truth.gained_category[users][found]) > .8


def test_the_band_begins_where_the_risk_has_fallen():
  log = drift.generate('small')
  context = logs.context_of(log, 1, dim=4)
  config = resolved(logs.tiny_config(sampler='sane', sane_variant='adaptive', sane__max_risk=.5,
                                     sane__size=20))
  sampler = Sane(config, context, (0, 1))
  rng = np.random.default_rng(0)
  # A model that knows a little about the block: it scores the block's own items higher.
  users = np.eye(context.num_old_users, dtype='f')
  items = rng.normal(size=(context.num_old_items, context.num_old_users)).astype('f')
  inside = (context.users < context.num_old_users) & (context.items < context.num_old_items)
  items[context.items[inside], context.users[inside]] += 1.5
  sampler.study(lambda: (tf.constant(users), tf.constant(items)))
  curve = sampler.band.risk
  assert sampler.first_rank == curve.first_rank(.5) > 1
  place = np.searchsorted(curve.first, sampler.first_rank)
  top = np.repeat(curve.rate, np.diff(np.append(curve.first, context.num_old_items + 1)))[:20].mean()
  assert curve.rate[place] <= .5 * top < curve.rate[place - 1]
  assert sampler.report().facts['risk']['rate'] == curve.rate.tolist()


@pytest.mark.parametrize('found, size, first', [(4, 38, 3), (3, 38, 3), (4, 30, 4), (5, 30, None), (0, 30, 1)])
def test_a_learned_band_ends_within_the_catalogue_and_begins_in_its_first_tenth(monkeypatch, found, size, first):
  context = logs.context_of(logs.random_log(rows=900, users=40, items=40), 1, dim=4)
  assert context.num_items == 40
  sampler = Sane(resolved(logs.tiny_config(sampler='sane', sane_variant='adaptive', sane__size=size)), context, (0, 1))
  fixed = sampler.first_rank
  curve = evidence.RiskCurve
  monkeypatch.setattr(curve, 'first_rank', lambda self, max_risk: found)
  sampler.study(lambda: (tf.ones([context.num_old_users, 4]), tf.ones([context.num_old_items, 4])))
  assert sampler.first_rank == (first or fixed)


def test_where_the_risk_does_not_fall_the_band_is_fixed():
  log = drift.generate('small')
  context = logs.context_of(log, 1, dim=4)
  config = resolved(logs.tiny_config(sampler='sane', sane_variant='adaptive', sane__size=20))
  sampler = Sane(config, context, (0, 1))
  fixed = sampler.first_rank
  # A model that knows nothing of the block.
  rng = np.random.default_rng(0)
  sampler.study(lambda: [tf.constant(rng.normal(size=(count, 8)).astype('f'))
                         for count in (context.num_old_users, context.num_old_items)])
  assert sampler.band.risk.first_rank(config.sane.max_risk) > .1 * context.num_items
  assert sampler.first_rank == fixed


@pytest.mark.parametrize('field, value', [
    ('band', 'wide'), ('shift', 'none'), ('size', 0), ('start_rank', 0), ('candidates', 0),
    ('max_risk', 0.), ('balance', -1.), ('temperature', -1.), ('strength', -.5)])
def test_a_wrong_value_is_refused(field, value):
  with pytest.raises(UserError, match=f'config.sane.{field} is'):
    resolved(logs.tiny_config(**{f'sane__{field}': value}))


def test_the_band_is_learned_from_the_old_model_on_its_own_graph(tmp_path):
  config = logs.tiny_config(sampler='sane', sane_variant='adaptive', sane__size=20)
  run = incremental.IncrementalRun(config, drift.generate('small'), tmp_path, log=lambda line: None)
  run.run([0, 1])
  found = run.results()['blocks'][1]['sampler']
  model, context = run.load_model(0), run.context(1)
  own = Sane(run.config, context, (config.seed, 1))
  own.study(model.backbone.representer(model.graph))
  assert found['risk'] == own.report().facts['risk'] and found['first_rank'] == own.first_rank
  # The new graph holds the pairs as edges: with it they would rank higher.
  other = Sane(run.config, context, (config.seed, 1))
  graph = views.Graph(context.history.cut(context.num_old_users, context.num_old_items),
                      run.config.model.num_knn)
  other.study(model.backbone.representer(graph))
  assert found['risk'] != other.report().facts['risk']


@pytest.mark.parametrize('variant, changes, learned', [
    ('band', {}, set()), ('band', {'sane__balance': .5}, {'balancing'}),
    ('adaptive', {}, {'first_rank', 'balancing', 'concentration'})])
def test_only_what_is_learned_is_in_checkpoints(variant, changes, learned):
  problem = small(sane_variant=variant, **changes)
  names = {variable.name.split(':')[0] for variable in problem.refreshed(Sane).variables}
  assert names & {'first_rank', 'balancing', 'concentration'} == learned


def test_checkpoints_of_version_0_1_still_open(tmp_path):
  """There the sampler itself held what its band, shift and interests own now."""
  problem = small(sane_variant='adaptive', sane__soft_membership=True)
  sampler = problem.refreshed(_Studied)
  old = tf.Module()
  for name, variable in (
      ('_first', sampler.band.first), ('concentration', sampler.shift.concentration),
      ('balancing', sampler.balancing), ('cumulative', sampler.cumulative),
      ('category', sampler.interests.category), ('membership', sampler.interests.membership)):
    setattr(old, name, tf.Variable(variable))
  old.table, old.clusters = tf.Module(), tf.Module()
  old.table.items, old.table.count = tf.Variable(sampler.table.items), tf.Variable(sampler.table.count)
  old.clusters.centres = tf.Variable(sampler.clusters.centres)
  old.clusters._ready = tf.Variable(True)
  path = tf.train.Checkpoint(sampler=old).write(str(tmp_path / 'old'))
  fresh = problem.sampler(_Studied)
  tf.train.Checkpoint(sampler=fresh).read(path).assert_existing_objects_matched()
  assert fresh.first_rank == sampler.first_rank
  for one, other in zip(fresh.variables, sampler.variables):
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize('exclude', [True, False])
def test_a_learned_band_counts_ranks_among_what_a_reservoir_may_hold(exclude, monkeypatch):
  config = resolved(logs.tiny_config(sampler='sane', clusters='categories', sane_variant='adaptive',
                                     sane__exclude_history=exclude))
  context = logs.context_of(logs.random_log(rows=900, users=30, items=60, categories=4), 2, dim=6)
  sampler, asked = Sane(config, context, (0, 2)), []
  pair_ranks = evidence.pair_ranks
  monkeypatch.setattr(evidence, 'pair_ranks', lambda *values: (asked.append(values[4]), pair_ranks(*values))[1])
  sampler.study(lambda: [tf.random.stateless_normal([n, 6], [0, n])
                         for n in (context.num_old_users, context.num_old_items)])
  old = context.before.cut(context.num_old_users, context.num_old_items).matrix().toarray()
  np.testing.assert_array_equal(asked[0].matrix().toarray() > 0, (old > 0) & exclude)
