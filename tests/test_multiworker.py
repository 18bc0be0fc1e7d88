"""Workers on loopback, as processes of their own: the same numbers as one process, and what happens when one dies."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.runs import store
from tests import run_files, store_files

pytestmark = pytest.mark.slow
_FLAGS = ['run', '--dataset=drift', '--drift_size=small', '--config=tiny', '--kd=sgct', '--sane', '--base_epochs=2',
          '--config.blocks.num_incremental=2', '--epochs=4', '--config.train.min_epochs=4']
# Sums of a few hundred float32 terms in another order, over some dozen steps of Adam.
_LOSSES, _WEIGHTS = 1e-4, 1e-3
# Seconds for a run on a busy machine.
_PATIENCE = 3600


def _ports(count):
  sockets = [socket.socket() for _ in range(count)]
  for one in sockets:
    one.bind(('127.0.0.1', 0))
  ports = [one.getsockname()[1] for one in sockets]
  for one in sockets:
    one.close()
  return ports


def _start(words, folder, ports=(), index=0):
  environment = {**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3'}
  if ports:
    environment['TF_CONFIG'] = json.dumps({'cluster': {'worker': [f'127.0.0.1:{port}' for port in ports]},
                                           'task': {'type': 'worker', 'index': index}})
  with open(folder / f'said_{index}.txt', 'ab') as said:
    return subprocess.Popen([sys.executable, '-m', 'graphsane_tf', *words], cwd=folder, env=environment, stdout=said,
                            stderr=subprocess.STDOUT)


def _workers(words, folder):
  ports = _ports(2)
  return [_start([*words, '--strategy=multiworker'], folder, ports, index) for index in range(2)]


def _said(folder, index):
  return (folder / f'said_{index}.txt').read_text()


def _end(processes, folder, code=0):
  for index, process in enumerate(processes):
    assert process.wait(timeout=_PATIENCE) == code, _said(folder, index)


def _records(run):
  return [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]


def _weights(run, block):
  reader = tf.train.load_checkpoint(str(next((run / 'checkpoints' / f'block_{block}').glob('*.index')))[:-6])
  return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if name.startswith('backbone')}


@pytest.fixture(scope='module', params=['mgccf', 'lightgcn'])
def runs(request, tmp_path_factory):
  """Flags, and the folders of a run in one process and of the same by two workers."""
  folder = tmp_path_factory.mktemp(request.param)
  words = [*_FLAGS, f'--backbone={request.param}', '--config.model.propagation=sampled']
  _end([_start([*words, '--workdir=one'], folder)], folder)
  _end(_workers([*words, '--workdir=two'], folder), folder)
  return words, folder / 'one', folder / 'two'


@pytest.mark.parametrize('strategy', ['multiworker', 'mirrored'])
def test_replicas_train_as_one_process(runs, strategy):
  words, one, two = runs
  if strategy == 'mirrored':
    two = one.parent / strategy
    _end([_start([*words, f'--workdir={two}', f'--strategy={strategy}'], one.parent)], one.parent)
  records = _records(one), _records(two)
  assert len(records[0]) == len(records[1]) == 6
  for alone, shared in zip(*records):
    assert list(alone['losses']) == list(shared['losses'])
    np.testing.assert_allclose(list(shared['losses'].values()), list(alone['losses'].values()), rtol=_LOSSES, atol=1e-6)
  for block in (0, 1):
    alone, shared = _weights(one, block), _weights(two, block)
    assert alone and alone.keys() == shared.keys()
    for name, value in alone.items():
      # Relative to the largest of a tensor: some moments are nearly zero.
      largest = np.abs(value).max() + 1e-12
      np.testing.assert_allclose(shared[name], value, rtol=0, atol=_WEIGHTS * largest, err_msg=name)


def test_only_the_chief_writes_and_speaks(runs):
  _, one, two = runs
  assert run_files.names(one) == run_files.names(two)
  results = json.loads((two / 'results.json').read_text())
  assert results['blocks'][1]['strategy'] == 'multiworker, 2 replicas on 2 workers'
  lines = [line for line in _said(two.parent, 1).splitlines() if line]
  assert lines[0] == 'worker 1 of 2 waits for the others' and len(lines) == 1, lines


@pytest.fixture(scope='module')
def straight(tmp_path_factory):
  """Flags, and the folder of a run of a base block by two workers that nobody has disturbed."""
  folder = tmp_path_factory.mktemp('straight')
  words = ['run', '--dataset=drift', '--drift_size=small', '--config=tiny', '--backbone=lightgcn', '--block=0',
           '--base_epochs=12', '--config.train.base_min_epochs=12', '--config.model.propagation=sampled',
           '--workdir=run']
  _end(_workers(words, folder), folder)
  return words, folder / 'run'


@pytest.mark.parametrize('killed', [0, 1])
def test_a_dead_worker_is_reported_and_the_cluster_goes_on(straight, killed, tmp_path):
  words, run = straight
  processes = _workers(words, tmp_path)
  deadline = time.monotonic() + _PATIENCE
  while 'block 0 epoch  2/12' not in _said(tmp_path, 0):
    assert time.monotonic() < deadline and all(process.poll() is None for process in processes), _said(tmp_path, 0)
    time.sleep(.02)
  processes[killed].send_signal(signal.SIGKILL)
  began = time.monotonic()
  assert processes[1 - killed].wait(timeout=60) == 2, _said(tmp_path, 1 - killed)
  print(f'the other worker has ended after {time.monotonic() - began:.1f} s')
  last = [line for line in _said(tmp_path, 1 - killed).splitlines() if line][-1]
  assert last.startswith('error: ') and 'start all workers again with the same command' in last
  processes[killed].wait()
  before = len(_records(tmp_path / 'run'))
  assert before < 12
  _end(_workers(words, tmp_path), tmp_path)
  timeless = lambda record: {name: value for name, value in record.items() if 'second' not in name}
  assert [*map(timeless, _records(tmp_path / 'run'))] == [*map(timeless, _records(run))]
  for name, value in _weights(run, 0).items():
    np.testing.assert_array_equal(_weights(tmp_path / 'run', 0)[name], value)


def test_the_path_is_not_in_the_files(runs):
  _, _, two = runs
  text = (two / 'results.json').read_text() + (two / 'config.json').read_text()
  assert '127.0.0.1' not in text and str(pathlib.Path(two).parent) not in text


def test_two_workers_update_a_store(tmp_path):
  days = store_files.write_days(tmp_path)
  _end([_start(['init', '--store=one', f'--interactions={days["history"]}', *store_files.FLAGS], tmp_path)], tmp_path)
  shutil.copytree(tmp_path / 'one', tmp_path / 'two')
  words = ['update', f'--interactions={days["monday"]}', '--margin=.9']
  _end([_start([*words, '--store=one'], tmp_path)], tmp_path)
  _end(_workers([*words, '--store=two'], tmp_path), tmp_path)
  one, two = (store.Store(tmp_path / name).manifest() for name in ('one', 'two'))
  assert one['number'] == two['number'] == 2 and one['gate']['decision'] == two['gate']['decision']
  assert one['trained'] == two['trained'] and one['data'] == two['data']
  for name, metrics in one['gate']['options'].items():
    # One user of 200 may have another item at place 20.
    np.testing.assert_allclose(list(two['gate']['options'][name].values()), list(metrics.values()), atol=.01)
  assert 'worker 1 of 2' in _said(tmp_path, 1) and 'published' not in _said(tmp_path, 1)


def test_two_workers_tune(tmp_path):
  words = ['tune', '--dataset=drift', '--drift_size=small', '--config=tiny', '--backbone=lightgcn', '--base_epochs=1',
           '--epochs=1', '--config.blocks.num_incremental=2', '--trials=2', '--workdir=tuned']
  _end(_workers(words, tmp_path), tmp_path)
  found = json.loads((tmp_path / 'tuned' / 'tune.json').read_text())
  assert found['trials'] == 2 and found['test']['recall@20'] > 0
