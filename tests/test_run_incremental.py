"""The command of the README, in processes of its own."""
import json
import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests import run_files
from tests.data import raw_files

ROOT = pathlib.Path(__file__).resolve().parents[1]
SMALL = ['--embedding_dim=8', '--batch_size=512', '--base_epochs=2', '--epochs=2']


SCRIPT = ROOT / 'experiments' / 'run_incremental.py'


def trainable_log(seed=0, rows=900):
  """(users, items, times): a log in which two groups of users take two groups of items."""
  rng = np.random.default_rng(seed)
  users = rng.integers(1, 25, rows)
  items = 2 * rng.integers(1, 20, rows) + users % 2
  return users, items, np.sort(1_420_070_400 + 86_400 * rng.integers(0, 300, rows))


def recommendations(folder, user):
  """Asks a SavedModel in a process that knows only TensorFlow."""
  code = ('import sys, json, tensorflow as tf\n'
          'f = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]\n'
          'r = f(user_id=tf.constant([sys.argv[2], "nobody"]), k=tf.constant(3))\n'
          'print(json.dumps([[x.decode() for x in row] for row in r["item_id"].numpy().tolist()]))')
  found = subprocess.run([sys.executable, '-I', '-c', code, str(folder), user], text=True,
                         capture_output=True, check=True)
  return json.loads(found.stdout.splitlines()[-1])


FORMATS = ('gowalla', 'yelp', 'taobao15', 'netflix', 'ml10m')
MISTAKES = {
    '--kd=magic': (['--kd=magic'], '--kd=magic'),
    'unknown flag': (['--blok=1'], 'blok'),
    '--epochs=soon': (['--epochs=soon'], '--epochs=soon'),
    'a field that is no number': (['--config.sane.size=many'], '--config.sane.size=many is not a whole number'),
    '--block=first': (['--block=first'], '--block=first'),
    'unknown block': (['--block=9'], '--block=9 does not exist: this run has blocks 0 to 3'),
    'a digit that is no number': (['--block=\u00b2'], 'is neither all nor a number'),
    'unknown field': (['--config.train.speed=1'], "no field 'train.speed'"),
    'mistyped field': (['--config.sane.sise=300'], 'did you mean config.sane.size?'),
    'mistyped field with a file': (['--config=good.py', '--config.sane.sise=300'],
                                   'did you mean config.sane.size?'),
    'mistyped flag': (['--epoch=3'], 'there is no flag --epoch; did you mean --epochs'),
    'missing configuration': (['--config=missing.py'], 'missing.py'),
    'configuration that does not compile': (['--config=syntax.py'], 'syntax.py, line 1: SyntaxError'),
    'configuration that does not import': (['--config=import.py'],
                                           'import.py, line 1: ModuleNotFoundError'),
    'configuration that fails': (['--config=raises.py'], 'raises.py, line 2: ZeroDivisionError'),
    'configuration without get_config': (['--config=log.csv'], 'log.csv'),
    'two samplers': (['--sane', '--sampler=uniform'], 'name different samplers'),
    '--sane and its field': (['--sane', '--config.sampler=dns'],
                             '--sane and --config.sampler=dns disagree'),
    'a flag and its field': (['--epochs=3', '--config.train.epochs=5'],
                             '--epochs=3 and --config.train.epochs=5 disagree'),
    'a switch and its field': (['--nofull_retrain', '--config.full_retrain=True'],
                               '--full_retrain=False and --config.full_retrain=True disagree'),
    'a number that is none': (['--learning_rate=nan'], 'config.train.learning_rate is nan'),
    'a learning rate of 0': (['--learning_rate=0'], 'config.train.learning_rate is 0.0'),
    'a flag out of range': (['--batch_size=0'], '--batch_size=0'),
    'seed of the generated log': (['--drift_seed=-1'], '--drift_seed=-1'),
    'more of the sampler than there are': (['--sane', '--config.train.num_sampler_negatives=11'],
                                           'config.train.num_sampler_negatives is 11'),
    'a section': (['--config.train=3'], '--config.train is a section'),
    **{f'config.{field}': ([f'--config.{field}={value}'], f'config.{field} is {shown or value}; it must')
       for field, value, shown in (
           ('train.learning_rate', '-1', '-1.0'), ('model.embedding_dim', '0', ''),
           ('model.graph_scope', 'foo', "'foo'"), ('model.new_rows', 'foo', "'foo'"),
           ('model.l2', '-1', '-1.0'), ('train.patience', '-1', ''), ('evaluation.cutoffs', '()', ''),
           ('train.batch_size', '0', ''), ('train.num_negatives', '0', ''), ('model.num_knn', '-1', ''),
           ('seed', '-1', ''), ('model.fanout', '()', ''), ('sane_variant', 'foo', "'foo'"),
           ('kd', 'foo', "'foo'"), ('sampler', 'foo', "'foo'"),
           ('evaluation.map_denominator', 'foo', "'foo'"), ('model.propagation', 'foo', "'foo'"),
           ('warp.loss', 'foo', "'foo'"))},
    'retraining with a teacher': (['--full_retrain', '--kd=sgct'], 'leave out --kd'),
    'missing raw file': (['--dataset=taobao14'], 'tianchi_mobile_recommend_train_user.csv'),
    'unparsable time': (['--dataset=csv', '--interactions=log.csv'], 'line 3'),
    'too few rows': (['--dataset=csv', '--interactions=few.csv'], 'rows'),
    'no categories': (['--hide_categories', '--drift_size=small', '--sane',
                       '--clusters=categories'], '--category_column'),
    'no base block': (['--drift_size=small', '--base_from=nowhere'], 'no finished base block'),
    'folder below a file': (['--workdir=file/run', '--drift_size=small'],
                            'cannot create the folder'),
    'stray word': (['run'], "'run' is not a flag"),
}

