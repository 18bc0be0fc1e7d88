"""The command of the README, in processes of its own."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.data import raw_files

ROOT = pathlib.Path(__file__).resolve().parents[1]
SMALL = ['--embedding_dim=8', '--batch_size=512', '--base_epochs=2', '--epochs=2']


def command(*arguments):
  return [sys.executable, str(ROOT / 'experiments' / 'run_incremental.py'), *map(str, arguments)]


def environment():
  return {**os.environ, 'PYTHONPATH': str(ROOT)}


def run(*arguments, cwd):
  return subprocess.run(command(*arguments), cwd=cwd, env=environment(), capture_output=True,
                        text=True, check=False)


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


@pytest.mark.parametrize('name', ['gowalla', 'yelp', 'taobao15', 'netflix', 'ml10m'])
def test_each_raw_format_goes_through_to_a_saved_model(name, tmp_path):
  getattr(raw_files, f'write_{name}')(tmp_path / 'data' / name, *trainable_log())
  result = run(f'--dataset={name}', '--min_user_interactions=2', '--min_item_interactions=2',
               '--block=0', f'--workdir={tmp_path / "run"}', *SMALL, cwd=tmp_path)
  assert result.returncode == 0, result.stderr
  assert 'warning:' in result.stdout  # The paper's log is larger than this one.
  assert (tmp_path / 'run' / 'export' / '0' / 'saved_model.pb').exists()


def test_the_main_job_on_a_raw_taobao14_file(tmp_path):
  users, items, times = trainable_log()
  raw_files.write_taobao14(tmp_path / 'data' / 'taobao14', users, items, times)
  result = run('--dataset=taobao14', '--kd=sgct', '--sane', '--min_user_interactions=2',
               '--min_item_interactions=2', *SMALL, cwd=tmp_path)
  assert result.returncode == 0, result.stderr
  folder, = (tmp_path / 'runs').iterdir()
  assert folder.name.startswith('taobao14-sgct-seed0') and 'sampler=sane' in folder.name
  results = json.loads((folder / 'results.json').read_text())
  assert results['sane'] and len(results['blocks']) == 4
  first, unknown = recommendations(folder / 'export' / '3', str(users[0]))
  seen = set(items[users == users[0]][:int(.9 * len(users))].astype(str))
  assert all(first) and all(unknown) and not set(first) <= seen


def test_sigkill_and_the_same_command_again(tmp_path):
  arguments = ['--drift_size=small', '--kd=sgct', '--sane', '--embedding_dim=16',
               '--batch_size=512', '--base_epochs=2', '--epochs=6', '--config.train.patience=6']
  whole = run(*arguments, '--workdir=whole', cwd=tmp_path)
  assert whole.returncode == 0, whole.stderr
  state = tmp_path / 'cut' / 'checkpoints' / 'block_1' / 'state.json'
  with subprocess.Popen(command(*arguments, '--workdir=cut'), cwd=tmp_path, env=environment(),
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
    deadline = time.monotonic() + 240
    while not (state.exists() and json.loads(state.read_text())['epoch'] >= 2):
      assert process.poll() is None and time.monotonic() < deadline
      time.sleep(.02)
    process.send_signal(signal.SIGKILL)
  killed_at = json.loads(state.read_text())
  assert not killed_at.get('result')
  again = run(*arguments, '--workdir=cut', cwd=tmp_path)
  assert again.returncode == 0, again.stderr
  assert f'block 1  epoch {killed_at["epoch"] + 1}/' in again.stdout
  assert 'block 1  epoch 1/' not in again.stdout

  def numbers(name):
    results = json.loads((tmp_path / name / 'results.json').read_text())
    for entry in results['blocks']:
      del entry['train_seconds'], entry['reservoir_seconds']
    return results

  assert numbers('cut') == numbers('whole')


@pytest.mark.parametrize('arguments, words', [
    (['--kd=magic'], '--kd=magic'),
    (['--blok=1'], 'blok'),
    (['--epochs=soon'], '--epochs=soon'),
    (['--block=first'], '--block=first'),
    (['--config.train.speed=1'], "no field 'speed'"),
    (['--config=missing.py'], 'missing.py'),
    (['--sane', '--sampler=uniform'], 'name different samplers'),
    (['--dataset=taobao14'], 'tianchi_mobile_recommend_train_user.csv'),
    (['--dataset=csv', '--interactions=log.csv'], 'line 3'),
    (['--dataset=csv', '--interactions=few.csv'], 'rows'),
    (['--hide_categories', '--drift_size=small', '--sane', '--clusters=categories',
      '--base_epochs=1'], '--category_column'),
    (['--workdir=file/run', '--drift_size=small'], 'cannot create the folder'),
    (['run'], "'run' is not a flag"),
])
def test_mistakes_are_one_sentence_and_leave_nothing(arguments, words, tmp_path):
  (tmp_path / 'log.csv').write_text('user,item,timestamp\na,b,1\na,c,noon\n')
  (tmp_path / 'few.csv').write_text('user,item,timestamp\na,b,1\nb,c,2\n')
  (tmp_path / 'file').write_text('')
  result = run(*arguments, cwd=tmp_path)
  assert result.returncode == 2, result.stdout + result.stderr
  lines = result.stderr.strip().splitlines()
  assert len(lines) == 1 and lines[0].startswith('error: ') and words in lines[0], result.stderr
  assert not (tmp_path / 'runs').exists()


def test_a_flag_without_effect_is_noted(tmp_path):
  result = run('--drift_size=small', '--clusters=kmeans', '--block=0', *SMALL, cwd=tmp_path)
  assert result.returncode == 0, result.stderr
  assert 'note: --clusters has no effect with --sampler=uniform.' in result.stdout


def test_keras_3_first_is_one_sentence():
  code = 'import tensorflow, graphsane_tf'
  environ = {k: v for k, v in environment().items() if k != 'TF_USE_LEGACY_KERAS'}
  result = subprocess.run([sys.executable, '-c', code], env=environ, capture_output=True, text=True,
                          check=False)
  assert result.returncode == 1
  assert 'import graphsane_tf before tensorflow' in result.stderr.splitlines()[-1]
