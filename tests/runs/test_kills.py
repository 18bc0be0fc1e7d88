"""A process killed in any phase: the same call again ends with the same files."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests import run_files

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Imports TensorFlow once; each child gets as far as its phase, where it kills itself, and the next one
# goes on. A phase is the k-th time that a file of that name is about to be put in its place, or that a
# checkpoint or export has been written but does not count yet.
CHILDREN = """
import json, os, signal, sys
import graphsane_tf
import numpy as np
import tensorflow as tf
from graphsane_tf import files
from graphsane_tf.training import block, store
from graphsane_tf.runs import incremental
from tests import logs

# Folders, and the phases in which their processes end.
jobs = json.loads(sys.argv[1])


def moving_log():
  # Half of the users change from one half of the catalogue to the other after the base block.
  rng = np.random.default_rng(0)
  own = [[rng.permutation(60) + 60 * side for side in (0, 1)] for _ in range(24)]
  rows = [(user, own[user][(user + (user < 12 and time >= 18)) % 2][time])
          for time in range(30) for user in range(24)]
  users, items = zip(*rows)
  return logs.interactions_of(users, items, np.arange(120) // 60)


def run(folder, phase):
  log = moving_log()
  config = logs.tiny_config(
      backbone='lightgcn', sampler='sane', sane_variant='adaptive', clusters='categories',
      blocks__num_incremental=2, train__patience=1, train__min_epochs=1, sane__refresh_epochs=1)

  def reached(name):
    if phase and phase[0] == name:
      phase[1] -= 1
      if not phase[1]:
        os.kill(os.getpid(), signal.SIGKILL)

  def before(function, name):
    def patched(*arguments, **options):
      reached(name(*arguments))
      return function(*arguments, **options)
    return patched

  def after(function, name):
    def patched(*arguments, **options):
      result = function(*arguments, **options)
      reached(name(*arguments))
      return result
    return patched

  files.os.replace = before(os.replace, lambda source, target: os.path.basename(target))
  store.BlockStore.save = after(
      store.BlockStore.save, lambda self, checkpoint, name: f'{self.folder.name}/{name}')
  tf.saved_model.save = after(tf.saved_model.save, lambda *arguments: 'exported')

  # The first epoch is the best one on every machine, and the sampler goes on for one more.
  train = block.BlockTrainer.train
  def train_best_first(self, validate, on_epoch):
    def falling(*arguments):
      epoch = (self._store.load() or {'epoch': 0})['epoch']
      return {**validate(*arguments), 'recall@20': .5 - .1 * epoch}
    return train(self, falling, on_epoch)
  block.BlockTrainer.train = train_best_first
  incremental.run(config, log, folder, log=lambda line: None)


for folder, phases in jobs.items():
  for phase in [*phases, None]:
    child = os.fork()
    if not child:
      code = 1
      try:
        run(folder, phase)
        code = 0
      finally:
        sys.stdout.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.wait()[1])
    assert code == (-signal.SIGKILL if phase else 0), (phase, code)
"""
# In the order in which a run comes to them.
PHASES = [
    ('config.json', 1),
    ('exported', 1),
    ('block_1/epoch-1', 1),
    ('state.json', 1),
    ('metrics.jsonl', 2),
    ('exported', 1),
    ('1', 1),
    ('block_1.npz', 1),
    ('state.json', 1),
    ('results.json', 1),
]


@pytest.mark.fault('killed process')
def test_a_kill_in_every_phase_changes_no_file(tmp_path):
  whole, cut = tmp_path / 'whole', tmp_path / 'cut'
  result = subprocess.run(
      [sys.executable, '-c', CHILDREN, json.dumps({str(whole): [], str(cut): PHASES})],
      env={**os.environ, 'PYTHONPATH': str(ROOT)}, cwd=ROOT, capture_output=True, text=True, check=False)
  assert result.returncode == 0, result.stderr[-3000:]
  # The run must have something to lose: a sampler that has moved on since the best epoch.
  state = json.loads((whole / 'checkpoints' / 'block_1' / 'state.json').read_text())
  assert state['best_epoch'] < state['epoch'] and state['result']['sampler']['concentration'] > 0
  with np.load(whole / 'per_user' / 'block_1.npz') as arrays:
    assert 0 < arrays['shifted'].mean() < 1
  run_files.assert_same(cut, whole)
