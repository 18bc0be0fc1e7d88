"""Who may write in a run folder, with which configuration and from which base."""
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from graphsane_tf import files
from graphsane_tf.config import default_config, resolved
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from graphsane_tf.runs import capacity as memory
from graphsane_tf.runs import folder as folder_lib
from graphsane_tf.runs import incremental
from graphsane_tf.training.block import BlockTrainer, Diverged, new_model
from graphsane_tf.training.store import BlockStore
from tests import logs, run_files
from tests.runs.small_runs import LOG, run, settings, state_file


@pytest.mark.fault('damaged checkpoint')
def test_a_damaged_base_is_the_other_runs_damage(run_copy, tmp_path):
  path, = (run_copy / 'checkpoints' / 'block_0').glob('*.data*')
  path.write_bytes(path.read_bytes()[:100])
  with pytest.raises(UserError, match=f'--base_from={run_copy}: the damage is in that run, not in this one: '
                     '.*cannot be read.*; mend that run'):
    run(tmp_path / 'other', settings(base_from=str(run_copy)))
  state_file(run_copy, 0).write_bytes(b'\xff')
  with pytest.raises(UserError, match='the damage is in that run, not in this one: .*UTF-8'):
    run(tmp_path / 'other', settings(base_from=str(run_copy)))
  assert not (tmp_path / 'other').exists()


def test_what_cannot_matter_to_a_base_block_does_not_matter(finished_run, tmp_path):
  """The base block has the same weights with other values of everything that it may not depend on."""
  other = settings(kd='lsp', model__new_rows='neighbours', model__graph_scope='block',
                   train__learning_rate=.5, train__epochs=7, train__min_epochs=5,
                   train__num_sampler_negatives=1, sane__size=3, sane__strength=7.)
  run(tmp_path / 'run', other, blocks=[0])
  run_files.assert_same(tmp_path / 'run' / 'checkpoints' / 'block_0',
                        finished_run / 'checkpoints' / 'block_0')
  shared = settings(base_from=str(finished_run), model__new_rows='neighbours', model__graph_scope='block')
  assert 'note' not in run(tmp_path / 'shared', shared, blocks=[0])


@pytest.mark.parametrize('field,value', [
    ('seed', 5), ('train__batch_size', 32), ('train__base_learning_rate', .5), ('model__l2', .5),
    ('memory', 'popularity')])
def test_a_base_trained_otherwise_is_noted(finished_run, tmp_path, field, value):
  config = settings(**{'base_from': str(finished_run), field: value})
  said = run(tmp_path / 'run', config, blocks=[0])
  assert f'note: the base block of {finished_run} was trained with other settings ({field.replace("__", ".")}: ' \
      in said


@pytest.mark.parametrize('field,value', [
    ('backbone', 'pinsage'), ('model__embedding_dim', 4), ('model__num_layers', 2),
    ('blocks__num_incremental', 3), ('blocks__base_fraction', .5)])
def test_a_base_of_another_model_is_refused(finished_run, tmp_path, field, value):
  config = settings(base_from=str(finished_run))
  config.update_from_flattened_dict({field.replace('__', '.'): value})
  with pytest.raises(UserError, match=rf'is of another model \({field.replace("__", ".")}: '):
    run(tmp_path / 'run', config)
  assert not (tmp_path / 'run').exists()


@pytest.mark.fault('divergence')
def test_a_diverged_block_leaves_a_folder_for_the_corrected_command(finished_run, tmp_path):
  folder = tmp_path / 'run'
  wild = settings(train__learning_rate=1e3)
  for _ in range(2):
    # The epoch's first step is sound, the others are not.
    with pytest.raises(UserError, match='block 1 has diverged in epoch 1: its loss has grown from .*; lower '
                       '--learning_rate'):
      run(folder, wild)
  assert not (folder / 'export' / '1').exists()
  with pytest.raises(UserError, match='another configuration .*seed: 0 -> 3'):
    run(folder, settings(seed=3))
  before = state_file(folder, 0).read_bytes()
  assert 'block 0 is finished already.' in run(folder)
  assert state_file(folder, 0).read_bytes() == before
  run_files.assert_same(folder, finished_run)
  with pytest.raises(UserError, match='another configuration'):
    run(folder, wild)