@pytest.fixture(name='formats', scope='module')
def formats_fixture(forked, tmp_path_factory):
  cases = {}
  for name in FORMATS:
    folder = tmp_path_factory.mktemp(name)
    getattr(raw_files, f'write_{name}')(folder / 'data' / name, *trainable_log())
    cases[name] = folder, forked.run(
        SCRIPT, f'--dataset={name}', '--min_user_interactions=2', '--min_item_interactions=2', '--block=0',
        '--workdir=run', '--backbone=lightgcn', *SMALL, cwd=folder)
  return cases


@pytest.mark.parametrize('name', FORMATS)
def test_each_raw_format_goes_through_to_a_saved_model(name, formats):
  folder, result = formats[name]
  assert result.returncode == 0, result.stderr
  assert 'warning:' in result.stdout  # The paper's log is larger than this one.
  assert (folder / 'run' / 'export' / '0' / 'saved_model.pb').exists()


def test_the_main_job_on_a_raw_taobao14_file(forked, tmp_path):
  users, items, times = trainable_log()
  raw_files.write_taobao14(tmp_path / 'data' / 'taobao14', users, items, times)
  result = forked.run(SCRIPT, '--dataset=taobao14', '--kd=sgct', '--sane', '--min_user_interactions=2',
                      '--min_item_interactions=2', *SMALL, cwd=tmp_path)
  assert result.returncode == 0, result.stderr
  folder, = (tmp_path / 'runs').iterdir()
  assert folder.name.startswith('taobao14-sgct-sane-seed0-')
  results = json.loads((folder / 'results.json').read_text())
  assert results['sampler'] == 'sane' and len(results['blocks']) == 4
  first, unknown = recommendations(folder / 'export' / '3', str(users[0]))
  seen = set(items[users == users[0]][:int(.9 * len(users))].astype(str))
  assert all(first) and all(unknown) and not set(first) <= seen


