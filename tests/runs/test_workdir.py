"""Names of run folders."""
import pathlib

from graphsane_tf.config import default_config
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.runs import workdir


def test_flatten():
  assert workdir.flatten({'a': {'b': 1, 'c': {'d': (1, 2)}}, 'e': None}) == {
      'a.b': 1, 'a.c.d': [1, 2], 'e': None}


def _csv(path):
  return DataSpec('csv', options={'interactions': path})


def _name(data, **changes):
  config = default_config()
  config.update_from_flattened_dict({k.replace('__', '.'): v for k, v in changes.items()})
  return workdir.default_workdir(config, data)


def test_default_folders():
  runs = pathlib.Path('runs')
  drift = DataSpec('drift')
  assert _name(drift) == runs / 'drift-fine_tune-seed0'
  # The methods are spelled out, and six digits stand for everything else.
  assert _name(drift, kd='sgct', seed=7, sampler='sane') == runs / 'drift-sgct-sane-seed7'
  others = [_name(DataSpec('drift', options={'size': 'small'})), _name(drift, train__learning_rate=.5),
            _name(drift, train__learning_rate=.25), _name(drift, model__fanout=(4, 2)),
            _name(_csv('/a/drift.csv')),
            _name(_csv('/b/drift.csv'))]
  assert len(set(others)) == 6
  assert _name(DataSpec('drift', {'min_rating': None}, {'size': 'default', 'seed': 0})) == _name(drift)
  for path in others:
    assert path.parent == runs and len(path.name.removeprefix('drift-fine_tune-seed0-')) == 6
  named = _name(_csv('/a/my log/v2.x.csv')).name
  assert named.startswith('v2-fine_tune-seed0-')


def test_a_peer_has_its_own_name():
  drift = DataSpec('drift')
  assert _name(drift, peer='ease').name == 'drift-ease-seed0'
  # What has no effect is in the hash, as config.json has it.
  assert _name(drift, peer='ease', sampler='sane').name.startswith('drift-ease-seed0-')


def test_names_have_no_odd_characters_and_are_not_endless():
  assert _name(_csv('/a b$/c d:e.csv')).name.startswith('c_d_e-')
  long = [_name(_csv('/' + 'x' * 150 + letter)).name for letter in 'ab']
  assert all(len(name) < 100 and 'seed0' in name for name in long) and long[0] != long[1]
