"""What a run shows at its end, character by character."""
from graphsane_tf.runs import screen


def _entry(block, value, new=None):
  test = {f'{metric}@{k}': value + .01 * k + .1 * number
          for number, metric in enumerate(('recall', 'precision', 'map', 'ndcg')) for k in (20, 5)}
  return {'block': block, 'test': test, 'epochs': 10 + block, 'best_epoch': 7, 'train_seconds': 12.34,
          'sampler_seconds': .56, 'test_new_users': {'recall@20': new} if new else {},
          'coverage': {'users': 100, 'users_known': 90 + block}}


def test_results():
  entries = [_entry(0, .0), _entry(1, .1, .25), _entry(2, .2)]
  average = {name: (entries[1]['test'][name] + entries[2]['test'][name]) / 2 for name in entries[0]['test']}
  text = screen.results_table({'dataset': 'd', 'backbone': 'b', 'kd': 'k', 'sampler': 's', 'seed': 3,
                               'blocks': entries, 'average': average})
  assert text == '''
d  backbone b  kd k  sampler s  seed 3  (test, known users)

Recall           @5     @20
base block   0.0500  0.2000
block 1      0.1500  0.3000
block 2      0.2500  0.4000
average 1-2  0.2000  0.3500

Precision        @5     @20
base block   0.1500  0.3000
block 1      0.2500  0.4000
block 2      0.3500  0.5000
average 1-2  0.3000  0.4500

MAP              @5     @20
base block   0.2500  0.4000
block 1      0.3500  0.5000
block 2      0.4500  0.6000
average 1-2  0.4000  0.5500

NDCG             @5     @20
base block   0.3500  0.5000
block 1      0.4500  0.6000
block 2      0.5500  0.7000
average 1-2  0.5000  0.6500

Training    epochs  best  seconds  in sampler  known users  new users @20
base block      10     7     12.3         0.6       90/100              -
block 1         11     7     12.3         0.6       91/100         0.2500
block 2         12     7     12.3         0.6       92/100              -
'''


def test_results_of_the_base_block_alone_and_of_nothing():
  results = {'dataset': 'd', 'backbone': 'b', 'kd': 'k', 'sampler': 's', 'seed': 3,
             'blocks': [_entry(0, .0)], 'average': {}}
  lines = screen.results_table(results).splitlines()
  assert lines[4].startswith('base block') and lines[5] == '' and 'average' not in ''.join(lines)
  assert screen.results_table({**results, 'blocks': []}) == 'no block is finished yet.'


def test_a_peer_is_fitted_and_has_no_epochs():
  entries = [{**_entry(block, .0), 'epochs': 0, 'best_epoch': 0} for block in (0, 1)]
  text = screen.results_table({
      'dataset': 'd', 'backbone': 'mgccf', 'kd': 'none', 'sampler': 'uniform', 'replay': 'none', 'memory': 'none',
      'peer': 'ease', 'seed': 3, 'blocks': entries, 'average': entries[1]['test']})
  assert text.startswith('\nd  peer ease  seed 3  (test, known users)\n')
  assert text.endswith("""
Fitting     seconds  known users  new users @20
base block     12.3       90/100              -
block 1        12.3       91/100              -
""")
  for word in ('mgccf', 'uniform', 'epoch', 'best 0'):
    assert word not in text


def test_replay_and_memory_are_named_where_there_are_any():
  results = {'dataset': 'd', 'backbone': 'b', 'kd': 'k', 'sampler': 's', 'replay': 'none', 'memory': 'ease',
             'peer': 'none', 'seed': 3, 'blocks': [_entry(0, .0)], 'average': {}}
  text = screen.results_table(results)
  assert text.splitlines()[1] == 'd  backbone b  kd k  sampler s  memory ease  seed 3  (test, known users)'
  text = screen.results_table({**results, 'replay': 'uniform', 'memory': 'none'})
  assert text.splitlines()[1] == 'd  backbone b  kd k  sampler s  replay uniform  seed 3  (test, known users)'


def test_forgetting():
  found = {'metric': 'recall@20', 'matrix': [[.3, .2, None], [None, .4, .5], [None] * 3],
           'average_forgetting': .1, 'backward_transfer': -.05, 'forward_transfer': None}
  head, *table, figures = screen.forgetting_table({'forgetting': found}).splitlines()
  assert head.startswith('recall@20 of each model on each block')
  assert table == ['model of block  test 0  test 1  test 2',
                   '0               0.3000  0.2000       -',
                   '1                    -  0.4000  0.5000']
  assert figures == 'average forgetting +0.1000  backward transfer -0.0500'
  nothing = {**found, 'average_forgetting': None, 'backward_transfer': None}
  assert screen.forgetting_table({'forgetting': nothing}).splitlines()[-1] == table[-1]