@pytest.mark.fault('divergence')
def test_a_diverged_base_block_leaves_nothing_worth_keeping(finished_run, tmp_path):
  with pytest.raises(UserError, match='block 0 has diverged .*lower --config.train.base_learning_rate'):
    run(tmp_path / 'run', settings(train__base_learning_rate=1e6, seed=7))
  run(tmp_path / 'run')
  run_files.assert_same(tmp_path / 'run', finished_run)


def _trainer(folder, **changes):
  context = logs.context_of(LOG, 1)
  config = resolved(settings(**changes))
  previous = new_model(config, logs.context_of(LOG, 0), 1e-3)
  return BlockTrainer(config, context, previous, BlockStore(folder, 1), lambda line: None)


@pytest.mark.fault('divergence')
@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_unsound_weights_and_gradients_stop_a_block(tmp_path, value):
  trainer = _trainer(tmp_path)
  fine = trainer.represent()
  trainer._check_weights(fine, 0)
  table = trainer.model.backbone.item_table
  # A gradient that is not finite stays in Adam's moments for good.
  slot = trainer.model.optimizer.get_slot(table, 'v')
  slot[3, 2].assign(value)
  with pytest.raises(Diverged, match='epoch 1: .* not finite'):
    trainer._check_weights(fine, 0)
  slot[3, 2].assign(0.)
  trainer._check_weights(fine, 0)
  with pytest.raises(Diverged, match='representations have values of'):
    trainer._check_weights((fine[0], fine[1] + value), 0)
  with pytest.raises(Diverged, match='representations have values of'):
    trainer._check_weights((fine[0] + 2e4, fine[1]), 0)


@pytest.mark.fault('divergence')
def test_a_loss_is_compared_with_the_blocks_first_step(tmp_path):
  trainer = _trainer(tmp_path)
  trainer.step.loss_names = ['bpr', 'loss']
  state = {}
  trainer._check_losses(np.array([2., 2.]), 1, 0, state)
  trainer._check_losses(np.array([199., 199.]), 1, 5, state)
  trainer._check_losses(np.array([1600., 1600.]), 8, 5, state)
  with pytest.raises(Diverged, match='epoch 6: its loss has grown from 2 to 201;'):
    trainer._check_losses(np.array([201., 201.]), 1, 5, state)
  with pytest.raises(Diverged, match='loss bpr is no longer a number'):
    trainer._check_losses(np.array([np.nan, 1.]), 1, 5, state)


@pytest.mark.fault('two processes')
def test_a_folder_that_another_process_holds_is_refused(run_copy):
  code = ('import fcntl, os, sys\n'
          'stream = open(sys.argv[1], "a+")\n'
          'fcntl.flock(stream, fcntl.LOCK_EX)\n'
          'stream.truncate(0); stream.write(str(os.getpid())); stream.flush()\n'
          'print("held", flush=True); sys.stdin.read()')
  with subprocess.Popen([sys.executable, '-c', code, str(run_copy / 'run.lock')], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE) as other:
    assert other.stdout.readline() == b'held\n'
    for overwrite in (False, True):
      with pytest.raises(UserError, match=f'{run_copy} is in use by process {other.pid}:'):
        run(run_copy, overwrite=overwrite)
    # Readers need no lock.
    incremental.IncrementalRun(settings(), LOG, run_copy, log=lambda line: None).load_model(1)
    other.kill()
  assert 'is finished already' in run(run_copy)
  assert (run_copy / 'run.lock').read_text().strip() == str(os.getpid())


def test_the_folder_is_checked_again_once_it_is_held(finished_run, tmp_path):
  """Two commands begin together; the first to hold the folder decides whose it is."""
  job = incremental.IncrementalRun(settings(seed=3), LOG, tmp_path / 'run', log=lambda line: None)
  shutil.copytree(finished_run, tmp_path / 'run')
  with pytest.raises(UserError, match='another configuration'):
    job.run()


