"""Finished runs against each other."""
import json

import numpy as np
import pytest
from scipy import stats

from graphsane_tf import config as config_lib
from graphsane_tf.errors import UserError
from graphsane_tf.reporting import pairs


def _write(folder, values, fingerprint='f'):
  """A finished run whose users have {block: {user: recall}}."""
  (folder / 'per_user').mkdir(parents=True)
  config = json.loads(json.dumps(config_lib.resolved(config_lib.default_config()).to_dict()))
  data = {'dataset': 'drift', 'fingerprint': fingerprint}
  (folder / 'config.json').write_text(json.dumps({'config': config, 'data': data}))
  blocks = [{'block': block} for block in (0, *values)]
  (folder / 'results.json').write_text(json.dumps({'blocks': blocks, 'config': config, 'data': data}))
  for block, users in values.items():
    np.savez(folder / 'per_user' / f'block_{block}.npz', user=np.array(list(users)),
             **{'recall@20': np.array(list(users.values()))})
  return folder


@pytest.fixture(name='folders')
def _folders(tmp_path):
  rng = np.random.default_rng(0)
  users = {1: range(40), 2: range(20, 60)}
  names = {'a': 0., 'b': .1, 'c': 0.}
  runs = {name: {block: {user: float(rng.random() + shift) for user in users[block]} for block in users}
          for name, shift in names.items()}
  return runs, [_write(tmp_path / name, values) for name, values in runs.items()]


def test_pairs_against_a_loop(folders):
  runs, paths = folders
  outcome = pairs.compare(paths)
  p_values = []
  for pair, (one, other) in zip(outcome['pairs'], (('a', 'b'), ('a', 'c'), ('b', 'c'))):
    assert (pair['first'], pair['second'], pair['users']) == (one, other, 60)
    means = [[np.mean([runs[name][block][user] for block in (1, 2) if user in runs[name][block]])
              for user in range(60)] for name in (one, other)]
    difference = np.subtract(*means)
    assert pair['gain'] == pytest.approx(100 * difference.mean() / np.mean(means[1]))
    assert pair['p_value'] == pytest.approx(stats.wilcoxon(difference).pvalue)
    half = stats.t.ppf(.975, 59) * difference.std(ddof=1) / np.sqrt(60)
    assert pair['high'] - pair['gain'] == pytest.approx(100 * half / np.mean(means[1]))
    p_values.append(pair['p_value'])
  smallest = int(np.argmin(p_values))
  assert outcome['pairs'][smallest]['p_holm'] == pytest.approx(min(1., 3 * p_values[smallest]))
  average = np.mean([np.mean(list(users.values())) for users in runs['a'].values()])
  assert outcome['runs'][0]['average'] == pytest.approx(average)


def test_tables_and_picture(folders, tmp_path):
  outcome = pairs.compare(folders[1])
  assert [row[0] for row in pairs.run_table(outcome)['cells']] == ['a', 'b', 'c']
  assert len(pairs.pair_table(outcome)['cells']) == 3
  assert pairs.plot(outcome, tmp_path / 'out' / 'p.png').read_bytes().startswith(b'\x89PNG')


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path):
  values = {1: {0: .5, 1: .25}}
  paths = [_write(tmp_path / name / 'run', values) for name in ('x', 'y')]
  outcome = pairs.compare(paths)
  assert [run['label'] for run in outcome['runs']] == ['x/run', 'y/run']
  assert outcome['pairs'][0]['p_value'] == 1. and outcome['pairs'][0]['gain'] == 0.


@pytest.mark.fault('runs that cannot be compared')
def test_what_cannot_be_compared_is_one_sentence(tmp_path):
  values = {1: {0: .5, 1: .25}}
  one, two = _write(tmp_path / 'one', values), _write(tmp_path / 'two', values, fingerprint='g')
  with pytest.raises(UserError, match='another log'):
    pairs.compare([one, two])
  with pytest.raises(UserError, match='named twice'):
    pairs.compare([one, one])
  with pytest.raises(UserError, match='choose from recall@20'):
    pairs.compare([one, two], 'recall@7')
  (one / 'per_user' / 'block_1.npz').unlink()
  with pytest.raises(UserError, match='makes it anew'):
    pairs.compare([one, two])
