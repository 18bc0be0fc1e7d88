"""Samplers that rank by graph model and memory together, against dense NumPy."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.config import resolved
from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr
from graphsane_tf.memory import mixing
from graphsane_tf.negatives import pns, sane
from graphsane_tf.negatives.sane import evidence
from graphsane_tf.training import assembly
from graphsane_tf.training.scoring import Scoring
from tests import logs


def _standard(scores):
  return scores / np.maximum(scores.std(axis=1, keepdims=True), 1e-9)


def _joint(scoring, vectors):
  """[num_users, num_items] float64 scores of the mixture, from whole matrices."""
  counted = scoring.recollection.statistics
  profile = counted.profile(scoring.mixture.half_age).toarray().astype(np.float64)
  remembered = profile @ scoring.recollection.weights.toarray()
  popular = np.log1p(counted.recent.astype(np.float64))
  mixture = scoring.mixture
  return (mixture.graph * _standard(vectors[0].astype(np.float64) @ vectors[1].T)
          + mixture.memory * _standard(remembered) + mixture.recent * popular / popular.std())


@pytest.fixture(name='state', scope='module')
def state_fixture():
  """A log, the scoring of block 1 with a mixture that has everything, and representations."""
  log = logs.random_log(rows=900, users=30, items=60)
  config = resolved(logs.tiny_config(sampler='sane', clusters='categories', sane__max_start_share=.1, memory='ease',
                                     memory_options__neighbours=6, memory_options__taste=0.))
  context = logs.context_of(log, 1, dim=6)
  mixture = mixing.Mixture(1., 1., .75, .1)
  others = dict.fromkeys(mixing.candidates(True, .1), .1)
  assert mixture in others
  scoring = Scoring(config, context, [{**others, mixture: .2}])
  assert scoring.mixture == mixture
  rng = np.random.default_rng(3)
  vectors = [rng.normal(size=(size, 6)).astype(np.float32) for size in (context.num_users, context.num_items)]
  return log, config, context, scoring, vectors


def _best(scores, excluded, users):
  """Items of users [n] from the best down, those of `excluded` left out; by user."""
  lists = []
  for user in users:
    taken = set(excluded.indices[excluded.indptr[user]:excluded.indptr[user + 1]].tolist())
    lists.append([item for item in np.argsort(-scores[user], kind='stable') if item not in taken])
  return lists


@pytest.mark.parametrize('kind', [sane.Sane, pns.RankGeometric])
def test_the_reservoir_holds_what_the_joint_scores_rank(state, kind):
  _, config, context, scoring, vectors = state
  sampler = kind(config, context, (0, 1))
  sampler.scorer = scoring.of_samplers
  users = sampler.table.users
  joint, plain = (_best(scores, context.positives, users) for scores in (
      _joint(scoring, vectors), vectors[0] @ vectors[1].T))
  assert joint != plain
  lists = sampler.rank(*vectors)
  sampler.refresh(*vectors, 0)
  first = sampler.first_rank - 1 if kind is sane.Sane else 0
  for slot, best in enumerate(joint):
    held = sampler.table.items[slot, :int(sampler.table.count[slot])].numpy()
    np.testing.assert_array_equal(held, best[first:first + len(held)])
    assert len(held) == min(sampler.table.width, len(best) - first)
    np.testing.assert_array_equal(lists.items[slot, :len(best)], best[:lists.items.shape[1]])


def test_ranks_of_pairs_are_those_of_joint_scores(state):
  _, _, context, scoring, vectors = state
  excluded = csr.from_pairs([0, 0, 3, 5], [1, 8, 2, 0], context.num_users, context.num_items)
  users, items = np.array([0, 0, 3, 7, 9]), np.array([2, 30, 4, 50, 11])
  found = evidence.pair_ranks(*map(tf.constant, vectors), users, items, excluded, scoring.of_samplers)
  expected = [1 + best.index(item) for best, item in zip(_best(_joint(scoring, vectors), excluded, users), items)]
  np.testing.assert_array_equal(found, expected)
  plain = evidence.pair_ranks(*map(tf.constant, vectors), users, items, excluded)
  assert list(plain) == [1 + best.index(item) for best, item in zip(
      _best(vectors[0] @ vectors[1].T, excluded, users), items)] != expected


def test_lists_are_shared_with_validation_if_they_are_the_same(state, monkeypatch):
  log, config, context, scoring, vectors = state
  shared = []
  monkeypatch.setattr(assembly, 'evaluate', lambda *arguments: shared.append(arguments[-1]) or type(
      'Result', (), {'metrics': {}}))
  block = assembly.stream_of(config, log).block(1)
  apart = resolved(logs.tiny_config(memory='ease', memory_options__joint_ranks=False))
  bare = resolved(logs.tiny_config())
  alone = Scoring(apart, context)
  assert scoring.of_samplers is scoring and alone.of_samplers is ranking.DotProduct
  for kind in (scoring, alone, Scoring(bare, context), None):
    assembly.validator(config, log, block, context, kind)(*vectors, 'lists')
  assert shared == ['lists', None, 'lists', 'lists']
