"""Ends of ranges, stated figures and the way through chunks, for samplers and what they are made of."""
import sys

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import negatives
from graphsane_tf.errors import UserError
from graphsane_tf.graph import csr
from graphsane_tf.negatives import dns, esns, nscaching, pinsage, pns, ranked, warp
from graphsane_tf.negatives.base import Choice, Draw
from graphsane_tf.negatives.sane import evidence, posterior
from graphsane_tf.random import Seeds, host_seed
from graphsane_tf.testing.problems import small


def test_figures_that_the_notes_state():
  assert (evidence.MAX_PAIRS, evidence.MAX_USERS, evidence.SHOWN, evidence.MIN_ODDS) == (
      8192, 4096, 20, 3.)


@pytest.mark.parametrize('num_items', [1, 2, 3, 50])
def test_rank_weights_are_harmonic_numbers(num_items):
  """Phi(r) over Phi of the last rank, which is the number of items less one."""
  found = warp.rank_weights(num_items)
  last = max(num_items, 2) - 1
  phi = [sum(1. / s for s in range(1, r + 1)) for r in range(last + 1)]
  np.testing.assert_allclose(found, np.array(phi) / phi[-1], rtol=1e-6)
  assert found[0] == 0. and found[-1] == 1. and found.dtype == np.float32


def test_warp_makes_a_trial_for_every_slot_at_least():
  sampler = small(warp__trials=1, train__num_sampler_negatives=3).sampler(warp.Warp)
  draw = sampler.draw(tf.constant([3, 4]), tf.constant([0, 0]), Seeds(tf.constant([1, 2])))
  assert draw.items.shape == [2, 3]


def test_warp_leaves_out_what_is_no_item():
  """A user who has taken everything draws nothing: no violator, whatever the scores."""
  sampler = small(warp__trials=4, warp__margin=1.).sampler(warp.Warp)
  choice = sampler.choose(tf.zeros([1]), tf.ones([1, 4]),
                          Draw(tf.zeros([1, 4], tf.int32), tf.constant([[0., 1., 0., 1.]])), None)
  np.testing.assert_array_equal(choice.columns, [[1, 3]])
  assert np.all(choice.weight.numpy() > 0)
  # Exactly at the margin is no violation.
  choice = sampler.choose(tf.ones([1]), tf.constant([[0., 0., 0., .1]]),
                          Draw(tf.zeros([1, 4], tf.int32), tf.ones([1, 4])), None)
  assert choice.columns[0, 0] == 3 and choice.weight[0, 1] == 0.


def test_hardest_of_several_draws_by_enumeration():
  scores, drawn = np.array([.3, -1., 2., .5]), np.array([.1, .4, .2, .3])
  expected = np.zeros(4)
  for a in range(4):
    for b in range(4):
      for c in range(4):
        best = max((a, b, c), key=lambda item: scores[item])
        expected[best] += drawn[a] * drawn[b] * drawn[c]
  np.testing.assert_allclose(dns.hardest_probabilities(scores, drawn, 3), expected)
  np.testing.assert_array_equal(dns.hardest_probabilities(scores, drawn, 1), drawn)


def test_hardest_choice_keeps_the_weights():
  scores = tf.constant([[1., 5., 2., 9., 8., 7.]])
  draw = Draw(tf.zeros([1, 6], tf.int32), tf.constant([[.1, .2, .3, .4, .5, .6]]))
  choice = dns.hardest_choice(scores, draw, 3)
  np.testing.assert_array_equal(choice.columns, [[1, 3, 4]])
  np.testing.assert_allclose(choice.weight, [[.2, .4, .5]])


@pytest.mark.parametrize('probability,max_depth,num_items,width', [
    # log(.001) / log(.5) = 9.97: the 99.9 % quantile is 10.
    (.5, 1000, 300, 10), (.5, 9, 300, 9), (.5, 1000, 6, 6), (.001, 50, 300, 50)])
