"""Each sampler's own definition, by oracles."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.errors import UserError
from graphsane_tf.negatives import demix, dns, esns, nscaching, pinsage, pns, sane, warp
from graphsane_tf.negatives.base import Draw
from graphsane_tf.random import Seeds
from graphsane_tf.testing.problems import sample, small


def _seeds():
  return Seeds(tf.constant([1, 2]))


class TestWarp:

  def test_loop(self):
    """The vectorised trials against the loop of the publication."""
    problem = small(warp__trials=8, warp__margin=.5)
    sampler = problem.sampler(warp.Warp)
    rng = np.random.default_rng(0)
    positive = rng.normal(size=50).astype(np.float32) + 1.
    candidate = rng.normal(size=(50, 8)).astype(np.float32)
    draw = Draw(tf.zeros([50, 8], tf.int32), tf.ones([50, 8]))
    choice = sampler.choose(positive, candidate, draw, _seeds())
    num_items = problem.context.num_items
    phi = lambda rank: sum(1. / r for r in range(1, rank + 1))
    nothing = 0
    for row in range(50):
      trials, slot = 0, 0
      for place, score in enumerate(candidate[row]):
        trials += 1
        if score + .5 > positive[row] and slot < 2:
          assert choice.columns[row, slot] == place
          want = phi((num_items - 1) // trials) / phi(num_items - 1)
          np.testing.assert_allclose(choice.weight[row, slot], want, rtol=1e-5)
          trials, slot = 0, slot + 1
      nothing += slot < 2
      assert not np.any(choice.weight[row, slot:])
    assert nothing > 5

  def test_hinge(self):
    sampler = small(warp__loss='hinge', warp__margin=.5).sampler(warp.Warp)
    loss = sampler.loss(tf.constant([1.]), tf.constant([[0., .8]]),
                        Draw(tf.zeros([1, 2], tf.int32), tf.constant([[1., .25]])))
    np.testing.assert_allclose(loss, [.25 * .3], rtol=1e-5)

  def test_unknown_loss(self):
    with pytest.raises(UserError, match='warp.loss'):
      small(warp__loss='log').sampler(warp.Warp)


def test_dns_takes_the_hardest():
  problem = small(dns__candidates=3)
  scores = np.array([[1., 5., 2., 0., -1., 3.]], np.float32)
  draw = Draw(tf.zeros([1, 6], tf.int32), tf.ones([1, 6]))
  choice = problem.sampler(dns.DNS).choose(np.zeros(1, np.float32), scores, draw, _seeds())
  np.testing.assert_array_equal(choice.columns, [[1, 5]])


def test_pns_depth_is_bounded():
  assert small(pns__probability=.05).sampler(pns.RankGeometric).table.width == 60
  assert small(num_items=400, pns__probability=.05).sampler(pns.RankGeometric).table.width == 135
  assert small(num_items=400, pns__max_depth=30).sampler(pns.RankGeometric).table.width == 30


class TestDemix:

  def test_mixture_of_representations(self):
    """A mixture of scores is the score of the mixture."""
    rng = np.random.default_rng(0)
    user, items = rng.normal(size=4), rng.normal(size=(3, 4))
    positive, hard, partner = items @ user
    for suspect in (0., 1.):
      mix = demix.Mix(None, tf.constant([[1., 1.]]), share=tf.constant([[.3]]),
                      suspect=tf.constant([[suspect]]))
      scores = [tf.constant(v, tf.float32) for v in ([positive], [[hard, partner]])]
      sampler = small(train__num_sampler_negatives=1).sampler(demix.DeMix)
      mixture, weight = .7 * items[1] + .3 * items[0 if suspect else 2], .7 if suspect else 1.
      for found, want in zip(sampler.slots(*scores, mix), (mixture @ user, weight)):
        np.testing.assert_allclose(found, [[want]], rtol=1e-5)
      want = np.log1p(np.exp(mixture @ user - positive)) * weight
      np.testing.assert_allclose(sampler.loss(*scores, mix), [want], rtol=1e-5)

  def test_choice(self):
    sampler = small(demix__candidates=5).sampler(demix.DeMix)
    scores = np.array([[1., 5., 2., 0., 3.], [9., 8., 7., 6., 5.]], np.float32)
    draw = Draw(tf.zeros([2, 5], tf.int32), tf.ones([2, 5]))
    mix = sampler.choose(np.array([4., 10.], np.float32), scores, draw, _seeds())
    np.testing.assert_array_equal(mix.columns, [[1, 4, 4, 4], [0, 1, 0, 0]])
    np.testing.assert_array_equal(mix.suspect, [[1, 0], [0, 0]])
    assert np.all(mix.share.numpy() <= .5) and np.all(mix.share.numpy() >= 0)


class TestNSCaching:

  def test_without_replacement_by_softmax(self):
    """First picks follow the softmax of distinct scores; an item is never there twice."""
    rows = 4000
    cache = tf.repeat(tf.constant([[4, 7, 7, 9]]), rows, axis=0)
    scores = tf.repeat(tf.constant([[0., 1., 1., 2.]]), rows, axis=0)
    valid = tf.ones([rows, 4], tf.bool)
    found = nscaching.renewed(cache, valid, scores, 4, 1., tf.constant([1, 2])).numpy()
    assert np.all(found[:, 3] == -1)
    np.testing.assert_array_equal(np.sort(found[:, :3], axis=1), np.tile([4, 7, 9], (rows, 1)))
    share = [(found[:, 0] == item).mean() for item in (4, 7, 9)]
    want = np.exp([0., 1., 2.]) / np.exp([0., 1., 2.]).sum()
    np.testing.assert_allclose(share, want, atol=.03)

  def test_cache_is_kept_and_gets_harder(self):
    problem = small(num_items=300, nscaching__size=10, nscaching__candidates=10,
                    nscaching__temperature=.1)
    sampler = problem.sampler(nscaching.NSCaching)
    user = problem.cases['usual']
    mean, kept = [], []
    before = set()
    for epoch in range(12):
      sampler.refresh(problem.user_vectors, problem.item_vectors, epoch)
      slot = int(np.flatnonzero(sampler.table.users == user)[0])
      items = sampler.table.items[slot, :sampler.table.count[slot]].numpy()
      mean.append(problem.scores(user)[items].mean())
      kept.append(len(before & set(items.tolist())))
      before = set(items.tolist())
    assert mean[-1] > mean[0] + 1. and max(kept[1:]) >= 5


  def test_both_ways_of_scoring(self, monkeypatch):
    problem = small()
    whole = problem.refreshed(nscaching.NSCaching).table.items.numpy()
    monkeypatch.setattr(nscaching, '_WHOLE', 0)
    np.testing.assert_array_equal(
        whole, problem.refreshed(nscaching.NSCaching).table.items.numpy())


class TestESNS:

  def test_similarity_is_the_cosine_of_user_sets(self):
    problem = small(esns__num_similar=5)
    sampler = problem.refreshed(esns.ESNS)
    matrix = problem.context.history.matrix().toarray()
    norm = np.maximum(np.sqrt(matrix.sum(axis=0)), 1.)
    cosine = matrix.T @ matrix / norm[:, None] / norm
    np.fill_diagonal(cosine, 0.)
    best = -np.sort(-cosine, axis=1)[:, :5]
    step = np.diff(sampler.cumulative.numpy(), prepend=0., axis=1)
    np.testing.assert_allclose(np.take_along_axis(cosine, sampler.items.numpy(), axis=1), best,
                               rtol=1e-5)
    np.testing.assert_allclose(step, best / best.sum(axis=1, keepdims=True), atol=1e-6)

  def test_shifted_logistic_loss(self):
    sampler = small(esns__loss='shift', esns__shift=.5).sampler(esns.ESNS)
    loss = sampler.loss(tf.constant([1.]), tf.constant([[-2., .3]]),
                        Draw(tf.zeros([1, 2], tf.int32), tf.ones([1, 2])))
    want = 2 * np.log1p(np.exp(-1.5)) + np.log1p(np.exp(-1.5)) + np.log1p(np.exp(.8))
    np.testing.assert_allclose(loss, [want], rtol=1e-5)


class TestPinSage:

  def test_pagerank_solves_its_equation(self):
    """The iteration against a dense solution of the walk on the whole graph."""
    edges = small().context.history
    users, items = edges.num_rows, edges.num_columns
    graph = np.zeros((users + items,) * 2)
    graph[:users, users:] = edges.matrix().toarray()
    graph += graph.T
    step = graph / np.maximum(graph.sum(axis=1, keepdims=True), 1.)
    restart = np.eye(users + items)[:users]
    exact = .15 * restart @ np.linalg.inv(np.eye(users + items) - .85 * step)
    found, _ = pinsage.PageRank(edges, .85, 1e-6, 200).of(np.arange(users))
    np.testing.assert_allclose(found, exact[:, users:], atol=1e-5)

  def test_band(self):
    problem = small(num_items=100, pinsage__start_rank=3, pinsage__size=4)
    sampler = problem.refreshed(pinsage.PinSageNegatives)
    rank, _ = pinsage.PageRank(problem.context.history, .85, .02, 20).of(sampler.table.users)
    taken = problem.context.positives.matrix().toarray()[sampler.table.users] > 0
    order = np.argsort(-np.where(taken, -1., rank), axis=1, kind='stable')[:, 2:6]
    full = sampler.table.count.numpy() == 4
    assert full.sum() > 10
    np.testing.assert_array_equal(sampler.table.items.numpy()[full], order[full])


class TestSoftMembership:

  def test_one_hot_memberships_are_the_hard_rule(self):
    problem, soft = (small(clusters='categories', sane__soft_membership=value)
                     for value in (False, True))
    one, other = problem.refreshed(sane.Sane), soft.refreshed(sane.Sane)
    np.testing.assert_array_equal(one.items.numpy(), other.items.numpy())
    np.testing.assert_allclose(one.cumulative.numpy(), other.cumulative.numpy(), atol=1e-5)

  def test_quantities(self):
    """Histogram, counts and item weights with soft memberships, by loops."""
    problem = small(sane__soft_membership=True, clustering__num_clusters=3)
    sampler = problem.refreshed(sane.Sane)
    share = sampler.interests.membership.numpy()
    np.testing.assert_allclose(share.sum(axis=1), 1., rtol=1e-5)
    assert share.max(axis=1).min() < .99
    number = sampler.table.num_slots
    found = sampler.explain(0, number)
    block = problem.context.block
    for slot, user in enumerate(sampler.table.users):
      items = block.indices[block.indptr[user]:block.indptr[user + 1]]
      np.testing.assert_allclose(found['current'][slot], share[items].sum(axis=0), rtol=1e-4)
      held = sampler.items[slot, :sampler.table.count[slot]].numpy()
      np.testing.assert_allclose(found['counts'][slot], share[held].sum(axis=0), rtol=1e-4)
      weight = share[held] @ found['theta'][slot]
      np.testing.assert_allclose(found['probability'][slot, :len(held)], weight / weight.sum(),
                                 rtol=1e-4)


def test_new_users_get_uniform_negatives_from_sane():
  problem = small()
  sampler = problem.refreshed(sane.Sane)
  user, positive = problem.pair('new')
  items, _ = sample(sampler, [user] * 500, [positive] * 500, problem.user_vectors,
                    problem.item_vectors, 0)
  free = problem.context.num_items - problem.context.positives.degree[user]
  assert len(np.unique(items)) == free
