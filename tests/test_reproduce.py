"""The grid: each cell once, failures reported, interrupted and resumed; and the command itself."""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from graphsane_tf import cli
from graphsane_tf.errors import UserError
from graphsane_tf.reporting import tables
from graphsane_tf.runs import grid
from tests.reporting import fake_grid

ROOT = pathlib.Path(__file__).resolve().parents[1]
TINY = '--embedding_dim=8 --batch_size=512 --base_epochs=1 --epochs=1'
# A stand-in for run_incremental.py: notes its start, waits, writes the results of a finished cell.
FAKE = '''
import json, pathlib, sys, time
folder, seconds, code = pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
with open(folder.parents[2] / 'starts.txt', 'a') as stream:
  stream.write(folder.name + chr(10))
time.sleep(seconds)
if code:
  print('broken')
  sys.exit(code)
(folder / 'results.json').write_text(json.dumps({
    'config': {'blocks': {'num_incremental': 2}},
    'blocks': [{'train_seconds': 1.}] * (1 if folder.name == 'base' else 2)}))
'''


@pytest.fixture(name='fake')
def _fake(monkeypatch):
  """Makes cells run FAKE; a dict of cell names to (seconds, exit code) changes some of them."""
  behaviour = {}
  monkeypatch.setattr(grid.Cell, 'command', property(lambda cell: [
      sys.executable, '-c', FAKE, str(cell.folder),
      *map(str, behaviour.get(cell.name, (0., 0)))]))
  return behaviour


def _cells(workdir, seeds=1, extra=()):
  return grid.cells(tables.REGISTRY['main'].rows[:4], {'drift': ['--dataset=drift']}, seeds, workdir,
                    extra)


def _starts(workdir):
  return collections.Counter((workdir / 'starts.txt').read_text().split())


def test_each_cell_once_and_then_read(fake, tmp_path):
  del fake
  cells, lines = _cells(tmp_path), []
  assert grid.run(cells, log=lines.append) == {}
  assert _starts(tmp_path) == dict.fromkeys((cell.name for cell in cells), 1)
  assert lines[1].startswith('1/5  drift  seed 0  base') and 'left' in lines[1]
  assert grid.run(cells, log=lines.append) == {}
  assert lines[-1] == '5 of 5 cells are finished already.' and sum(_starts(tmp_path).values()) == 5


def test_a_failing_cell_does_not_stop_the_others(fake, tmp_path):
  fake['lsp'] = (0., 3)
  cells = _cells(tmp_path)
  failed = grid.run(cells, log=lambda line: None)
  assert {cell.name: why.split(';')[0] for cell, why in failed.items()} == {
      'lsp': 'it ended with code 3'}
  assert [cell.name for cell in cells if cell.results() is None] == ['lsp']
  assert 'broken' in (tmp_path / 'drift' / 'seed0' / 'lsp.log').read_text()
  fake.clear()
  assert grid.run(cells, jobs=2, log=lambda line: None) == {}
  assert _starts(tmp_path)['lsp'] == 2 and _starts(tmp_path)['fine_tune'] == 1


def test_a_failing_base_fails_only_its_own_cells(fake, tmp_path, monkeypatch):
  del fake
  command = grid.Cell.command
  monkeypatch.setattr(grid.Cell, 'command', property(
      lambda cell: command.fget(cell)[:-1] + ['1' if cell.name == 'base' and cell.seed else '0']))
  failed = grid.run(_cells(tmp_path, seeds=2), log=lambda line: None)
  assert len(failed) == 5 and {cell.seed for cell in failed} == {1}
  assert _starts(tmp_path)['fine_tune'] == 1
  assert any('its base block failed' in why for why in failed.values())