def test_depth_of_ranks(probability, max_depth, num_items, width):
  problem = small(num_items=num_items, pns__probability=probability, pns__max_depth=max_depth)
  assert problem.sampler(pns.RankGeometric).table.width == width


def _edges():
  rng = np.random.default_rng(0)
  return csr.from_pairs(*np.nonzero(rng.random((12, 9)) < .3), 12, 9)


def test_pagerank_stops_by_its_tolerance_or_its_iterations():
  edges, users = _edges(), np.arange(12)
  exact, _ = pinsage.PageRank(edges, .85, 1e-7, 1000).of(users)
  np.testing.assert_allclose(exact.sum(axis=1)[edges.degree > 0], .85 / 1.85, rtol=1e-4)
  errors = []
  for number in (1, 2, 3, 8):
    found, iterations = pinsage.PageRank(edges, .85, 0., number).of(users)
    assert iterations == number
    errors.append(np.abs(found - exact).sum())
  assert errors == sorted(errors, reverse=True)
  # By hand: the first iteration is d (1 - d) R_u + d^2 (x C) R from x = mass R_u.
  dense = edges.matrix().toarray().astype(np.float64)
  restart = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1)
  back = (dense / np.maximum(dense.sum(axis=0), 1)).T
  steps = [.85 / 1.85 * restart]
  for _ in range(30):
    steps.append(.85 * .15 * restart + .85 ** 2 * steps[-1] @ back @ restart)
  first, _ = pinsage.PageRank(edges, .85, 0., 1).of(users)
  np.testing.assert_allclose(first, steps[1], rtol=1e-5, atol=1e-7)
  # It stops after the first iteration whose mean change is below the tolerance's share of the mass.
  for tolerance in (.3, .03, .003):
    changes = [np.abs(b - a).sum(axis=1).mean() for a, b in zip(steps, steps[1:])]
    expected = 1 + next(k for k, change in enumerate(changes) if change < tolerance * .85 / 1.85)
    assert pinsage.PageRank(edges, .85, tolerance, 1000).of(users)[1] == expected


@pytest.mark.parametrize('chunk', [1, 3, 128])
def test_pagerank_in_chunks(monkeypatch, chunk):
  problem = small(num_items=100, pinsage__start_rank=3, pinsage__size=4, pinsage__tolerance=1e-6,
                  pinsage__max_iterations=200)
  whole = problem.refreshed(pinsage.PinSageNegatives)
  monkeypatch.setattr(pinsage, '_CHUNK', chunk)
  parts = problem.refreshed(pinsage.PinSageNegatives)
  same = (whole.table.items.numpy() == parts.table.items.numpy()).mean()
  assert same > .95 and whole.iterations > 10 and abs(parts.iterations - whole.iterations) < 10


def test_a_band_beyond_the_catalogue_has_a_row_all_the_same():
  problem = small(num_items=20, pinsage__start_rank=18, pinsage__max_start_share=1., pinsage__size=9)
  sampler = problem.refreshed(pinsage.PinSageNegatives)
  assert sampler.table.width == 3


@pytest.mark.parametrize('candidates,items,whole', [(6, 64 * 16, True), (6, 64 * 16 + 1, False)])
def test_caches_score_all_items_up_to_64_an_entry(monkeypatch, candidates, items, whole):
  """Ten entries of a cache and six candidates."""
  problem = small(num_items=items, num_users=6, nscaching__size=10, nscaching__candidates=candidates)
  ways = []
  sampler = problem.sampler(nscaching.NSCaching)
  renew = sampler._renew
  sampler._renew = lambda *arguments: (ways.append(arguments[4]), renew(*arguments))
  sampler.refresh(problem.user_vectors, problem.item_vectors, 0)
  assert ways == [whole]


