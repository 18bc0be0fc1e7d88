"""Real processes that are stopped, killed or started twice."""
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
STOPPED = 'stopped; the same command goes on from the last finished epoch.'
PATIENCE = 240.  # Seconds until a process that should have done something is given up.


def run(code, cwd):
  """Exit code, output and errors of a fresh process."""
  # The tests may run as a background job, whose processes ignore interrupts.
  done = subprocess.run([sys.executable, '-c', code], cwd=cwd, env={**os.environ, 'PYTHONPATH': str(ROOT)},
                        capture_output=True, text=True, check=False, timeout=PATIENCE,
                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
  return done.returncode, done.stdout, done.stderr


def hidden(folder):
  return [path for path in pathlib.Path(folder).rglob('*') if path.name.startswith('.')]


@pytest.mark.fault('two processes')
def test_the_second_command_is_refused_and_signals_end_the_first(forked, tmp_path):
  command = [ROOT / 'experiments' / 'run_incremental.py', '--drift_size=small', '--embedding_dim=8',
             '--batch_size=512', '--backbone=lightgcn', '--base_epochs=1000000', '--workdir=run',
             '--config.train.patience=1000000']
  state = tmp_path / 'run' / 'checkpoints' / 'block_0' / 'state.json'
  epoch = lambda: json.loads(state.read_text())['epoch'] if state.exists() else 0

  first = forked.start(*command, cwd=tmp_path)
  first.until(lambda: epoch() >= 1)
  code, _, errors = forked.run(*command, cwd=tmp_path).finish()
  assert code == 2
  assert errors.strip() == (f'error: run is in use by process {first.pid}: wait for its end, or choose '
                            'another --workdir.')
  first.send_signal(signal.SIGTERM)
  code, _, errors = first.finish()
  assert (code, errors.strip()) == (143, STOPPED)
  assert not hidden(tmp_path)

  reached = epoch()
  again = forked.start(*command, cwd=tmp_path)
  # An epoch's line comes after its state.
  again.until(lambda: epoch() >= reached + 2)
  again.send_signal(signal.SIGINT)
  code, out, errors = again.finish()
  assert (code, errors.strip()) == (130, STOPPED)
  assert re.findall(r'block 0 epoch +(\d+)/', out)[0] == str(reached + 1)


@pytest.mark.fault('interrupt')
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_tensorflow_is_imported_is_one_sentence(tmp_path, number):
  (tmp_path / 'tensorflow').mkdir()
  # Such an import may turn an interrupt into an error of its own.
  (tmp_path / 'tensorflow' / '__init__.py').write_text(
      f'import os, time\ntry:\n  os.kill(os.getpid(), {int(number)})\n  time.sleep(60)\n'
      'except BaseException:\n  raise ImportError("half of a module")')
  code = 'import sys\nfrom graphsane_tf import cli\nsys.path.insert(0, "")\ncli.load_tensorflow()'
  code, _, errors = run(code, tmp_path)
  assert (code, errors.strip()) == (128 + number, 'stopped before anything was written.')


@pytest.mark.fault('interrupt')
def test_an_interrupt_before_that_is_one_sentence(tmp_path):
  code, _, errors = run('from graphsane_tf import cli\nraise KeyboardInterrupt', tmp_path)
  assert (code, errors.strip()) == (130, 'stopped before anything was written.')


@pytest.mark.fault('too large for memory')
@pytest.mark.parametrize('error,words', [
    ('MemoryError()', 'not enough memory or disk space'),
    ('OSError(28, "No space left on device", "x/y")', 'x/y: No space left on device.'),
    ('OSError(5, "Input/output error")', 'reading or writing: Input/output error.')])
def test_errors_of_the_machine_are_one_sentence(tmp_path, error, words):
  code = f'from graphsane_tf import cli\ndef main():\n  raise {error}\ncli.run(main)'
  code, _, errors = run(code, tmp_path)
  assert code == 2 and len(errors.strip().splitlines()) == 1 and f'error: {words}' in errors


# --- Preparing a log ---

PREPARE = """
import os, resource, runpy, signal, sys
import pyarrow.parquet as pq
from graphsane_tf import files
script, phase, number, largest = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if largest:
  resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))

def reached(name):
  if name == phase:
    os.kill(os.getpid(), number)

write, replace = pq.write_table, os.replace
def write_table(table, path, *arguments):
  write(table, path, *arguments)
  reached(os.path.basename(path))
pq.write_table = write_table
def os_replace(source, target):
  reached('before ' + os.path.basename(target)[:8])
  replace(source, target)
  reached('after ' + os.path.basename(target)[:8])
files.os.replace = os_replace
sys.argv = [script, '--dataset=csv', '--interactions=log.csv']
runpy.run_path(script, run_name='__main__')
"""


@pytest.fixture(name='prepare')
def prepare_fixture(forked, tmp_path):
  """Prepares the log of a folder; a signal comes in a phase, and files may have a largest size."""
  program = tmp_path / 'prepare.py'
  program.write_text(PREPARE)
  def prepare(folder, phase='', number=0, largest=0):
    script = ROOT / 'experiments' / 'prepare_data.py'
    return forked.run(program, script, phase, int(number), largest, cwd=folder).finish()
  return prepare


def write_log(folder):
  folder.mkdir()
  (folder / 'log.csv').write_text('user,item,timestamp\n' + ''.join(
      f'u{k % 11},i{k % 13},{1_500_000_000 + k}\n' for k in range(143)))
  return folder


def prepared(folder):
  """The contents of what is prepared, without the manifest, which has the log's time."""
  return {path.name: path.read_bytes() for path in (folder / 'data' / 'csv').glob('*/*.parquet')}


@pytest.mark.fault('killed process')
def test_kills_and_signals_while_a_log_is_prepared(prepare, tmp_path):
  whole = write_log(tmp_path / 'whole')
  assert prepare(whole)[0] == 0
  cut = write_log(tmp_path / 'cut')
  for phase in ('users.parquet', 'before prepared'):
    assert prepare(cut, phase, signal.SIGKILL)[0] == -signal.SIGKILL
    assert len(hidden(cut / 'data')) >= 1
  for phase, number in itertools.product(('interactions.parquet', 'before prepared'),
                                         (signal.SIGINT, signal.SIGTERM)):
    code, _, errors = prepare(cut, phase, number)
    assert (code, errors.strip()) == (128 + number, STOPPED)
    # What the kills have left is gone, too.
    assert not hidden(cut / 'data') and not prepared(cut)
  assert prepare(cut)[0] == 0
  # A new preparation takes the place of an old one; a kill between the two loses neither log nor folder.
  (cut / 'log.csv').write_text((whole / 'log.csv').read_text() + '\n')
  for phase in ('before old', 'after old', 'after prepared'):
    assert prepare(cut, phase, signal.SIGKILL)[0] == -signal.SIGKILL
    assert prepare(cut)[0] == 0
    (cut / 'log.csv').write_text((cut / 'log.csv').read_text() + '\n')
  assert prepare(cut)[0] == 0
  assert prepared(cut) == prepared(whole) and prepared(cut)
  assert not hidden(cut / 'data')


@pytest.mark.fault('full disk')
def test_a_full_disk_while_a_log_is_prepared(prepare, tmp_path):
  folder = write_log(tmp_path / 'full')
  code, _, errors = prepare(folder, largest=1000)
  assert code == 2 and len(errors.strip().splitlines()) == 1, errors
  assert re.match(r'error: cannot write data/csv/prepared-\w+: .*; when that is mended', errors), errors
  assert not hidden(folder) and not prepared(folder)
  assert prepare(folder)[0] == 0
