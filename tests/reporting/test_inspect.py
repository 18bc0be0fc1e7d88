"""The reservoir of a user of a real run, against the log and the sampler's own definitions."""
import io
import json
import pathlib

import matplotlib.text
import numpy as np
import pytest

from graphsane_tf.data import prepare
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from graphsane_tf.reporting import inspect
from graphsane_tf.runs import incremental
from tests import logs

pytestmark = pytest.mark.usefixtures('short_exports')

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = DataSpec('drift', options={'size': 'small', 'seed': 3})


@pytest.fixture(scope='module', name='folder')
def _folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp('inspect') / 'run'
  config = logs.tiny_config(backbone='lightgcn', sampler='sane', clusters='categories', blocks__num_incremental=3,
                            train__batch_size=512)
  incremental.run(config, prepare.load(DATA), folder, data=DATA,
                  log=lambda line: None)
  return folder


@pytest.fixture(scope='module', name='opened')
def _opened(folder):
  return incremental.open_run(folder)


def _user(run, block):
  """A user with interactions in the block and the one before."""
  log, stream = run.interactions, run.stream
  both = np.intersect1d(log.user[stream.rows(block)], log.user[stream.rows(block - 1)])
  return both[both < stream.block(block - 1).num_users][0]


def test_quantities(opened):
  user = _user(opened, 2)
  log, stream = opened.interactions, opened.stream
  found = inspect.explain_user(opened, 2, log.user_ids[user])
  assert found['saved'] and found['block'] == 2
  number = len(found['categories'])
  for row, block in zip(found['history'], range(3)):
    rows = stream.rows(block)
    items = log.item[rows][log.user[rows] == user]
    np.testing.assert_array_equal(row, np.bincount(log.item_category[items], minlength=number))
  np.testing.assert_allclose(found['current'], found['history'][2])
  np.testing.assert_allclose(found['previous'], found['history'][1])
  share = [row / row.sum() for row in found['history'][1:]]
  np.testing.assert_allclose(found['shift'], share[1] - share[0], atol=1e-6)
  total = found['alpha'] + found['counts']
  np.testing.assert_allclose(found['theta'], total / total.sum(), rtol=1e-5)
  reservoir = found['reservoir']
  np.testing.assert_allclose(sum(reservoir['probability']), 1., rtol=1e-5)
  assert reservoir['rank'] == list(range(reservoir['rank'][0], reservoir['rank'][0] + len(reservoir['item'])))
  items = [int(np.flatnonzero(log.item_ids == item)[0]) for item in reservoir['item']]
  assert [log.category_names[log.item_category[k]] for k in items] == reservoir['category']
  taken = log.item[stream.rows(2)][log.user[stream.rows(2)] == user]
  assert not set(items) & set(taken.tolist())


def test_other_samplers_get_what_sane_would_build(folder, tmp_path):
  config = logs.tiny_config(backbone='lightgcn', sampler='uniform', blocks__num_incremental=3, train__batch_size=512,
                            base_from=str(folder))
  run = incremental.IncrementalRun(config, prepare.load(DATA), tmp_path / 'run',
                                   log=lambda line: None)
  run.run([0, 1])
  found = inspect.explain_user(run, 1, run.interactions.user_ids[_user(run, 1)])
  assert not found['saved'] and len(found['reservoir']['item']) == 10
  assert 'would build' in inspect.table(found)


def test_mistakes(opened):
  with pytest.raises(UserError, match='does not occur'):
    inspect.explain_user(opened, 2, 'nobody')
  with pytest.raises(UserError, match='no reservoir in block 0'):
    inspect.explain_user(opened, 0, opened.interactions.user_ids[0])


def test_many_categories_are_added_up(opened):
  found = inspect.explain_user(opened, None, opened.interactions.user_ids[_user(opened, 2)])
  many = dict(found, categories=[f'c{k}' for k in range(40)])
  rng = np.random.default_rng(0)
  for name in inspect.QUANTITIES:
    many[name] = rng.random(40)
  many['history'] = rng.integers(0, 5, (3, 40))
  many['reservoir'] = dict(found['reservoir'], category=['c1'] * len(found['reservoir']['item']))
  assert len(inspect.plot(many).axes) == 4


def test_a_picture_explains_itself(opened):
  found = inspect.explain_user(opened, None, opened.interactions.user_ids[_user(opened, 2)])
  log = opened.interactions
  place = {item: k for k, item in enumerate(log.item_ids)}
  for name, examples in zip(found['categories'], found['examples']):
    assert len(examples) <= 3 and all(log.category_names[log.item_category[place[item]]] == name for item in examples)
  assert any(found['examples'])
  # An id that looks like a formula, and a block in which the user has taken nothing.
  history = np.array(found['history'])
  history[0] = 0
  canvas = inspect.plot(dict(found, user='$\\frac{$', history=history))
  words = [text.get_text() for text in canvas.findobj(matplotlib.text.Text)]
  assert any('$\\frac{$' in word for word in words) and any('no rows' in word for word in words)
  assert any(found['examples'][0][0] in word for word in words if found['examples'][0])
  canvas.savefig(io.BytesIO(), format='png', dpi=20)
  colours = [[patch.get_facecolor()[:3] for patch in axis.patches] for axis in canvas.axes]
  assert set(colours[0]) == set(colours[1]) == set(colours[2]) == set(colours[3])


def test_command(forked, folder, opened, tmp_path):
  user = opened.interactions.user_ids[_user(opened, 2)]
  picture = tmp_path / 'user.png'
  command = [ROOT / 'experiments' / 'inspect_negatives.py', f'--run={folder}']
  done = forked.run(*command, f'--user={user}', f'--output={picture}', cwd=tmp_path)
  assert done.returncode == 0, done.stderr
  assert 'theta' in done.stdout and 'probability' in done.stdout
  assert picture.read_bytes()[:4] == b'\x89PNG'
  wrong = forked.run(*command, '--user=nobody', cwd=tmp_path)
  assert wrong.returncode == 2 and wrong.stderr.splitlines()[-1].startswith('error: --user=nobody')
  assert json.loads((folder / 'config.json').read_text())['data'] == {
      **DATA.to_json(), 'fingerprint': prepare.load(DATA).fingerprint}