def test_chunks_of_caches_have_seeds_of_their_own(monkeypatch):
  problem = small(nscaching__size=5, nscaching__candidates=5)
  monkeypatch.setattr(ranked, '_CHUNK_FLOATS', 60 * 4)
  sampler = problem.sampler(nscaching.NSCaching)
  seeds = []
  renew = sampler._renew
  sampler._renew = lambda *arguments: (seeds.append(arguments[5].numpy().tolist()), renew(*arguments))
  sampler.refresh(problem.user_vectors, problem.item_vectors, 3)
  start = tf.constant(host_seed(0, 1, 3, name='nscaching'))
  assert len(seeds) == 5
  assert seeds == [tf.random.experimental.stateless_fold_in(start, number).numpy().tolist()
                   for number in range(5)]


def test_similar_items_are_never_more_than_there_are():
  assert small(num_items=7, esns__num_similar=100).sampler(esns.ESNS).items.shape == [7, 7]
  assert small(num_items=40, esns__num_similar=3).sampler(esns.ESNS).items.shape == [40, 3]


@pytest.mark.fault('bad configuration value')
@pytest.mark.parametrize('name', ['warp', 'esns'])
def test_unknown_losses(name):
  with pytest.raises(UserError, match=f'{name}.loss'):
    small(**{f'{name}__loss': 'other'}).sampler(negatives.REGISTRY[name])


def test_how_often_samplers_are_brought_up_to_date():
  problem = small(sane__refresh_epochs=4, pns__refresh_epochs=5, nscaching__refresh_epochs=6)
  found = {name: problem.sampler(kind).refresh_epochs for name, kind in negatives.REGISTRY.items()}
  # Once a block, every few epochs, or never.
  assert found == {'uniform': 0, 'warp': 0, 'dns': 0, 'demix': 0, 'sane': 4, 'pns': 5, 'nscaching': 6,
                   'pinsage': sys.maxsize, 'esns': sys.maxsize}


def test_slots_of_samplers():
  problem = small(train__num_negatives=9, train__num_sampler_negatives=3)
  for name, kind in negatives.REGISTRY.items():
    assert problem.sampler(kind).num_slots == (0 if name == 'uniform' else 3), name


def test_bpr_of_a_sampler_weighs_its_negatives():
  sampler = small().sampler(dns.DNS)
  weight = tf.constant([[1., .5], [0., 2.]])
  loss = sampler.loss(tf.constant([1., -1.]), tf.constant([[0., 2.], [5., -1.]]), Choice(None, weight))
  expected = [np.log1p(np.exp(-1.)) + .5 * np.log1p(np.exp(1.)), 2. * np.log(2.)]
  np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_chunks_of_slots(monkeypatch):
  monkeypatch.setattr(ranked, '_CHUNK_FLOATS', 100)
  table = ranked.ItemTable(np.arange(10), 4, csr.from_pairs([], [], 12, 30))
  assert list(table.chunks(30)) == [(0, 3), (3, 6), (6, 9), (9, 10)]
  assert list(table.chunks(100)) == [(k, k + 1) for k in range(10)]
  assert list(table.chunks(10**9)) == [(k, k + 1) for k in range(10)]
  assert list(table.chunks(10)) == [(0, 10)] == list(table.chunks(0))
  empty = ranked.ItemTable(np.zeros(0, int), 0, csr.from_pairs([], [], 3, 30))
  assert list(empty.chunks(1)) == [] and empty.items.shape == [1, 1] and empty.num_slots == 0


