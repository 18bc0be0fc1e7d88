"""Whole runs: results, resume, sharing a base block, growing tables."""
import json

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import files
from graphsane_tf.config import resolved
from graphsane_tf.data import drift
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from graphsane_tf.serving import export
from graphsane_tf.runs import workdir
from graphsane_tf.runs import incremental
from graphsane_tf.training import assembly
from graphsane_tf.training.block import BlockTrainer, new_model
from graphsane_tf.training.store import BlockStore
from tests import logs


def _same_blocks(folder, other, number):
  """Both folders have the same results of the first blocks, apart from the seconds they took."""
  found = []
  for place in (folder, other):
    blocks = json.loads((place / 'results.json').read_text())['blocks'][:number]
    for entry in blocks:
      del entry['train_seconds'], entry['sampler_seconds']
    found.append(blocks)
  assert len(found[0]) == number and found[0] == found[1]


def _quiet(line):
  del line


@pytest.fixture(name='log', scope='module')
def log_fixture():
  return drift.generate('small')


def _tiny():
  return logs.tiny_config(backbone='lightgcn', kd='sgct', sampler='sane', train__batch_size=512, train__base_epochs=3,
                          train__epochs=3)


@pytest.fixture(name='config')
def config_fixture():
  return _tiny()


@pytest.fixture(name='finished', scope='module')
def finished_fixture(log, tmp_path_factory):
  folder = tmp_path_factory.mktemp('runs') / 'run'
  return folder, incremental.run(_tiny(), log, folder, log=_quiet)


def test_results_have_the_promised_shape(finished):
  folder, results = finished
  assert json.loads((folder / 'results.json').read_text()) == json.loads(json.dumps(results))
  for key in ('dataset', 'backbone', 'kd', 'sampler', 'replay', 'seed', 'blocks', 'average',
              'config'):
    assert key in results
  assert [entry['block'] for entry in results['blocks']] == [0, 1, 2, 3]
  for entry in results['blocks']:
    for key in ('block', 'train_pairs', 'num_users', 'num_items', 'epochs', 'best_epoch',
                'train_seconds', 'sampler_seconds', 'validation', 'test'):
      assert key in entry
    for metric in ('recall', 'precision', 'map', 'ndcg'):
      for k in (5, 10, 15, 20):
        assert 0 <= entry['test'][f'{metric}@{k}'] <= 1
    assert (folder / 'export' / str(entry['block']) / 'saved_model.pb').exists()
  mean = np.mean([entry['test']['recall@20'] for entry in results['blocks'][1:]])
  assert results['average']['recall@20'] == pytest.approx(mean)
  records = [json.loads(line) for line in (folder / 'metrics.jsonl').read_text().splitlines()]
  assert {record['block'] for record in records} == {0, 1, 2, 3}
  assert list((folder / 'tensorboard').iterdir())


def test_base_block_has_its_own_losses_only(finished):
  folder, _ = finished
  records = [json.loads(line) for line in (folder / 'metrics.jsonl').read_text().splitlines()]
  for record in records:
    names = set(record['losses'])
    if record['block'] == 0:
      assert names == {'bpr', 'l2', 'loss'}
    else:
      assert names == {'bpr', 'l2', 'loss', 'sane', 'kl', 'sgct'}


def test_a_finished_run_is_not_trained_again(finished, log, config):
  folder, results = finished
  lines = []
  again = incremental.run(config, log, folder, log=lines.append)
  assert again == json.loads(json.dumps(results))
  assert sum('is finished already' in line for line in lines) == 4
  assert any('average 1-3' in line for line in lines)


def test_saved_model_gives_the_models_own_ranking(finished, log, config):
  folder, _ = finished
  run = incremental.IncrementalRun(config, log, folder, log=_quiet)
  model = run.load_model(3)
  users, items = (v.numpy() for v in model.backbone.representer(model.graph)())
  seen = run.context(3).history.matrix().toarray() > 0
  answers = export.recommend(folder / 'export' / '3', log.user_ids[:5].tolist(), 5)
  for user in range(5):
    scores = np.where(seen[user], -np.inf, users[user] @ items.T)
    np.testing.assert_allclose([score for _, score in answers[user]], np.sort(scores)[::-1][:5],
                               rtol=1e-4)


