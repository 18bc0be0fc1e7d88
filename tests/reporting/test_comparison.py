"""Tables, ranks, wins and sentences from a grid whose answers are known."""
import csv
import json

import numpy as np
import pytest

from graphsane_tf.errors import UserError
from graphsane_tf.reporting import (comparison, learned, movers, outputs, published, ranks,
                                    reproduction, specs, summary)
from graphsane_tf.training import grid
from tests.reporting import fake_grid


def _grid(workdir, names, datasets=('gowalla',), seeds=2, skip=()):
  flags = {dataset: [f'--dataset={dataset}'] for dataset in datasets}
  cells = grid.cells(specs.rows_of(names), flags, seeds, workdir)
  for cell in cells:
    if cell.name not in skip:
      fake_grid.write_cell(cell)
  return cells, comparison.FinishedGrid(cells)


def _cell(rows, label):
  return next(row for row in rows if row['label'] == label)


def test_main_table(tmp_path):
  _, done = _grid(tmp_path, ['main'], skip=('lsp',))
  rows = comparison.rows(done, specs.TABLES['main'], 'gowalla')
  assert [row['label'] for row in rows] == [row.label for row in specs.TABLES['main'].rows]
  assert _cell(rows, 'LSP_s') == {'label': 'LSP_s', 'seeds': 0, 'published': pytest.approx(
      published.recall(('per_block',), 'gowalla', 'LSP_s'))}
  sane = _cell(rows, 'SGCT-SANE')
  assert sane['partner'] == 'SGCT' and sane['seeds'] == 2 and sane['common_seeds'] == 2
  np.testing.assert_allclose([sane['gain'], sane['gain_low'], sane['gain_high'], sane['delta']],
                             100 * fake_grid.GAIN)
  # Seeds are averaged before the test: as many pairs as users and blocks.
  assert sane['pairs'] == 3 * fake_grid.NUM_USERS and sane['p_value'] < 1e-6
  assert _cell(rows, 'Fine Tune')['published'] == .1705
  tuned = done.of('gowalla', specs.TABLES['main'].rows[0]).values()
  expected = np.mean([[fake_grid.recall_of(cell, block).mean() for block in (1, 2, 3)]
                      for cell in tuned], axis=0)
  np.testing.assert_allclose(_cell(rows, 'Fine Tune')['blocks'], expected)


def test_a_row_is_found_in_every_table_that_shows_it(tmp_path):
  assert len(_grid(tmp_path / 'paper', specs.select(['all']), seeds=1)[0]) == 34
  cells, done = _grid(tmp_path, list(specs.TABLES), seeds=1)
  assert len({cell.folder for cell in cells}) == len(cells)
  for name, table in specs.TABLES.items():
    if name not in ('metrics', 'case_study', 'movers'):
      assert all(row['seeds'] == 1 for row in comparison.rows(done, table, 'gowalla'))


def test_movers_are_compared_with_the_same_reservoir_without_prior(tmp_path):
  _, done = _grid(tmp_path, ['movers'], datasets=('drift',))
  rows = {(row['group'], row['label']): row for row in movers.rows(done, 'drift')}
  assert {group for group, _ in rows} == {'real shift', 'no shift', 'planted movers', 'others'}
  reversed_prior = rows['real shift', 'adaptive, reversed prior']
  assert reversed_prior['gain'] == pytest.approx(-100 * fake_grid.LOSS)
  assert reversed_prior['p_value'] < 1e-4 and reversed_prior['pairs'] == 3 * 10
  assert rows['no shift', 'adaptive, reversed prior']['gain'] == pytest.approx(0.)
  assert rows['no shift', 'adaptive, no prior']['pairs'] == 3 * 30
  assert 'gain' not in rows['no shift', 'adaptive, no prior']
  assert len(movers.table(list(rows.values()))['cells']) == 16