def test_overwriting_touches_no_folder_of_something_else(tmp_path):
  (tmp_path / 'export').mkdir()
  (tmp_path / 'export' / 'precious').write_text('x')
  with pytest.raises(UserError, match='holds no config.json of a run'):
    run(tmp_path, overwrite=True)
  (tmp_path / 'config.json').write_text('{"mine": 1}')
  with pytest.raises(UserError, match="config.json lacks 'data'"):
    run(tmp_path, overwrite=True)
  assert run_files.names(tmp_path) == ['config.json', 'export/precious']


@pytest.mark.fault('killed process')
def test_what_kills_have_left_is_removed_at_the_next_start(run_copy, finished_run):
  for name in ('export/.1.ab3', 'export/.1.old.x', 'checkpoints/.block_0.q', 'checkpoints/block_1/epoch-9_temp'):
    (run_copy / name / 'part').mkdir(parents=True)
  for name in ('per_user/.block_1.npz', 'per_user/.block_1.npz.k3', '.results.json.x', '.config.json.y',
               'checkpoints/block_1/.state.json.z', 'checkpoints/block_1/epoch-9.index'):
    (run_copy / name).write_text('half')
  (run_copy / '.mine').write_text('x')
  run(run_copy)
  assert (run_copy / '.mine').exists()
  (run_copy / '.mine').unlink()
  assert run_files.names(run_copy) == run_files.names(finished_run)
  assert not list(run_copy.rglob('.*')) and not list(run_copy.rglob('*_temp'))


@pytest.mark.fault('vanished folder')
def test_a_folder_that_vanishes_is_not_made_anew(tmp_path, monkeypatch):
  folder = tmp_path / 'run'
  save = BlockStore.save
  def vanish(self, checkpoint, name):
    shutil.rmtree(folder)
    save(self, checkpoint, name)
  monkeypatch.setattr(BlockStore, 'save', vanish)
  with pytest.raises(UserError, match=f'the run folder {folder} has vanished'):
    run(folder)
  assert not folder.exists()


@pytest.mark.fault('vanished folder')
def test_a_folder_that_vanishes_before_the_export_is_not_made_anew(tmp_path, monkeypatch):
  folder = tmp_path / 'run'
  evaluate = incremental.IncrementalRun.evaluate
  def vanish(self, context, rows, *arguments):
    if rows == self.stream.block(0).test:
      shutil.rmtree(folder)
    return evaluate(self, context, rows, *arguments)
  monkeypatch.setattr(incremental.IncrementalRun, 'evaluate', vanish)
  with pytest.raises(UserError, match=f'the run folder {folder} has vanished'):
    run(folder)
  assert not folder.exists()


def test_a_folder_of_an_earlier_version_is_the_same_run(tmp_path):
  config = json.loads(json.dumps(resolved(default_config()).to_dict()))
  earlier = {'dataset': 'drift', 'drift_size': 'small', 'drift_hide_categories': True, 'fingerprint': 'abc'}
  files.write_json(tmp_path / 'config.json', {'data': earlier, 'config': config})

  def open_folder(fingerprint='abc', **options):
    data = {**DataSpec('drift', options=options).to_json(), 'fingerprint': fingerprint}
    return folder_lib.RunFolder(tmp_path, {'data': data, 'config': config})

  open_folder(size='small', hide_categories=True)
  with pytest.raises(UserError, match='data.options.size: small -> large'):
    open_folder(size='large', hide_categories=True)
  with pytest.raises(UserError, match='data.fingerprint: abc -> other'):
    open_folder('other', size='small', hide_categories=True)


@pytest.mark.fault('too large for memory')
@pytest.mark.parametrize('backbone', ['lightgcn', 'mgccf', 'pinsage'])
def test_a_model_beyond_memory_is_refused_before_it_is_made(tmp_path, backbone):
  config = settings(model__embedding_dim=100_000_000)
  config.backbone = backbone
  with pytest.raises(UserError, match='--embedding_dim=100000000: .* takes at least .* GiB'):
    run(tmp_path / 'run', config)
  assert not (tmp_path / 'run').exists()
  config.model.embedding_dim = 8
  context = logs.context_of(LOG, 1)
  model = new_model(resolved(config), context, 1e-3)
  assert memory.num_weights(resolved(config), context.num_users, context.num_items) == sum(
      v.shape.num_elements() for v in model.backbone.trainable_variables)
