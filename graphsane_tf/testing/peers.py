"""What must hold for every peer; each check raises AssertionError where it does not."""
import numpy as np

from graphsane_tf import peers
from graphsane_tf.evaluation import ranking
from graphsane_tf.peers import base
from graphsane_tf.testing import logs


def scores_of(scorer: ranking.Scorer) -> np.ndarray:
  """[num_users, num_items], from tiles of three items."""
  result = np.zeros((scorer.num_users, scorer.num_items), np.float32)
  for start in range(0, scorer.num_items, 3):
    stop = min(start + 3, scorer.num_items)
    scorer.tile(start, stop)(np.arange(scorer.num_users), result[:, start:stop])
  return result


class Suite:
  """What must hold for every peer; a subclass is parametrised with `name`."""

  def test_scores_are_finite_and_do_not_depend_on_tiles_or_chunks(self, name):
    context = logs.context_of(logs.random_log(rows=600), 2)
    scorer = peers.REGISTRY[name]().fit(context)
    whole = np.zeros((context.num_users, context.num_items), np.float32)
    scorer.tile(0, context.num_items)(np.arange(context.num_users), whole)
    assert np.isfinite(whole).all() and whole.any()
    np.testing.assert_allclose(scores_of(scorer), whole, atol=1e-5)
    some = np.array([5, 2])
    part = np.zeros((2, context.num_items), np.float32)
    scorer.tile(0, context.num_items)(some, part)
    np.testing.assert_allclose(part, whole[some], atol=1e-5)

  def test_every_setting_fits(self, name):
    context = logs.context_of(logs.random_log(rows=600), 1)
    for settings in base.choices(peers.REGISTRY[name].settings):
      scorer = peers.REGISTRY[name]().fit(context, **settings)
      assert (scorer.num_users, scorer.num_items) == (context.num_users, context.num_items)
      assert np.isfinite(scores_of(scorer)).all(), settings

  def test_later_rows_change_nothing(self, name):
    """The block's peer sees rows up to the block."""
    log = logs.random_log(rows=600)
    context = logs.context_of(log, 1)
    other = logs.interactions_of(
        np.concatenate([log.user[:context.num_rows], log.user[context.num_rows:][::-1]]),
        np.concatenate([log.item[:context.num_rows], np.roll(log.item[context.num_rows:], 7)]))
    changed = logs.context_of(other, 1)
    one, two = (scores_of(peers.REGISTRY[name]().fit(c)) for c in (context, changed))
    np.testing.assert_array_equal(one, two)

  def test_one_object_fits_every_block(self, name):
    """A run has one peer for all blocks and settings: what it keeps must not be another's."""
    log, kept = logs.random_log(rows=600), peers.REGISTRY[name]()
    for index in (1, 2):
      context = logs.context_of(log, index)
      for settings in base.choices(kept.settings):
        expected = peers.REGISTRY[name]().fit(context, **settings)
        np.testing.assert_array_equal(scores_of(kept.fit(context, **settings)), scores_of(expected), str(settings))

  def test_one_item_and_users_without_rows(self, name):
    log = logs.interactions_of(np.arange(40), np.zeros(40, int))
    scorer = peers.REGISTRY[name]().fit(logs.context_of(log, 1))
    assert np.isfinite(scores_of(scorer)).all()

  def test_ranks_through_the_usual_protocol(self, name):
    context = logs.context_of(logs.random_log(rows=600), 1)
    scorer = peers.REGISTRY[name]().fit(context)
    ids, _ = ranking.top_k(scorer, np.arange(10), context.history, 5)
    taken = context.history.matrix().toarray() > 0
    for user, row in enumerate(ids):
      assert not taken[user, row[row >= 0]].any()