def test_what_the_adaptive_reservoir_learned(tmp_path):
  _, done = _grid(tmp_path, ['variants'], skip=('sgct-sane-sane_variant=adaptive',))
  found = learned.rows(done, 'gowalla')
  assert [row['label'] for row in found[::3]] == [
      f'{name}-SANE adaptive' for name in ('Fine Tune', 'GraphSAIL', 'LWC-KD')]
  assert found[1] == {'label': 'Fine Tune-SANE adaptive', 'block': 2, 'first': [20, 21], 'seeds': 2,
                      'concentration': pytest.approx(4.5)}
  shown = {table.stem: table for table in reproduction.tables(done, ['variants'], None)}
  assert list(shown) == ['variants-gowalla', 'learned-gowalla']
  assert shown['learned-gowalla'].table['cells'][1][1:3] == [2, '20 to 21']


def test_defaults_are_spelled_out_when_the_flags_of_all_cells_change_them(tmp_path):
  row = next(r for r in specs.TABLES['reservoir_q'].rows if r.label == 'SGCT-SANE Q=100')
  assert grid.cell_name(row.flags) == 'sgct-sane'
  for extra in (['--config=configs/tiny.py'], ['--config.sane.size=7']):
    assert grid.cell_name(row.flags, extra) == 'sgct-sane-size=100'
    cell = grid.cells([row], {'drift': []}, 1, tmp_path, extra)[1]
    assert cell.flags[-1] == '--config.sane.size=100'


def test_ranks_and_wins(tmp_path):
  _, done = _grid(tmp_path, ['main'], datasets=('gowalla', 'yelp'))
  found = {row['label']: row for row in ranks.average_ranks(done)}
  # The three with SANE tie for the ranks 1 to 3, the others for 4 to 6.
  assert found['SGCT-SANE']['ranks'] == dict.fromkeys(('recall', 'precision', 'map', 'ndcg'), 2.)
  assert found['SGCT']['ranks']['ndcg'] == 5. and found['SGCT']['published']['ndcg'] == 4.75
  counted = ranks.wins(done)
  assert counted[-1] == {'dataset': 'all', 'cases': 96, 'wins': 96, 'wins_5': 96, 'losses': 0,
                         'losses_5': 0}
  spread = ranks.spread(done)
  assert len(spread) == 10 and len(spread['SGCT']) == 2 * 2 * 3 * 4
  assert set(spread['SGCT-SANE']) == {2.}


def test_what_is_missing_is_left_out_of_ranks(tmp_path):
  _, done = _grid(tmp_path, ['main'], skip=('sgct-sane',))
  assert ranks.average_ranks(done) == []
  assert ranks.wins(done)[0]['cases'] == 32
  assert [row['seeds'] for row in comparison.rows(done, specs.TABLES['main'], 'gowalla')
          if row['label'] == 'SGCT-SANE'] == [0]


def test_files(tmp_path):
  _, done = _grid(tmp_path / 'grid', ['main', 'metrics', 'clusters_k'], skip=('lsp',))
  shown = reproduction.tables(done, ['main', 'metrics', 'clusters_k'], None)
  lines = []
  reproduction.write(shown, tmp_path, lines.append)
  text = (tmp_path / 'main-gowalla.md').read_text()
  assert '| SGCT-SANE |' in text and 'Data and protocol differ' in text and text in lines[0]
  with open(tmp_path / 'main-gowalla.csv', newline='', encoding='utf-8') as stream:
    rows = list(csv.DictReader(stream))
  assert rows[0]['method'] == 'Fine Tune' and rows[0]['published'] == '0.1705'
  assert rows[1]['method'] == 'LSP_s' and rows[1]['average'] == '' and rows[1]['seeds'] == '0'
  saved = json.loads((tmp_path / 'metrics-wins.json').read_text())
  assert saved['data'][0]['wins'] == 48 and (tmp_path / 'metrics-ranks.csv').exists()
  assert (tmp_path / 'clusters_k-gowalla.md').exists()
  assert outputs.markdown({'heads': ['a'], 'cells': [['x|y']]}, 't').count('x\\|y') == 1


