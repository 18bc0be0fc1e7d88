"""The epoch loop: every pair once an epoch, refreshes in time, and what is recorded."""
import collections
import math

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.config import resolved
from graphsane_tf.training import assembly
from graphsane_tf.training import block as block_lib
from graphsane_tf.training.block import SELECTION_METRIC, BlockTrainer, new_model
from graphsane_tf.training.store import BlockStore, fresh_state
from tests import logs

_LOG = logs.random_log(rows=600, users=30, items=40)


def _config(**changes):
  return resolved(logs.tiny_config(**{
      'backbone': 'lightgcn', 'model__embedding_dim': 2, 'model__num_layers': 1, **changes}))


def _trainer(folder, config, index=0, previous=None, log=lambda line: None):
  return BlockTrainer(config, logs.context_of(_LOG, index), previous, BlockStore(folder, index), log)


class _Steps:
  """Stands in for the compiled step: notes its calls and returns losses that tell the steps apart."""

  def __init__(self, trainer):
    trainer.run_steps = self
    trainer.step.loss_names = ['bpr', 'loss']
    self._step = trainer.step
    self.calls = []

  def __call__(self, order, seed, first, count):
    first, count = int(first), int(count)
    self._step.num_traces = 1
    self.calls.append((order.numpy(), seed.numpy().tolist(), first, count))
    numbers = np.arange(first, first + count)
    return tf.constant([2. * numbers.sum(), float(count)])


def _validate(users, items, lists=None):
  del users, items, lists
  return {SELECTION_METRIC: .5, 'other': .25}


def test_an_epoch_runs_every_step_once_in_a_random_order_of_its_own(tmp_path):
  config = _config(train__batch_size=7, train__base_epochs=3, train__base_min_epochs=3)
  trainer = _trainer(tmp_path, config)
  steps, records = _Steps(trainer), []
  trainer.train(_validate, records.append)
  pairs = len(trainer.context.users)
  number = math.ceil(pairs / 7)
  assert number * 7 > pairs  # The last step is short.
  epochs = collections.defaultdict(list)
  for order, seed, first, count in steps.calls:
    epochs[tuple(seed)].append((order, first, count))
  assert len(epochs) == 3
  orders = []
  for calls in epochs.values():
    ran = [step for _, first, count in calls for step in range(first, first + count)]
    assert ran == list(range(number))
    orders.append(calls[0][0])
    assert sorted(orders[-1].tolist()) == list(range(pairs))
    assert all(np.array_equal(order, orders[-1]) for order, _, _ in calls)
  assert not any(np.array_equal(orders[a], orders[b]) for a, b in ((0, 1), (1, 2), (0, 2)))
  # Means over the steps.
  for epoch, record in enumerate(records):
    assert record['losses'] == {'bpr': pytest.approx(number - 1.), 'loss': pytest.approx(1.)}
    assert record['validation'] == {SELECTION_METRIC: .5, 'other': .25}
    assert (record['block'], record['epoch']) == (0, epoch + 1)
    assert record['sampler_seconds'] == 0. < record['pairs_per_second']


def test_stretches_grow_while_they_are_short(tmp_path, monkeypatch):
  """1, 2, 4, ... steps in the first epoch, 4, 8, ... later, until a stretch takes two seconds."""
  clock = [0.]
  monkeypatch.setattr(block_lib.time, 'perf_counter', lambda: clock[0])
  trainer = _trainer(tmp_path, _config(train__batch_size=1, train__base_epochs=2,
                                       train__base_min_epochs=2))
  steps, durations = _Steps(trainer), [.1, 1.9, 2., 5., 1., *[0.] * 6, 0., 3., *[0.] * 9]
  run = trainer.run_steps

  def slow(order, seed, first, count):
    clock[0] += durations.pop(0)
    return run(order, seed, first, count)

  trainer.run_steps = slow
  trainer.train(_validate, lambda record: None)
  counts = [count for _, _, _, count in steps.calls]
  assert counts[:11] == [1, 2, 4, 4, 4, 8, 16, 32, 64, 128, 97]
  assert counts[11:17] == [4, 8, 8, 16, 32, 64] and sum(counts[11:]) == 360


def test_seconds_and_speed(tmp_path, monkeypatch):
  """Steps take 3 s and validation 1 s of an epoch; speed is by the steps alone."""
  clock, lines = [10.], []
  monkeypatch.setattr(block_lib.time, 'perf_counter', lambda: clock[0])
  trainer = _trainer(tmp_path, _config(train__batch_size=1000, train__base_epochs=2),
                     log=lines.append)
  _Steps(trainer)
  run = trainer.run_steps

  def slow(*arguments):
    clock[0] += 3.
    return run(*arguments)

  def validate(users, items, lists):
    clock[0] += 1.
    return _validate(users, items, lists)

  trainer.run_steps = slow
  records = []
  state = trainer.train(validate, records.append)
  assert [record['seconds'] for record in records] == [4., 4.]
  assert records[0]['pairs_per_second'] == pytest.approx(120.)
  assert state['train_seconds'] == 8. and state['sampler_seconds'] == 0.
  # The first step is traced, which takes its 3 s out of what is to be expected.
  assert lines[0] == 'block 0 first step after 3.0 s'
  assert lines[1].startswith('block 0 epoch  1/2  loss 1.0000') and lines[1].endswith(' 4.0 s  1 s left')
  assert 'recall@20 0.5000*' in lines[1] and 'recall@20 0.5000 ' in lines[2]
  assert 'left' not in lines[2]


