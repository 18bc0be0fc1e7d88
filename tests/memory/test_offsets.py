"""Offsets of pairs, and the loss with them and its gradient, against dense NumPy."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.stream import BlockStream
from graphsane_tf.config import resolved
from graphsane_tf.errors import UserError
from graphsane_tf.random import Seeds
from graphsane_tf.training.block import BlockTrainer, new_model
from graphsane_tf.training.scoring import Scoring
from graphsane_tf.training.store import BlockStore
from tests import logs

_SHARE = .7
_PAIRS = 40


def _config(**changes):
  return resolved(logs.tiny_config(**{
      'backbone': 'lightgcn', 'memory': 'ease', 'memory_options__neighbours': 5, 'memory_options__offset': _SHARE,
      'train__num_negatives': 4, 'train__num_sampler_negatives': 2, 'model__propagation': 'whole', **changes}))


@pytest.fixture(name='state', scope='module')
def state_fixture():
  """Contexts of blocks 0 and 1, with new users, new items and replayed rows, and a base model."""
  log = logs.growing_log()
  stream = BlockStream(log)
  base = logs.context_of(log, 0, dim=8)
  context = contexts.cut(log, stream.block(1), stream.block(0), np.arange(10), 8)
  assert context.num_users > base.num_users and context.num_items > base.num_items
  previous = new_model(_config(), base, 1e-3)
  rng = np.random.default_rng(2)
  for variable in previous.backbone.trainable_variables:
    variable.assign(rng.normal(size=variable.shape))
  return base, context, previous


def _dense(before, context, previous):
  """[num_users, num_items] float64 offsets of all pairs, and which of them the memory has counted."""
  profile = before.recollection.statistics.profile(before.mixture.half_age).toarray().astype(np.float64)
  remembered = profile @ before.recollection.weights.toarray()
  users, items = (np.asarray(part, np.float64) for part in previous.backbone.representer(previous.graph)())
  remembered /= np.maximum(remembered.std(axis=1, keepdims=True), 1e-9)
  remembered *= _SHARE * (users @ items.T).std(axis=1, keepdims=True)
  whole = np.zeros((context.num_users, context.num_items))
  counted = np.zeros(whole.shape, bool)
  whole[:len(users), :len(items)] = remembered
  counted[:len(users), :len(items)] = profile > 0
  return whole, counted


def test_offsets_of_pairs(state):
  base, context, previous = state
  before = Scoring(_config(), base)
  vectors = previous.backbone.representer(previous.graph)()
  offsets = before.offsets(*vectors, context, _SHARE)
  expected, counted = _dense(before, context, previous)
  users = np.arange(context.num_users, dtype=np.int32)
  items = np.tile(np.arange(context.num_items, dtype=np.int32), (len(users), 1))
  np.testing.assert_allclose(offsets.scores(tf.constant(users), tf.constant(items)), expected, atol=2e-4)
  assert np.abs(expected[:base.num_users]).max() > .5
  # Every item as the positive; a pair that is counted takes the offsets of its negatives with it.
  for shift in (0, 5):
    turned = np.roll(items, -shift, axis=1)
    found = offsets.of_batch(tf.constant(users), tf.constant(turned)).numpy()
    np.testing.assert_allclose(
        found, np.where(counted[:, shift, None], 0., np.roll(expected, -shift, axis=1)), atol=2e-4)
  assert counted[:, [0, 5]].any() and not counted[:, [0, 5]].all()
  bare = Scoring(_config(memory='popularity'), base)
  assert bare.offsets(*vectors, context, _SHARE) is None


def _lightgcn(context, tables):
  """Final representations of all users and items, and the matrix that makes them of the tables."""
  size = context.num_users + context.num_items
  edges = np.zeros((size, size))
  edges[context.history.rows(), context.num_users + context.history.indices] = 1.
  edges += edges.T
  scale = 1 / np.sqrt(np.maximum(edges.sum(axis=1), 1))
  step = scale[:, None] * edges * scale
  matrix = sum(np.linalg.matrix_power(step, power) for power in range(4)) / 4
  return matrix @ np.concatenate(tables), matrix


@pytest.mark.parametrize('sampler', ['uniform', 'dns'])
def test_the_loss_and_its_gradient(state, sampler, tmp_path):
  base, context, previous = state
  config = _config(sampler=sampler)
  before = Scoring(config, base)
  trainer = BlockTrainer(config, context, previous, BlockStore(tmp_path, 1), log=lambda line: None,
                         scoring=Scoring(config, context, (), before), before=before)
  step, backbone = trainer.step, trainer.model.backbone
  drawn, chosen = [], []
  draw, draw_more, choose = step._uniform.draw, trainer.sampler.draw, trainer.sampler.choose

  def recorded(kept, call):
    def wrapped(*arguments):
      kept.append((arguments, call(*arguments)))
      return kept[-1][1]
    return wrapped

  step._uniform.draw = recorded(drawn, draw)
  trainer.sampler.draw = recorded(drawn, draw_more)
  trainer.sampler.choose = recorded(chosen, choose)
  # From both ends: replayed pairs come last.
  rows = np.r_[:_PAIRS - 10, len(context.users) - 10:len(context.users)]
  users, positives = context.users[rows], context.items[rows]
  tables = [backbone.user_table, backbone.item_table]
  with tf.GradientTape() as tape:
    losses = step.losses(trainer.model.graph.whole(), tf.constant(users), tf.constant(positives),
                         Seeds(tf.constant([3, 4])))
    total = losses['bpr'] + losses.get('dns', 0.)
  gradients = np.concatenate([tf.convert_to_tensor(part) for part in tape.gradient(total, tables)])

  final, matrix = _lightgcn(context, [table.numpy().astype(np.float64) for table in tables])
  offset, counted = _dense(before, context, previous)
  offset = np.where(counted[users, positives][:, None], 0., offset[users])
  assert counted[users, positives].sum() == 10
  items = np.asarray(drawn[0][1][0])
  if sampler == 'dns':
    candidates = np.asarray(drawn[1][1].items)
    (_, scores, _, _), choice = chosen[0]
    dots = np.einsum('bd,bnd->bn', final[users], final[context.num_users + candidates])
    np.testing.assert_allclose(scores, dots + np.take_along_axis(offset, candidates, axis=1), atol=1e-3)
    items = np.hstack([items, np.take_along_axis(candidates, np.asarray(choice.columns), axis=1)])
  assert items.shape == (_PAIRS, 4)
  loss, slope = 0., np.zeros_like(final)
  for row, (user, positive) in enumerate(zip(users, positives)):
    own = context.num_users + positive
    for item in items[row]:
      other = context.num_users + item
      gap = final[user] @ (final[other] - final[own]) + offset[row, item] - offset[row, positive]
      loss += np.logaddexp(0, gap) / _PAIRS
      push = 1 / (1 + np.exp(-gap)) / _PAIRS
      slope[user] += push * (final[other] - final[own])
      slope[other] += push * final[user]
      slope[own] -= push * final[user]
  assert float(total) == pytest.approx(loss, rel=1e-4)
  np.testing.assert_allclose(gradients, matrix.T @ slope, atol=1e-5)


def test_off_adds_nothing_to_the_step(state, tmp_path):
  base, context, previous = state
  config = _config(memory_options__offset=0.)
  trainer = BlockTrainer(config, context, previous, BlockStore(tmp_path, 1), log=lambda line: None,
                         before=Scoring(config, base))
  assert trainer.step._offsets is None


def test_offsets_are_for_triplets_of_blocks_that_go_on():
  for changes in ({'train__loss': 'softmax'}, {'full_retrain': True}):
    with pytest.raises(UserError, match='config.memory_options.offset'):
      _config(**changes)