def test_sentences(tmp_path):
  _, done = _grid(tmp_path, ['main', 'metrics'], skip=('lwckd-sane',))
  shown = reproduction.tables(done, ['main', 'metrics'], None)
  told = summary.conclusions(shown)
  assert 'gowalla: SANE changed SGCT by +10.0 % in Recall@20 (95 % interval +10.0 to +10.0 %' in (
      told[1]) and told[1].endswith('it helps.')
  assert any('ahead in 32 of 32' in line for line in told)
  assert any('lwckd-sane' in line for line in summary.scope(done, shown))


@pytest.mark.parametrize('change, expected', [
    ({}, 'helps'), ({'gain': -3., 'gain_low': -4., 'gain_high': -2., 'difference': -.1}, 'hurts'),
    ({'gain_low': -1.}, 'makes no clear difference'),
    ({'p_value': .2}, 'makes no clear difference'),
    ({'difference': -.1}, 'makes no clear difference'),
    ({'gain_low': None, 'gain_high': None}, 'helps')])
def test_verdicts(change, expected):
  row = {'gain': 3., 'gain_low': 1., 'gain_high': 5., 'p_value': .001, 'difference': .1, **change}
  assert summary.verdict(row) == expected


def test_unknown_table():
  with pytest.raises(UserError, match='--what=magic'):
    specs.select(['magic'])
  assert specs.select(['time', 'main']) == ['main', 'time']
  assert specs.select(['all']) == [name for name in specs.TABLES if name not in specs.OWN]


@pytest.mark.parametrize('name', [n for n in specs.TABLES if specs.TABLES[n].published])
def test_published_numbers_are_found(name):
  if name == 'metrics':
    assert published.ranks('LWC-KD-SANE')['recall'] == 1.5
    return
  table = specs.TABLES[name]
  dataset = 'taobao14'
  found = [published.recall(table.published, dataset, row.label) for row in table.rows]
  ours_only = {'SGCT+Uniform', 'SGCT+DNS'}
  assert all((value is None) == (row.label in ours_only) for value, row in zip(found, table.rows))


def test_two_spellings_of_sane_are_one_cell(tmp_path):
  row = specs.TABLES['main'].rows[-3]
  assert row.label == 'SGCT-SANE'
  cell = grid.cells([row], {'drift': []}, 1, tmp_path)[1]
  fake_grid.write_cell(cell)
  cell.save_note(1.)
  other = next(r for r in specs.TABLES['samplers'].rows if r.label == 'SGCT+SANE')
  same = grid.cells([other], {'drift': []}, 1, tmp_path)[1]
  assert same.folder == cell.folder and same.results() is not None


@pytest.mark.fault('lost or damaged output')
@pytest.mark.parametrize('damage', ['lost', 'cut', 'changed', 'not one'])
def test_a_damaged_per_user_file_names_the_run_that_makes_it_anew(tmp_path, damage):
  cells, done = _grid(tmp_path, ['main'], seeds=1)
  cell = next(cell for cell in cells if cell.name == 'sgct-sane')
  path = cell.folder / 'per_user' / 'block_2.npz'
  data = path.read_bytes()
  path.write_bytes({'cut': data[:-300], 'changed': data[:200] + b'xxxxxxxx' + data[208:],
                    'not one': b'text', 'lost': b''}[damage])
  if damage == 'lost':
    path.unlink()
  with pytest.raises(UserError, match=f'{path} is missing or damaged; .*--workdir={cell.folder}'):
    comparison.rows(done, specs.TABLES['main'], 'gowalla')


@pytest.mark.fault('lost or damaged output')
@pytest.mark.parametrize('text', [b'\xff', b'{"blocks": [', b'[]', b'{}', b'{"blocks": [], "config": {}}',
                                  b'{"blocks": [], "config": {"blocks": 3}}'])
def test_a_cell_with_damaged_results_is_run_again(tmp_path, text):
  cells, _ = _grid(tmp_path, ['main'], seeds=1)
  cell = next(cell for cell in cells if cell.name == 'sgct-sane')
  (cell.folder / 'results.json').write_bytes(text)
  assert comparison.FinishedGrid(cells).missing() == [cell]