class _Sampler:
  """Notes when the trainer asks for what."""

  def __init__(self, sampler, clock):
    self.calls = []
    self._sampler, self._clock = sampler, clock
    sampler.refresh_epochs = 2
    sampler.refresh, sampler.rank = self.refresh, self.rank

  def refresh(self, users, items, epoch):
    self.calls.append(('refresh', epoch, users, items))
    self._clock[0] += 5.

  def rank(self, users, items):
    self.calls.append(('rank', None, users, items))
    self._clock[0] += .5
    return 'lists'


def test_refreshes_every_other_epoch_and_ranks_just_before(tmp_path, monkeypatch):
  clock = [0.]
  monkeypatch.setattr(block_lib.time, 'perf_counter', lambda: clock[0])
  config = _config(train__base_epochs=5, train__base_min_epochs=5)
  trainer = _trainer(tmp_path, config)
  _Steps(trainer)
  sampler, given, records = _Sampler(trainer.sampler, clock), [], []

  def validate(users, items, lists):
    given.append((users, items, lists))
    return _validate(users, items)

  state = trainer.train(validate, records.append)
  kinds = [(kind, epoch) for kind, epoch, _, _ in sampler.calls]
  # After epochs 2 and 4 the ranking of the next refresh is made; none comes after the fifth.
  assert kinds == [('refresh', 0), ('rank', None), ('refresh', 2), ('rank', None), ('refresh', 4)]
  assert [lists for _, _, lists in given] == [None, 'lists', None, 'lists', None]
  # The refresh has the very tensors that were ranked and validated, so that it need not rank anew.
  for ranking, refresh, epoch in ((1, 2, 1), (3, 4, 3)):
    for place in (2, 3):
      assert sampler.calls[ranking][place] is sampler.calls[refresh][place] is given[epoch][place - 2]
  assert [record['sampler_seconds'] for record in records] == [5., .5, 5., .5, 5.]
  assert state['sampler_seconds'] == 16.


def test_no_ranking_when_the_last_epoch_is_over(tmp_path):
  trainer = _trainer(tmp_path, _config(train__base_epochs=2, train__base_min_epochs=2))
  _Steps(trainer)
  sampler = _Sampler(trainer.sampler, [0.])
  trainer.train(_validate, lambda record: None)
  assert [kind for kind, *_ in sampler.calls] == ['refresh']


def test_a_fresh_state():
  assert fresh_state() == {
      'epoch': 0, 'best_epoch': 0, 'best_value': -1., 'wait': 0, 'stopped': False,
      'train_seconds': 0., 'sampler_seconds': 0., 'validation': {}, 'records': []}


def test_the_base_block_has_settings_of_its_own(tmp_path):
  """Learning rate, uniform negatives and no distillation; later blocks have what was asked for."""
  config = _config(kd='lsp', sampler='dns', train__learning_rate=.25,
                   train__base_learning_rate=.75)
  base = _trainer(tmp_path, config)
  later = _trainer(tmp_path, config, 1, base.model)
  retrained = _trainer(tmp_path / 'other', config, 1)
  rates = [float(trainer.model.optimizer.learning_rate) for trainer in (base, later, retrained)]
  assert rates == [.75, .25, .75]
  kinds = [(type(trainer.sampler).__name__, type(trainer.distiller).__name__)
           for trainer in (base, later, retrained)]
  assert kinds == [('NoSampler', 'NoDistiller'), ('DNS', 'Lsp'), ('DNS', 'NoDistiller')]


@pytest.mark.parametrize('scope', ['accumulated', 'block'])
def test_the_graph_has_the_edges_asked_for(scope):
  config = _config(model__graph_scope=scope)
  context = logs.context_of(_LOG, 1)
  expected = context.history if scope == 'accumulated' else context.block
  assert len(expected.indices) == (420 if scope == 'accumulated' else 60)
  np.testing.assert_array_equal(new_model(config, context, 1e-3).graph.edges.indices,
                                expected.indices)


def test_nearest_neighbours_only_where_they_are_used():
  context = logs.context_of(_LOG, 0)
  plain = new_model(_config(), context, 1e-3).graph
  near = new_model(_config(backbone='mgccf', model__num_knn=3), context, 1e-3).graph
  assert set(plain.relations) == {'ui', 'iu'} and set(near.relations) == {'ui', 'iu', 'uu', 'ii'}
  assert near.relations['uu'].table.degree.max() == 3


def test_models_of_other_seeds_and_blocks_start_otherwise():
  tables = [new_model(_config(seed=seed), logs.context_of(_LOG, index), 1e-3).backbone.item_table[:5]
            for seed, index in ((0, 0), (0, 0), (1, 0), (0, 1))]
  np.testing.assert_array_equal(tables[0], tables[1])
  assert not np.allclose(tables[0], tables[2]) and not np.allclose(tables[0], tables[3])


def test_validation_rows_of_unknown_users_alone_count_as_zero():
  """Not less: an epoch must be better than none, or there would be nothing to restore."""
  users = np.arange(100) // 6
  log = logs.interactions_of(users, np.arange(100) % 7)
  config = _config()
  block = assembly.stream_of(config, log).block(0)
  assert log.user[block.validation].min() >= block.num_users
  validate = assembly.validator(config, log, block, assembly.context_of(config, log, 0))
  metrics = validate(np.ones((block.num_users, 2), np.float32), np.ones((block.num_items, 2), np.float32))
  assert metrics == {SELECTION_METRIC: 0.} and metrics[SELECTION_METRIC] > fresh_state()['best_value']