def test_another_configuration_is_refused_unless_overwritten(finished, log, config):
  folder, _ = finished
  config.train.learning_rate = .5
  with pytest.raises(UserError, match='config.train.learning_rate: 0.001 -> 0.5'):
    incremental.IncrementalRun(config, log, folder, log=_quiet)


def test_a_folder_of_something_else_is_refused(log, config, tmp_path):
  (tmp_path / 'precious.txt').write_text('x')
  with pytest.raises(UserError, match='holds no config.json'):
    incremental.IncrementalRun(config, log, tmp_path, log=_quiet)
  with pytest.raises(UserError, match='holds no config.json'):
    incremental.IncrementalRun(config, log, tmp_path, overwrite=True, log=_quiet)
  assert (tmp_path / 'precious.txt').exists()


def test_a_crash_while_saving_costs_at_most_an_epoch(finished, log, config, tmp_path, monkeypatch):
  """Crashes in a second epoch, on either side of the rename that makes it count."""
  save_state = BlockStore.save_state
  crashes = ['block_1', 'block_2']  # Before the state is saved in the first one, then after it.

  def crashing(self, state):
    fatal = crashes and self.folder.name == crashes[0] and state['epoch'] == 2
    if fatal:
      crashes.pop(0)
    if not fatal or not crashes:
      save_state(self, state)
    if fatal:
      raise RuntimeError('crash')

  monkeypatch.setattr(BlockStore, 'save_state', crashing)
  for first_epoch in (1, 2, 3):
    lines = []
    try:
      incremental.run(config, log, tmp_path / 'run', blocks=[0, 1, 2], log=lines.append)
    except RuntimeError:
      assert first_epoch < 3
    trained = [line for line in lines if line.startswith('block') and ' epoch ' in line]
    assert f'epoch {first_epoch:2}/' in trained[0]
  _same_blocks(tmp_path / 'run', finished[0], 3)


def test_blocks_one_at_a_time_give_the_same_numbers(finished, log, config, tmp_path):
  for block in range(3):
    incremental.run(config, log, tmp_path / 'run', blocks=[block], log=_quiet)
  _same_blocks(tmp_path / 'run', finished[0], 3)


def test_a_block_needs_the_one_before(log, config, tmp_path):
  with pytest.raises(UserError, match='block 1 is not finished'):
    incremental.run(config, log, tmp_path / 'run', blocks=[2], log=_quiet)
  with pytest.raises(UserError, match='--block=4 does not exist'):
    incremental.run(config, log, tmp_path / 'run', blocks=[4], log=_quiet)


def test_base_block_is_shared(finished, log, config, tmp_path):
  folder, results = finished
  config.kd, config.sampler = 'none', 'uniform'
  config.base_from = str(folder)
  run = incremental.IncrementalRun(config, log, tmp_path / 'run', log=_quiet)
  shared = run.run([0])
  for key in ('epochs', 'best_epoch', 'validation', 'test'):
    assert shared['blocks'][0][key] == results['blocks'][0][key]
  config.model.embedding_dim = 4
  with pytest.raises(UserError, match=r'another model \(model.embedding_dim: 8 -> 4\)'):
    incremental.IncrementalRun(config, log, tmp_path / 'other', log=_quiet)


def test_damaged_checkpoint_is_one_clear_sentence(log, config, tmp_path):
  incremental.run(config, log, tmp_path / 'run', blocks=[0], log=_quiet)
  for path in (tmp_path / 'run' / 'checkpoints' / 'block_0').glob('*.data*'):
    path.write_bytes(path.read_bytes()[:100])
  with pytest.raises(UserError, match='cannot be read.*train the block anew'):
    incremental.run(config, log, tmp_path / 'run', blocks=[1], log=_quiet)


