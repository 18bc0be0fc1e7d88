"""Names of run folders, and what config.json keeps of a log."""
import pathlib

import pytest

from graphsane_tf.config import default_config
from graphsane_tf.runs import workdir


def test_flatten():
  assert workdir.flatten({'a': {'b': 1, 'c': {'d': (1, 2)}}, 'e': None}) == {
      'a.b': 1, 'a.c.d': [1, 2], 'e': None}


def _data(name, **options):
  return {'name': name, 'data_dir': 'd', 'overrides': {}, 'csv_options': {}, 'drift_options': {},
          **options}


@pytest.mark.parametrize('data,choices', [
    (_data('gowalla'), {'dataset': 'gowalla'}),
    (_data('gowalla', overrides={'min_rating': 4, 'duplicates': None}, csv_options={'user_column': 'u'},
           drift_options={'size': 'small'}), {'dataset': 'gowalla', 'min_rating': 4}),
    (_data('drift', drift_options={'size': 'default', 'seed': 0, 'hide_categories': False}),
     {'dataset': 'drift'}),
    (_data('drift', drift_options={'size': 'small', 'seed': 3, 'hide_categories': True}),
     {'dataset': 'drift', 'drift_size': 'small', 'drift_seed': 3, 'drift_hide_categories': True}),
    (_data('csv', csv_options={'interactions': '/x/../y.csv', 'user_column': 'u', 'item_column': None}),
     {'dataset': 'csv', 'interactions': '/y.csv', 'user_column': 'u'}),
    ({'name': 'drift', 'overrides': None, 'drift_options': None}, {'dataset': 'drift'}),
])
def test_choices_of_a_log(data, choices):
  assert workdir.data_choices(data) == choices


@pytest.mark.parametrize('data', [
    _data('gowalla', overrides={'min_rating': 4}),
    _data('drift', drift_options={'size': 'small', 'seed': 3}),
    _data('csv', overrides={'min_user_interactions': 2},
          csv_options={'interactions': '/y.csv', 'user_column': 'u', 'time_column': 't'})])
def test_the_way_back(data):
  choices = {**workdir.data_choices(data), 'fingerprint': 'abc'}
  assert workdir.data_arguments(choices, 'd') == data
  assert workdir.data_arguments(choices)['data_dir'] == 'data'


def _name(choices, **changes):
  config = default_config()
  config.update_from_flattened_dict({k.replace('__', '.'): v for k, v in changes.items()})
  return workdir.default_workdir(config, choices)


def test_default_folders():
  runs = pathlib.Path('runs')
  drift = {'dataset': 'drift'}
  assert _name(drift) == runs / 'drift-fine_tune-seed0'
  # The methods are spelled out, and six digits stand for everything else.
  assert _name(drift, kd='sgct', seed=7, sampler='sane') == runs / 'drift-sgct-sane-seed7'
  others = [_name({**drift, 'drift_size': 'small'}), _name(drift, train__learning_rate=.5),
            _name(drift, train__learning_rate=.25), _name(drift, model__fanout=(4, 2)),
            _name({'dataset': 'csv', 'interactions': '/a/drift.csv'}),
            _name({'dataset': 'csv', 'interactions': '/b/drift.csv'})]
  assert len(set(others)) == 6
  for path in others:
    assert path.parent == runs and len(path.name.removeprefix('drift-fine_tune-seed0-')) == 6
  named = _name({'dataset': 'csv', 'interactions': '/a/my log/v2.x.csv'}).name
  assert named.startswith('v2-fine_tune-seed0-')


def test_names_have_no_odd_characters_and_are_not_endless():
  assert _name({'dataset': 'csv', 'interactions': '/a b$/c d:e.csv'}).name.startswith('c_d_e-')
  assert len(_name({'dataset': 'csv', 'interactions': '/' + 'x' * 150}).name) == 120
