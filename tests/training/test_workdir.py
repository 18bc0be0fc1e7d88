"""Names of run folders, what config.json keeps of a log, and what two runs differ in."""
import pathlib

import pytest

from graphsane_tf.config import default_config
from graphsane_tf.errors import UserError
from graphsane_tf.training import workdir


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
  assert _name(drift) == runs / 'drift-none-seed0'
  assert _name({**drift, 'drift_size': 'small'}, kd='sgct', seed=7) == (
      runs / 'drift-sgct-seed7-drift_size=small')
  assert _name(drift, sampler='sane', model__fanout=(4, 2), train__learning_rate=.5) == (
      runs / 'drift-none-seed0-fanout=4,2-sampler=sane-learning_rate=0.5')
  named = _name({'dataset': 'csv', 'interactions': '/a/my log.v2.csv', 'user_column': 'u/v'}).name
  assert named.startswith('csv-my_log-') and named.endswith('-none-seed0-user_column=u_v')
  assert len(named.split('-')[2]) == 6
  assert named != _name({'dataset': 'csv', 'interactions': '/b/my log.v2.csv',
                         'user_column': 'u/v'}).name


def test_long_names_are_cut_and_stay_different():
  # 'drift-none-seed0-base_from=' has 27 characters.
  drift = {'dataset': 'drift'}
  assert _name(drift, base_from='x' * 133).name == 'drift-none-seed0-base_from=' + 'x' * 133
  long, other = (_name(drift, base_from='x' * 133 + end).name for end in 'yz')
  assert len(long) == len(other) == 159 and long[:151] == other[:151] and long != other


def _identity(**changes):
  config = default_config()
  config.update_from_flattened_dict({k.replace('__', '.'): v for k, v in changes.items()})
  return {'data': {'dataset': 'drift', 'fingerprint': 'f'}, 'config': config.to_dict()}


def test_what_differs_is_named():
  difference = workdir._difference  # pylint: disable=protected-access
  same = {'a': {'b': 1, 'c': (1, 2)}}
  assert difference(same, {'a': {'b': 1, 'c': [1, 2]}}) is None
  assert difference({'a': {'b': 1}}, {'a': {'b': 2}, 'd': 3}) == 'a.b: 1 -> 2, d: None -> 3'
  eight = {str(k): 0 for k in range(8)}
  assert difference(eight, {}).endswith('7: 0 -> None')
  text = difference({**eight, '8': 0, '9': 0}, {})
  assert text.endswith('7: 0 -> None and 2 more') and '8: 0' not in text


def test_overwriting_deletes_what_a_run_has_written_and_nothing_else(tmp_path):
  for name in ('metrics.jsonl', 'results.json', 'mine.txt', 'config.json'):
    (tmp_path / name).write_text('{}')
  for name in ('checkpoints', 'export', 'per_user', 'tensorboard', 'mine'):
    (tmp_path / name).mkdir()
    (tmp_path / name / 'file').write_text('x')
  # What is not a run's is left alone, and so the folder is refused.
  with pytest.raises(UserError, match='is not empty'):
    workdir.open_workdir(tmp_path, _identity(), overwrite=True)
  assert sorted(path.name for path in tmp_path.iterdir()) == ['mine', 'mine.txt']
  assert (tmp_path / 'mine' / 'file').exists()
