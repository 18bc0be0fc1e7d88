"""Results as text: what older versions wrote is read, too."""
import pytest

from graphsane_tf.runs import screen


@pytest.mark.parametrize('name', ['sampler_seconds', 'reservoir_seconds'])
def test_the_seconds_of_the_sampler_by_either_name(name):
  entry = {'block': 1, 'test': {f'{metric}@20': .5 for metric in screen.METRICS}, 'epochs': 3, 'best_epoch': 2,
           'train_seconds': 7., name: 4.2, 'test_new_users': {}, 'coverage': {'users': 9, 'users_known': 8}}
  text = screen.results_table({'dataset': 'd', 'backbone': 'b', 'kd': 'k', 'sampler': 's', 'seed': 0,
                               'blocks': [entry], 'average': entry['test']})
  line = [line for line in text.splitlines() if line.startswith('block 1')][-1]
  assert line.split()[2:] == ['3', '2', '7.0', '4.2', '8/9', '-']
  assert max(map(len, text.splitlines())) <= 80