def test_two_grids_at_once_run_no_cell_twice(fake, tmp_path):
  fake.update(dict.fromkeys(('base', 'fine_tune', 'lsp'), (0.3, 0)))
  results = []
  threads = [threading.Thread(target=lambda: results.append(
      grid.run(_cells(tmp_path), log=lambda line: None))) for _ in range(2)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(60)
  assert results == [{}, {}] and set(_starts(tmp_path).values()) == {1}


def test_an_interrupt_ends_the_cells_and_the_grid_goes_on_later(fake, tmp_path):
  fake['lsp'] = (60., 0)
  starts = tmp_path / 'starts.txt'

  def interrupt():
    while not (starts.exists() and 'lsp' in starts.read_text()):
      time.sleep(.01)
    os.kill(os.getpid(), signal.SIGTERM)

  thread = threading.Thread(target=interrupt)
  thread.start()
  started = time.monotonic()
  with pytest.raises(KeyboardInterrupt):
    grid.run(_cells(tmp_path), log=lambda line: None)
  thread.join()
  assert time.monotonic() - started < 30
  fake.clear()
  assert grid.run(_cells(tmp_path), log=lambda line: None) == {}
  assert _starts(tmp_path) == {'base': 1, 'fine_tune': 1, 'lsp': 2, 'replay_uniform': 1,
                               'replay_inverse_degree': 1}


def test_other_flags_are_refused_but_another_data_folder_is_not(fake, tmp_path):
  del fake
  grid.run(_cells(tmp_path, extra=['--epochs=1', '--data_dir=a']), log=lambda line: None)
  assert all(c.results() for c in _cells(tmp_path, extra=['--epochs=1', '--data_dir=b']))
  with pytest.raises(UserError, match='other flags .--epochs=1 --epochs=2'):
    grid.run(_cells(tmp_path, extra=['--epochs=2']), log=lambda line: None)


def test_plugins_reach_every_process_and_are_no_choice(tmp_path):
  rows = tables.REGISTRY['main'].rows[:2]
  cells = grid.cells(rows, {'drift': ['--dataset=drift']}, 1, tmp_path, (), ['a.py', 'b.py'])
  assert len(cells) == 3
  for cell in cells:
    assert [word for word in cell.command if word.startswith('--plugin')] == ['--plugin=a.py', '--plugin=b.py']
    cell.save_note(1.)
  for cell in grid.cells(rows, {'drift': ['--dataset=drift']}, 1, tmp_path):
    assert cell.results() is None and not [word for word in cell.command if word.startswith('--plugin')]


def test_plan(fake, tmp_path):
  del fake
  cells = _cells(tmp_path, seeds=2)
  text = grid.plan(cells, 1)
  assert '(rough)' in text and '10 of 10 cells to do' in text and not any(tmp_path.iterdir())
  for cell in cells[:2]:
    grid.run([cell], log=lambda line: None)
    cell.save_note(400.)
  text = grid.plan(cells, 2)
  assert 'done   drift  seed 0  base' in text and 'lsp  about 7 min' in text
  assert '8 of 10 cells to do, about 27 min with --jobs=2 (from finished cells).' in text


@pytest.mark.parametrize('entry, words', [
    ('nowhere', 'no data set nowhere'), ('csv', 'no data set csv'), ('a=missing.csv', 'not exist'),
    ('a/b=x', 'a name has only'), ('..=x', 'a name has only')])
def test_data_sets_that_cannot_be_meant(entry, words):
  with pytest.raises(UserError, match=words):
    cli.datasets_flags([entry], {}, 'data', {'drift_size': 'small'})
  with pytest.raises(UserError, match='twice'):
    cli.datasets_flags(['drift', 'drift'], {}, 'data', {'drift_size': 'small'})


def _command(*arguments):
  return [sys.executable, str(ROOT / 'experiments' / 'reproduce.py'), *arguments]


@pytest.fixture(name='run')
def _run(forked):
  return lambda *arguments, cwd: forked.run(*_command(*arguments)[1:], cwd=cwd)


def test_dry_run_and_mistakes(run, tmp_path):
  (tmp_path / 'log.csv').write_text('user,item,timestamp\n')
  result = run('--what=all', '--datasets=drift,tafeng=log.csv', '--drift_size=small', '--seeds=2',
                '--dry_run', cwd=tmp_path)
  assert result.returncode == 0, result.stderr
  # Peers have no seeds.
  assert result.stdout.count('to do') == 2 * (40 + 34) + 1
  assert not (tmp_path / 'runs').exists()
  wrong = run('--what=magic', '--dry_run', cwd=tmp_path)
  assert wrong.returncode == 2 and wrong.stderr.startswith('error: --what=magic')


PLUGIN = '''
from graphsane_tf.reporting import tables

PLAIN = tables.Row('Uniform', {'kd': 'sgct'})

@tables.REGISTRY.register('mine')
class Mine(tables.Table):
  title = 'My sampler on SGCT'
  rows = (PLAIN, tables.Row('Mine', {'kd': 'sgct', 'sampler': 'dns'}, partner=PLAIN))
'''


def test_a_table_in_a_file_of_the_users_own(run, tmp_path):
  (tmp_path / 'mine.py').write_text(PLUGIN)
  shown = run('--what=mine', '--plugin=mine.py', '--dry_run', cwd=tmp_path)
  assert shown.returncode == 0, shown.stderr
  assert [line.split()[5] for line in shown.stdout.splitlines()[:-1]] == ['base', 'sgct', 'sgct-dns']
  listed = run('--what=', '--plugin=mine.py', '--dry_run', cwd=tmp_path)
  assert listed.returncode == 2 and 'movers, mine, all.' in listed.stderr
  # From runs on disk to files and report.
  plain, mine = grid.Row('', {'kd': 'sgct'}), grid.Row('', {'kd': 'sgct', 'sampler': 'dns'})
  data = ['--dataset=drift', '--data_dir=data', '--drift_size=small']
  for cell in grid.cells([plain, mine], {'drift': data}, 2, tmp_path / 'runs', (), ['mine.py']):
    fake_grid.write_cell(cell)
    cell.save_note(2.)
  made = run('--what=mine', '--plugin=mine.py', '--seeds=2', '--workdir=runs', '--drift_size=small',
             '--write=pages', cwd=tmp_path)
  assert made.returncode == 0, made.stderr
  assert '6 of 6 cells are finished already.' in made.stdout and '| Mine |' in made.stdout
  assert ('```bash\ngraphsane reproduce --what=mine --datasets=drift --seeds=2 --drift_size=small --plugin=mine.py\n```'
          in (tmp_path / 'pages' / 'mine-drift.md').read_text())
  report = (tmp_path / 'runs' / 'report.html').read_text()
  assert 'drift: Mine changes Uniform by +0.0 % in Recall@20' in report and 'Recall by block and method' in report


@pytest.mark.fault('broken plugin')
def test_a_plugin_that_fails(run, tmp_path):
  (tmp_path / 'broken.py').write_text('import nothing_of_this_name\n')
  for name, words in (('broken.py', 'error: broken.py, line 1: ModuleNotFoundError: '),
                      ('absent.py', 'error: --plugin=absent.py does not exist; ')):
    result = run(f'--plugin={name}', '--dry_run', cwd=tmp_path)
    assert result.returncode == 2 and result.stderr.startswith(words) and not (tmp_path / 'runs').exists()


def test_a_broken_log_is_reported_at_the_end(run, tmp_path):
  (tmp_path / 'log.csv').write_text('user,item,timestamp\na,b,noon\n')
  result = run('--what=ablation', '--datasets=mine=log.csv', '--workdir=grid', cwd=tmp_path)
  assert result.returncode == 1
  assert '8 failed:' in result.stderr and 'base.log' in result.stderr
  assert 'line 2' in (tmp_path / 'grid' / 'mine' / 'seed0' / 'base.log').read_text()
  assert (tmp_path / 'grid' / 'report.html').exists()


def _epochs(workdir):
  """How often each (cell, block, epoch) was trained, from the logs."""
  found = collections.Counter()
  for path in workdir.rglob('*.log'):
    for block, epoch in re.findall(r'^block (\d+)  epoch (\d+)/', path.read_text(), re.MULTILINE):
      found[f'{path.parent.name}/{path.stem}', block, epoch] += 1
  return found


@pytest.mark.slow
def test_everything_interrupted_and_resumed(run, tmp_path):
  arguments = ['--what=all', '--datasets=drift', '--drift_size=small', '--seeds=1',
               '--workdir=grid', f'--extra={TINY}']
  place = tmp_path / 'grid' / 'drift' / 'seed0'
  for sign, wanted in ((signal.SIGTERM, 'lsp'), (signal.SIGKILL, 'graphsail')):
    with subprocess.Popen(_command(*arguments), cwd=tmp_path, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL,
                          env={**os.environ, 'PYTHONPATH': str(ROOT)}) as process:
      deadline = time.monotonic() + 600
      while not (place / wanted / 'checkpoints' / 'block_1').exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(.05)
      process.send_signal(sign)
  before = {path: path.stat().st_mtime_ns for path in place.glob('*/results.json')}
  done = run(*arguments, cwd=tmp_path)
  assert done.returncode == 0, done.stdout + done.stderr
  assert not [path for path, stamp in before.items() if path.parent.name in ('base', 'fine_tune')
              and path.stat().st_mtime_ns != stamp]
  epochs = _epochs(tmp_path / 'grid')
  # An epoch in flight when its process dies is lost; none that was finished is trained again.
  assert set(epochs.values()) == {1}, [key for key, count in epochs.items() if count > 1]
  assert len({name for name, _, _ in epochs}) == 40
  for stem in ('main-drift', 'metrics-ranks-drift', 'metrics-wins-drift', 'samplers-drift', 'time-drift',
               'case_study-drift', 'ablation-drift', 'clustering-drift', 'clusters_k-drift',
               'reservoir_q-drift'):
    for ending in ('md', 'csv', 'json'):
      assert (tmp_path / 'grid' / f'{stem}.{ending}').exists(), stem
  study = json.loads((tmp_path / 'grid' / 'case_study-drift.json').read_text())['data']
  assert {row['label'] for row in study} == {row.label for row in tables.REGISTRY['case_study'].rows}
  assert 'SANE changed SGCT by' in (tmp_path / 'grid' / 'report.html').read_text()
  again = run(*arguments, cwd=tmp_path)
  assert '40 of 40 cells are finished already.' in again.stdout
  assert _epochs(tmp_path / 'grid') == epochs and ' of grid/' not in again.stdout
