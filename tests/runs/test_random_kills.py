"""Processes killed from outside at random moments: the same command again ends with the same files."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests import run_files

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ['--drift_size=small', '--embedding_dim=8', '--batch_size=512', '--base_epochs=2', '--epochs=3',
         '--config.blocks.num_incremental=2']
CONFIGURATIONS = {
    'sgct-adaptive': ['--kd=sgct', '--sane', '--sane_variant=adaptive'],
    'lwckd-replay': ['--kd=lwckd', '--sane', '--replay=uniform', '--clusters=kmeans'],
    'pinsage-nscaching': ['--backbone=pinsage', '--kd=graphsail', '--sampler=nscaching'],
    'lightgcn-pinsage': ['--backbone=lightgcn', '--kd=lsp', '--sampler=pinsage'],
}
KILLS = 8  # In each configuration.

# Imports TensorFlow once; each command is a child of its own, which says when it enters and leaves a
# phase. A kill is aimed at a moment: a phase, how often the process has entered it, and how far into it,
# by the time that it took in the run that nobody disturbed. Three arguments: the seed, how many kills,
# and the command's.
COMMANDS = """
import collections, json, os, random, signal, sys, time
import graphsane_tf
import tensorflow
from graphsane_tf import files
from graphsane_tf.commands import main
from graphsane_tf.runs import folder, incremental
from graphsane_tf.serving import export
from graphsane_tf.training import block, store

seed, num_kills, arguments = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
PHASES = ['start', 'training', 'saving', 'testing', 'export', 'per user', 'results']


def watched(owner, name, phase, pipe):
  function = getattr(owner, name)
  def patched(*values, **options):
    inside = phase(*values) if callable(phase) else phase
    os.write(pipe, f'+{inside}\\n'.encode() if inside else b'')
    result = function(*values, **options)
    os.write(pipe, f'-{inside}\\n'.encode() if inside else b'')
    return result
  setattr(owner, name, patched)


def command(workdir, pipe):
  os.write(pipe, b'+start\\n')
  watched(block.BlockTrainer, '_steps', 'training', pipe)
  watched(store.BlockStore, 'save', 'saving', pipe)
  watched(incremental.IncrementalRun, 'evaluate', 'testing', pipe)
  watched(export, 'export_block', 'export', pipe)
  watched(files, 'write_bytes', lambda path, _: 'per user' if 'per_user' in str(path) else '', pipe)
  watched(folder.RunFolder, 'update', lambda _, name, *rest: 'results' if name == 'results.json' else '', pipe)
  with open('output.txt', 'a') as output:
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
  sys.argv = ['run_incremental.py', *arguments, f'--workdir={workdir}']
  main.start('run')


def run(workdir, aim=None, durations=None):
  # Returns how it ended (its exit code), the phases that it entered with their seconds, and where it was.
  reader, writer = os.pipe()
  child = os.fork()
  if not child:
    code = 1
    try:
      os.close(reader)
      command(workdir, writer)
      code = 0
    except SystemExit as end:
      code = end.code or 0
    finally:
      sys.stdout.flush()
      os._exit(code)
  os.close(writer)
  entered, inside = [], []
  with os.fdopen(reader) as lines:
    for line in lines:
      name, now = line[1:-1], time.monotonic()
      if line[0] == '+':
        # The start ends where anything else begins.
        if inside == ['start']:
          entered[0][1] = now - entered[0][1]
          inside.pop()
        entered.append([name, now])
        inside.append(name)
        if aim and (name, sum(each[0] == name for each in entered)) == aim[:2]:
          time.sleep(aim[2] * durations[aim[:2]])
          os.kill(child, signal.SIGKILL)
          aim = None
      elif name in inside:
        last = max(k for k, each in enumerate(entered) if each[0] == name)
        entered[last][1] = now - entered[last][1]
        inside.remove(name)
  code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
  return code, entered, inside[-1:]


code, entered, _ = run('whole')
assert code == 0, open('output.txt').read()
counts, durations = collections.Counter(), {}
for phase, seconds in entered:
  counts[phase] += 1
  durations[phase, counts[phase]] = seconds
rng = random.Random(seed)
phases = PHASES + rng.choices(PHASES, k=num_kills - len(PHASES))
rng.shuffle(phases)
kills, folders = [], ['cut0']
for phase in phases:
  aim = (phase, rng.randint(1, counts[phase]), rng.random())
  for _ in range(6):
    code, _, inside = run(folders[-1], aim, durations)
    if code == -signal.SIGKILL:
      kills.append({'aim': aim, 'inside': inside})
      break
    # What it aims at was over before: in a new folder it comes again. The run's last moments may be shorter.
    assert code == 0, (code, aim, open('output.txt').read()[-3000:])
    folders.append(f'cut{len(folders)}')
    aim = (*aim[:2], aim[2] / 2)
code, _, _ = run(folders[-1])
assert code == 0, open('output.txt').read()[-3000:]
print(json.dumps({'kills': kills, 'folders': folders, 'phases': PHASES}))
"""


def test_there_are_thirty():
  assert KILLS * len(CONFIGURATIONS) >= 30


@pytest.mark.slow
@pytest.mark.fault('killed process')
@pytest.mark.parametrize('name', CONFIGURATIONS)
def test_random_kills_change_no_file(name, tmp_path):
  result = subprocess.run(
      [sys.executable, '-c', COMMANDS, name, str(KILLS), json.dumps([*SMALL, *CONFIGURATIONS[name]])],
      env={**os.environ, 'PYTHONPATH': str(ROOT)}, cwd=tmp_path, capture_output=True, text=True, check=False)
  assert result.returncode == 0, result.stderr[-3000:]
  told = json.loads(result.stdout.splitlines()[-1])
  for kill in told['kills']:
    phase, occurrence, fraction = kill['aim']
    print(f'{name}: killed {fraction:.2f} of the way through {phase} {occurrence}, in {kill["inside"]}')
  assert len(told['kills']) == KILLS
  assert {kill['aim'][0] for kill in told['kills']} == set(told['phases'])
  for folder in told['folders']:
    run_files.assert_same(tmp_path / folder, tmp_path / 'whole')
  print(f'{name}: {len(told["folders"])} folders as the undisturbed one')
