"""The shared data flags, and the tool that only prepares."""
from absl import flags
import pytest

from graphsane_tf.data import flags as data_flags


def parse(*arguments):
  values = flags.FlagValues()
  data_flags.define(values)
  data_flags.define(values)
  values(['tool', *arguments])
  return data_flags.from_flags(values)


def test_defaults_leave_the_recipe_alone():
  options = parse()
  assert options['name'] == 'drift' and options['data_dir'] == 'data'
  assert not options['download']
  assert set(options['overrides'].values()) == {None}
  assert set(options['csv_options'].values()) == {None}
  assert options['drift_options'] == {'size': 'default', 'seed': 0, 'hide_categories': False}


def test_every_flag_arrives():
  options = parse('--dataset=csv', '--interactions=log.csv', '--user_column=who',
                  '--min_user_interactions=3', '--min_rating=4', '--duplicates=last',
                  '--drift_seed=5', '--hide_categories', '--download')
  assert options['csv_options']['interactions'] == 'log.csv'
  assert options['csv_options']['user_column'] == 'who'
  assert options['overrides'] == {'min_user_interactions': 3, 'min_item_interactions': None,
                                  'min_rating': 4.0, 'duplicates': 'last'}
  assert options['drift_options']['seed'] == 5 and options['drift_options']['hide_categories']
  assert options['download']


@pytest.mark.fault('mistake on the command line')
@pytest.mark.parametrize('argument', ['--dataset=mnist', '--min_item_interactions=0',
                                      '--duplicates=some', '--drift_size=huge', '--drift_seed=-1'])
def test_wrong_values(argument):
  with pytest.raises(flags.IllegalFlagValueError):
    parse(argument)