def test_growing_keeps_old_rows_and_their_optimiser_state(log, config, tmp_path):
  config.backbone = 'mgccf'
  resolved_config = resolved(config)
  previous = new_model(resolved_config, logs.context_of(log, 0), 1e-3)
  for slot in ('m', 'v'):
    variable = previous.optimizer.get_slot(previous.backbone.user_table, slot)
    variable.assign(tf.random.stateless_uniform(variable.shape, [1, 2]))
  previous.optimizer.iterations.assign(17)
  trainer = BlockTrainer(resolved_config, logs.context_of(log, 1), previous,
                         BlockStore(tmp_path, 1), _quiet)
  new, old = trainer.model, previous
  count = old.backbone.num_users
  assert new.backbone.num_users > count
  np.testing.assert_array_equal(new.backbone.user_table[:count], old.backbone.user_table)
  np.testing.assert_array_equal(new.backbone.user_outer, old.backbone.user_outer)
  for slot in ('m', 'v'):
    grown = new.optimizer.get_slot(new.backbone.user_table, slot).numpy()
    np.testing.assert_array_equal(
        grown[:count], old.optimizer.get_slot(old.backbone.user_table, slot).numpy())
    assert not grown[count:].any()
  assert int(new.optimizer.iterations) == 17


def test_new_rows_from_their_neighbours(log, config, tmp_path):
  config.model.new_rows = 'neighbours'
  resolved_config = resolved(config)
  context = logs.context_of(log, 1)
  previous = new_model(resolved_config, logs.context_of(log, 0), 1e-3)
  trainer = BlockTrainer(resolved_config, context, previous, BlockStore(tmp_path, 1), _quiet)
  table = trainer.model.backbone.user_table.numpy()
  edges = context.history.matrix().toarray()
  for user in range(context.num_old_users, context.num_users):
    items = np.flatnonzero(edges[user, :context.num_old_items])
    if len(items):
      np.testing.assert_allclose(
          table[user], previous.backbone.item_table.numpy()[items].mean(0), rtol=1e-5)


@pytest.mark.parametrize('propagation', ['whole', 'sampled'])
def test_one_trace_a_block(log, config, tmp_path, propagation):
  config.model.propagation = propagation
  resolved_config = resolved(config)
  previous = new_model(resolved_config, logs.context_of(log, 0), 1e-3)
  trainer = assembly.trainer_for(resolved_config, log, 1, tmp_path, previous)
  trainer.train(lambda u, i, lists: {'recall@20': 0.}, lambda record: None)
  assert trainer.step.num_traces == 1


def test_a_loss_that_is_no_number_stops_the_run(log, config, tmp_path):
  config.train.base_learning_rate = 1e30
  with pytest.raises(UserError, match='block 0 has diverged in epoch 1: .*--config.train.base_learning_rate'):
    incremental.run(config, log, tmp_path / 'run', blocks=[0], log=_quiet)


def test_default_folders_differ_by_every_choice():
  config = logs.tiny_config()
  names = {str(workdir.default_workdir(config, DataSpec('drift'))),
           str(workdir.default_workdir(config, DataSpec('drift', options={'size': 'small'})))}
  for field, value in (('sampler', 'sane'), ('seed', 3), ('train.epochs', 9), ('sane.size', 7),
                       ('model.fanout', (3, 2))):
    changed = logs.tiny_config()
    changed.update_from_flattened_dict({field: value})
    names.add(str(workdir.default_workdir(changed, DataSpec('drift'))))
  assert len(names) == 7
  plain = workdir.default_workdir(logs.default_config(), DataSpec('drift'))
  assert str(plain) == 'runs/drift-fine_tune-seed0'


def test_files_are_replaced_whole(tmp_path, monkeypatch):
  target = tmp_path / 'state.json'
  files.write_json(target, {'a': 1})
  monkeypatch.setattr(files.os, 'replace', lambda *a: (_ for _ in ()).throw(OSError('full')))
  with pytest.raises(UserError, match=f'cannot write {target}: full'):
    files.write_json(target, {'a': 2})
  assert files.read_json(target) == {'a': 1}
  assert [path.name for path in tmp_path.iterdir()] == ['state.json']


def test_a_folder_of_an_older_version_goes_on(tmp_path):
  log = logs.random_log(rows=600)
  config = logs.tiny_config()
  quiet = lambda line: None
  incremental.IncrementalRun(config, log, tmp_path / 'run', log=quiet).run([0])
  path = tmp_path / 'run' / 'config.json'
  saved = files.read_json(path)
  # A field that came later: the folder has never heard of it.
  del saved['config']['sane']['candidates']
  files.write_json(path, saved)
  incremental.IncrementalRun(config, log, tmp_path / 'run', log=quiet).run([1])
  changed = logs.tiny_config(sane__candidates=3)
  with pytest.raises(UserError, match='candidates'):
    incremental.IncrementalRun(changed, log, tmp_path / 'run', log=quiet)