@pytest.mark.fault('killed process')
def test_sigkill_and_the_same_command_again(forked, tmp_path):
  arguments = [SCRIPT, '--drift_size=small', '--kd=sgct', '--sane', '--backbone=lightgcn', '--embedding_dim=16',
               '--batch_size=512', '--base_epochs=2', '--epochs=6', '--config.train.patience=6',
               '--config.blocks.num_incremental=2']
  whole = forked.run(*arguments, '--workdir=whole', cwd=tmp_path)
  assert whole.returncode == 0, whole.stderr
  state = tmp_path / 'cut' / 'checkpoints' / 'block_1' / 'state.json'
  process = forked.start(*arguments, '--workdir=cut', cwd=tmp_path)
  process.until(lambda: state.exists() and json.loads(state.read_text())['epoch'] >= 2)
  process.send_signal(signal.SIGKILL)
  assert process.wait() == -signal.SIGKILL
  killed_at = json.loads(state.read_text())
  assert not killed_at.get('result')
  again = forked.run(*arguments, '--workdir=cut', cwd=tmp_path)
  assert again.returncode == 0, again.stderr
  assert f'block 1 epoch {killed_at["epoch"] + 1:2}/' in again.stdout
  assert 'block 1 epoch  1/' not in again.stdout
  run_files.assert_same(tmp_path / 'cut', tmp_path / 'whole')


@pytest.fixture(name='mistakes', scope='module')
def mistakes_fixture(forked, tmp_path_factory):
  cases = {}
  for name, (arguments, _) in MISTAKES.items():
    folder = tmp_path_factory.mktemp('mistake')
    (folder / 'log.csv').write_text('user,item,timestamp\na,b,1\na,c,noon\n')
    (folder / 'few.csv').write_text('user,item,timestamp\na,b,1\nb,c,2\n')
    (folder / 'file').write_text('')
    (folder / 'good.py').write_text('from graphsane_tf.config import default_config as get_config\n')
    (folder / 'syntax.py').write_text('def get_config(:\n')
    (folder / 'import.py').write_text('import no_such_module\n')
    (folder / 'raises.py').write_text('def get_config():\n  return 1 / 0\n')
    cases[name] = folder, forked.run(SCRIPT, *arguments, cwd=folder)
  return cases


@pytest.mark.fault('mistake on the command line')
@pytest.mark.parametrize('name', MISTAKES)
def test_mistakes_are_one_sentence_and_leave_nothing(name, mistakes):
  (folder, result), words = mistakes[name], MISTAKES[name][1]
  errors = result.stderr
  assert result.returncode == 2, errors
  lines = errors.strip().splitlines()
  assert len(lines) == 1 and lines[0].startswith('error: ') and words in lines[0], errors
  # A log that could be read may be kept, however short it is.
  kept = {'data'} if '--interactions=few.csv' in MISTAKES[name][0] else set()
  assert {entry.name for entry in folder.iterdir()} - kept == {
      'log.csv', 'few.csv', 'file', 'good.py', 'syntax.py', 'import.py', 'raises.py'}


def test_a_flag_without_effect_is_noted_and_one_that_agrees_with_its_field_passes(forked, tmp_path):
  result = forked.run(SCRIPT, '--drift_size=small', '--backbone=lightgcn', '--clusters=kmeans', '--block=0', *SMALL,
                      '--config.train.epochs=2', '--config.sgct.weight=3', cwd=tmp_path)
  assert result.returncode == 0, result.stderr
  notes = [line for line in result.stdout.splitlines() if line.startswith('note:')]
  assert notes == ['note: --clusters has no effect with --sampler=uniform.',
                   'note: --config.sgct.weight has no effect with --kd=none.']


def test_methods_have_no_effect_on_a_peer(forked, tmp_path):
  result = forked.run(SCRIPT, '--drift_size=small', '--peer=popularity', '--kd=sgct', '--sane', cwd=tmp_path)
  assert result.returncode == 0, result.stderr
  notes = [line for line in result.stdout.splitlines() if line.startswith('note:')]
  assert notes == [f'note: --{name} has no effect with --peer=popularity.' for name in ('sane', 'kd')]


def test_keras_3_first_is_one_sentence():
  code = 'import tensorflow, graphsane_tf'
  environ = {**os.environ, 'PYTHONPATH': str(ROOT)}
  environ.pop('TF_USE_LEGACY_KERAS', None)
  result = subprocess.run([sys.executable, '-c', code], env=environ, capture_output=True, text=True,
                          check=False)
  assert result.returncode == 1
  assert 'import graphsane_tf before tensorflow' in result.stderr.splitlines()[-1]
