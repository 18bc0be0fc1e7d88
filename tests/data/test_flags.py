"""The shared data flags."""
from absl import flags
import pytest

from graphsane_tf.data import flags as data_flags
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError


def parse(*arguments):
  values = flags.FlagValues()
  data_flags.define(values)
  data_flags.define(values)
  values(['tool', *arguments])
  return data_flags.from_flags(values)


def test_defaults_leave_the_recipe_alone():
  assert parse() == {'spec': DataSpec('drift', {}, {'size': 'default', 'seed': 0, 'hide_categories': False}),
                     'data_dir': 'data', 'download': False}
  assert parse()['spec'].to_json() == DataSpec('drift').to_json()
  assert parse('--dataset=gowalla')['spec'] == DataSpec('gowalla')


def test_every_flag_arrives():
  parsed = parse('--dataset=csv', '--interactions=log.csv', '--user_column=who', '--min_user_interactions=3',
                 '--min_rating=4', '--duplicates=last', '--download', '--data_dir=d')
  assert parsed == {
      'spec': DataSpec('csv', {'min_user_interactions': 3, 'min_rating': 4.0, 'duplicates': 'last'},
                       {'interactions': 'log.csv', 'user_column': 'who'}),
      'data_dir': 'd', 'download': True}
  assert parse('--drift_size=small', '--drift_seed=5', '--hide_categories')['spec'] == DataSpec(
      'drift', options={'size': 'small', 'seed': 5, 'hide_categories': True})


@pytest.mark.fault('mistake on the command line')
@pytest.mark.parametrize('argument', ['--dataset=mnist', '--min_item_interactions=0',
                                      '--duplicates=some', '--drift_size=huge', '--drift_seed=-1'])
def test_wrong_values(argument):
  with pytest.raises(flags.IllegalFlagValueError):
    parse(argument)


@pytest.mark.fault('mistake on the command line')
@pytest.mark.parametrize('dataset, flag, owner', [
    ('drift', '--interactions=log.csv', 'csv'), ('gowalla', '--user_column=u', 'csv'),
    ('csv', '--hide_categories', 'drift'), ('yelp', '--drift_size=small', 'drift')])
def test_an_option_of_another_data_set(dataset, flag, owner):
  name = flag.split('=')[0]
  with pytest.raises(UserError, match=f'{name} goes with --dataset={owner}, but the data set is {dataset}'):
    parse(f'--dataset={dataset}', flag)
