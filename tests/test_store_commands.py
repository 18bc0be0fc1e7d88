"""The commands of a store as real processes: exit codes, kills, and two of them at once."""
import json
import pathlib
import random
import shutil
import signal
import time

import numpy as np
import pytest

from graphsane_tf.errors import UserError
from graphsane_tf.recommender import Recommender
from graphsane_tf.runs import store as stores
from graphsane_tf.runs import updating
from tests import store_files

pytestmark = pytest.mark.usefixtures('short_exports')

QUIET = lambda line: None


@pytest.fixture(name='start')
def start_fixture(forked):
  return lambda *words, cwd: forked.start('graphsane_tf', *words, cwd=cwd)


@pytest.fixture(name='run')
def run_fixture(forked):
  """Runs a command to its end; its output, and errors."""
  def run(*words, cwd, code=0):
    found, out, errors = forked.run('graphsane_tf', *words, cwd=cwd).finish()
    assert found == code, (out, errors)
    if code:
      assert len(errors.strip().splitlines()) <= 1, errors
    return out + errors
  return run


@pytest.fixture(scope='module')
def home(tmp_path_factory):
  """A folder with the files of the days and a store made of the first one."""
  folder = tmp_path_factory.mktemp('home')
  days = store_files.write_days(folder)
  updating.create(folder / 'shop', days['history'], store_files.config(), say=QUIET)
  return folder


def served(path):
  """Version and the answer of what a reader sees."""
  shop = Recommender.open(path)
  return shop.version, shop.recommend('u00001', 5)


@pytest.mark.fault('kill -9')
def test_a_killed_update_leaves_the_old_version_and_the_same_command_finishes_it(start, run, home, tmp_path):
  shutil.copytree(home / 'shop', tmp_path / 'shop')
  before = served(tmp_path / 'shop')
  command = ['update', '--store=shop', f'--interactions={home / "popular.csv"}']
  process = start(*command, cwd=tmp_path)
  process.until(lambda: '\nblock 1 epoch  1' in process.stdout)
  with pytest.raises(UserError, match=f'in use by process {process.pid}'):
    updating.prune(stores.Store(tmp_path / 'shop'), 1)
  process.send_signal(signal.SIGKILL)
  assert process.wait() == -signal.SIGKILL and served(tmp_path / 'shop') == before
  out = run(*command, cwd=tmp_path, code=3)
  assert 'version 2 is not published and version 1 stays' in out and 'block 1 epoch  1' not in out
  assert served(tmp_path / 'shop') == before and not (tmp_path / 'shop' / 'work').exists()


@pytest.mark.slow
def test_every_command(run, home, tmp_path):
  data = f'--interactions={home / "history.csv"}'
  out = run('init', '--store=shop', data, *store_files.FLAGS, cwd=tmp_path)
  assert 'version 1 is published' in out
  assert 'there already, at version 1' in run('init', '--store=shop', data, *store_files.FLAGS, cwd=tmp_path)
  assert 'other flags' in run('init', '--store=shop', data, *store_files.FLAGS, '--seed=1', cwd=tmp_path, code=2)
  monday = f'--interactions={home / "monday.csv"}'
  assert 'version 2 is published' in run('update', '--store=shop', monday, '--margin=.9', cwd=tmp_path)
  assert 'no new rows (7,200 used already)' in run('update', '--store=shop', f'--interactions={home / "whole.csv"}',
                                                   cwd=tmp_path)
  found = json.loads(run('status', '--store=shop', '--json', cwd=tmp_path))
  assert found['current'] == 2 and found['waiting'] == 0
  assert 'version 2 of recommender is served' in run('status', '--store=shop', cwd=tmp_path)
  lines = run('recommend', '--store=shop', '--user=u00001', '--k=3', cwd=tmp_path).splitlines()
  assert [line.split('\t')[0] for line in lines] == [item for item, _ in served(tmp_path / 'shop')[1][:3]]
  assert 'unknown to version 2' in run('recommend', '--store=shop', '--user=me', cwd=tmp_path)
  assert len(run('recommend', '--store=shop', '--similar_to=i00001', '--k=4', cwd=tmp_path).splitlines()) == 4
  assert 'version 3 is published; it is version 1 again' in run('rollback', '--store=shop', '--to=1', cwd=tmp_path)
  assert 'no version 9' in run('rollback', '--store=shop', '--to=9', cwd=tmp_path, code=2)
  assert not (tmp_path / 'shop' / 'work').exists()
  run('export', '--store=shop', '--output=vectors.npz', cwd=tmp_path)
  with np.load(tmp_path / 'vectors.npz') as saved:
    assert saved['user_vector'].shape[0] == len(saved['user_id'])
  (tmp_path / 'leavers.txt').write_text('u00001\n')
  assert '1 users and 0 items forgotten' in run('update', '--store=shop', '--forget_users=leavers.txt', cwd=tmp_path)
  assert '0 versions deleted' in run('prune', '--store=shop', '--keep=1', cwd=tmp_path)
  assert 'add --interactions' in run('update', '--store=shop', cwd=tmp_path, code=2).lower()
  assert 'holds no store' in run('status', '--store=nowhere', cwd=tmp_path, code=2)


@pytest.mark.slow
@pytest.mark.fault('kill -9')
def test_twenty_kills_at_random_moments(start, run, home, tmp_path):
  """A reader always gets one whole version, and the end is the same as without kills."""
  shutil.copytree(home / 'shop', tmp_path / 'shop')
  shutil.copytree(home / 'shop', tmp_path / 'straight')
  command = ['update', f'--interactions={home / "monday.csv"}', '--margin=.9']
  num_lines = len(run(*command, '--store=straight', cwd=tmp_path).splitlines())
  before, after = served(tmp_path / 'shop'), served(tmp_path / 'straight')
  assert (before[0], after[0]) == (1, 2)
  rng, kills, published = random.Random(0), 0, 0
  while kills < 20:
    process = start(*command, '--store=shop', cwd=tmp_path)
    # So many lines, and a moment: that is somewhere in the work however slow the machine is.
    lines = rng.randrange(num_lines)
    while process.stdout.count('\n') < lines and process.poll() is None:
      time.sleep(.005)
    time.sleep(rng.choice([0., .02, .1, .5]) * rng.random())
    if process.poll() is None:
      process.send_signal(signal.SIGKILL)
    process.wait()
    kills += process.returncode == -signal.SIGKILL
    assert process.returncode in (0, -signal.SIGKILL)
    now = served(tmp_path / 'shop')
    assert now in (before, after)
    if now == after:
      # The next one starts from the beginning.
      published += 1
      shutil.rmtree(tmp_path / 'shop')
      shutil.copytree(home / 'shop', tmp_path / 'shop')
  run(*command, '--store=shop', cwd=tmp_path)
  assert served(tmp_path / 'shop') == after
  one, other = (store_files.weights(stores.Store(tmp_path / name), 2) for name in ('shop', 'straight'))
  assert all(np.array_equal(one[name], other[name]) for name in one)
  assert not (tmp_path / 'shop' / 'work').exists()
  assert not list(pathlib.Path(tmp_path / 'shop').rglob('.*'))
  print(f'{kills} kills; {published} times the update was published before the end')