def test_tables_hold_items_and_fall_back():
  """User 2 has two items, user 5 none, user 0 no row; draws by place, with the end cut off."""
  positives = csr.from_pairs([0, 2], [1, 3], 7, 4)
  table = ranked.ItemTable(np.array([2, 5]), 3, positives)
  table.assign(np.array([[1, 2, -1], [-1, -1, -1]]))
  np.testing.assert_array_equal(table.items, [[1, 2, 0], [0, 0, 0]])
  np.testing.assert_array_equal(table.count, [2, 0])
  draw = lambda place: table.draw(tf.constant([2, 2, 5, 0]), 4, Seeds(tf.constant([1, 2])), place,
                                    ranked.uniform_log_probability)
  for places, expected in ((0, 1), (1, 2), (2, 2), (99, 2), (-5, 1)):
    items, weight, log_probability = draw(
        lambda random, count, row, at=places: tf.fill(tf.shape(random), float(at)))
    assert np.all(items[:2] == expected) and np.all(weight == 1.)
    # Two items; user 0 has no row and user 5 no items: any of the catalogue's four.
    np.testing.assert_allclose(np.exp(log_probability), np.repeat([[.5], [.5], [.25], [.25]], 4, axis=1), rtol=1e-6)
    assert not np.isin(items[3], [1]).any()
  seen = {}
  draw(lambda random, count, row: seen.update(count=count.numpy(), row=row.numpy()) or random * count)
  np.testing.assert_array_equal(seen['count'][:, 0], [2, 2, 0, 2])
  np.testing.assert_array_equal(seen['row'], [0, 0, 1, 0])


@pytest.mark.parametrize('start,share,num_items,expected', [
    (201, .04, 5000, 201), (201, .04, 4999, 200), (1, .04, 5000, 1), (201, 0., 5000, 1), (0, .04, 5000, 1)])
def test_first_ranks(start, share, num_items, expected):
  options = type('Options', (), {'start_rank': start, 'max_start_share': share})
  assert ranked.start_rank(options, num_items) == expected


def test_risk_of_ranks_that_nobody_takes():
  curve = evidence.risk_curve(np.zeros(0, int), 0, 1)
  assert curve.rate.tolist() == [0.] and curve.uniform == 0. and curve.passed.tolist() == [0.]
  assert curve.first.tolist() == [1] and curve.length == 1


def test_bounds_of_the_concentration():
  """A share that means nothing, and one that never moves."""
  shares = np.full((50, 2), .5)
  assert evidence.fit_concentration(np.zeros((50, 2)), shares) == 1e4
  still = np.tile([[50., 50.]], (50, 1))
  assert evidence.fit_concentration(still, shares) == pytest.approx(1e4, rel=.05)
  wild = np.tile([[100., 0.], [0., 100.]], (25, 1))
  assert evidence.fit_concentration(wild, shares) == pytest.approx(.1, rel=.05)


def test_a_shift_counts_from_three_times_the_likelihood_on():
  shares, concentration = np.full((1, 2), .5), 2.
  odds = []
  for taken in range(1, 12):
    counts = np.array([[float(taken), 0.]])
    # With concentration 2 and equal shares all counts are equally likely: 1 / (n + 1) for each.
    odds.append(2. ** taken / (taken + 1))
    _, real = evidence.evidence_shift(counts, shares, concentration)
    assert real[0] == (odds[-1] > 3.), taken
  assert odds[0] == 1. and 3. < odds[3] < 4.


def test_smoothing_adds_one_interaction_of_the_average_user():
  counts, total = np.array([[3., 0., 1.], [0., 0., 0.]]), np.array([6., 3., 1.])
  average = (total + 1e-3) / (total + 1e-3).sum()
  np.testing.assert_allclose(evidence.smoothed_shares(counts, total),
                             [(counts[0] + average) / 5., average], rtol=1e-12)


def test_pairs_of_one_user_are_enough(monkeypatch):
  """All pairs of the first user are taken even if they are more than allowed."""
  monkeypatch.setattr(evidence, 'MAX_PAIRS', 2)
  users, items, number = evidence.sampled_pairs(
      np.random.default_rng(0), np.array([4, 4, 4]), np.array([7, 8, 9]))
  assert number == 1 and users.tolist() == [4, 4, 4] and items.tolist() == [7, 8, 9]


def test_shares_of_nothing_are_nothing():
  np.testing.assert_array_equal(posterior.shares(np.array([[0., 0.], [1., 3.]])), [[0., 0.], [.25, .75]])
