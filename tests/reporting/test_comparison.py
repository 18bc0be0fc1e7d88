"""Tables, ranks, wins and sentences from a grid whose answers are known."""
import csv
import json

import numpy as np
import pytest

from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import significance
from graphsane_tf.reporting import comparison, outputs, published, tables, wording
from graphsane_tf.reporting.tables import main, metrics, movers
from graphsane_tf.runs import grid
from tests.reporting import fake_grid

OWN = ('peers', 'strong', 'offsets', 'strength', 'printed', 'backbones', 'variants', 'parts', 'joint', 'movers')


def _grid(workdir, names, datasets=('gowalla',), seeds=2, skip=()):
  """Cells of the tables and what is finished; `skip` has names of cells, or (name, seed)."""
  flags = {dataset: [f'--dataset={dataset}'] for dataset in datasets}
  cells = grid.cells(tables.rows_of(tables.select(names)), flags, seeds, workdir)
  for cell in cells:
    if cell.name not in skip and (cell.name, cell.seed) not in skip:
      fake_grid.write_cell(cell)
  return cells, comparison.FinishedGrid(cells)


def _built(done, *names):
  return [shown for table in tables.select(names) for shown in table.build(done)]


def _told(done, *names):
  return [sentence for shown in _built(done, *names) for sentence in shown.source.sentences(shown)]


def _cell(lines, label):
  return next(line for line in lines if line['label'] == label)


def test_main_table(tmp_path):
  _, done = _grid(tmp_path, ['main'], skip=('lsp',))
  rows = _built(done, 'main')[0].data
  assert [row['label'] for row in rows] == [row.label for row in main.Main.rows]
  assert _cell(rows, 'LSP_s') == {'label': 'LSP_s', 'seeds': 0, 'published': pytest.approx(
      published.recall(('per_block',), 'gowalla', 'LSP_s'))}
  sane = _cell(rows, 'SGCT-SANE')
  assert sane['partner'] == 'SGCT' and sane['seeds'] == 2 and sane['common_seeds'] == 2
  np.testing.assert_allclose([sane['gain'], sane['gain_low'], sane['gain_high'], sane['delta']],
                             100 * fake_grid.GAIN)
  # Blocks and seeds are averaged before the test: as many pairs as users.
  assert sane['users'] == fake_grid.NUM_USERS and sane['p_value'] < 1e-6
  of_table = {row.label: row for row in main.Main.rows}
  users = [np.mean([fake_grid.recall_of(cell, block) for cell in done.of('gowalla', of_table[label]).values()
                    for block in (1, 2, 3)], axis=0) for label in ('SGCT-SANE', 'SGCT')]
  assert sane['p_value'] == pytest.approx(significance.paired_wilcoxon(*users).p_value)
  assert _cell(rows, 'Fine Tune')['published'] == .1705
  tuned = done.of('gowalla', main.Main.rows[0]).values()
  expected = np.mean([[fake_grid.recall_of(cell, block).mean() for block in (1, 2, 3)]
                      for cell in tuned], axis=0)
  np.testing.assert_allclose(_cell(rows, 'Fine Tune')['blocks'], expected)


def test_a_row_is_found_in_every_table_that_shows_it(tmp_path):
  assert len(_grid(tmp_path / 'paper', ['all'], seeds=1)[0]) == 40
  cells, done = _grid(tmp_path, list(tables.REGISTRY), seeds=1)
  assert len({cell.folder for cell in cells}) == len(cells)
  for table in tables.select(list(tables.REGISTRY)):
    assert all(list(done.of('gowalla', row)) == [0] for row in table.rows)
    if table.name not in ('metrics', 'case_study', 'movers', 'strength'):
      assert all(line['seeds'] == 1 for line in table.build(done)[0].data)


def test_p_is_corrected_for_the_comparisons_of_a_table(tmp_path):
  _, done = _grid(tmp_path, ['parts', 'movers'], datasets=('drift',))
  for shown in _built(done, 'parts', 'movers'):
    tested = [line for line in shown.data if 'p_value' in line]
    assert len(tested) > 2
    np.testing.assert_allclose([line['p_holm'] for line in tested],
                               significance.holm([line['p_value'] for line in tested]))
    column = [cells[shown.table['heads'].index('p (Holm)')] for cells in shown.table['cells']]
    assert column == [line.get('p_holm') for line in shown.data]


def test_strengths_of_distillers(tmp_path):
  cells, _ = _grid(tmp_path, ['strength'], datasets=('drift',), skip=('lsp-kd_strength=1',))
  for cell in cells:
    path = cell.folder / 'results.json'
    if path.exists() and cell.base is not None:
      results = json.loads(path.read_text())
      for entry in results['blocks'][1:]:
        entry['kd_scale'] = 1. if cell.name.startswith('sgct') else 10. * entry['block'] * (1 + cell.seed)
      path.write_text(json.dumps(results))
  shown, = _built(comparison.FinishedGrid(cells), 'strength')
  found = {line['label']: line for line in shown.data}
  assert list(found) == ['GraphSAIL', 'GraphSAIL, self', 'GraphSAIL, local', 'GraphSAIL, global', 'SGCT', 'LWC-KD']
  # Means over seeds of what the loss has without its scale; the scale of one without a gradient says nothing.
  np.testing.assert_allclose(found['LWC-KD']['ratios'], .75 * np.array([1 / 10, 1 / 20, 1 / 30]))
  assert found['SGCT']['ratios'] == [0., 0., 0.]
  assert [shown.table['cells'][0][k] for k in (0, 1, 3, 4)] == ['GraphSAIL', '0.075', '0.025', 2]
  assert ('drift: the gradient of LWC-KD is 0.046 of that of the ranking loss (2 seeds).'
          in shown.source.sentences(shown))


def test_movers_are_compared_with_the_same_reservoir_without_prior(tmp_path):
  _, done = _grid(tmp_path, ['movers'], datasets=('drift',))
  rows = {(row['group'], row['label']): row for row in movers.compare(done, 'drift', movers.Movers.rows)}
  assert {group for group, _ in rows} == {'real shift', 'no shift', 'planted movers', 'others'}
  reversed_prior = rows['real shift', 'adaptive, reversed prior']
  assert reversed_prior['gain'] == pytest.approx(-100 * fake_grid.LOSS)
  assert reversed_prior['p_value'] < .01 and reversed_prior['users'] == 10
  assert rows['no shift', 'adaptive, reversed prior']['gain'] == pytest.approx(0.)
  assert rows['no shift', 'adaptive, no prior']['users'] == 30
  assert 'gain' not in rows['no shift', 'adaptive, no prior']
  assert len(_built(done, 'movers')[0].table['cells']) == 16


def test_only_drift_has_planted_movers(tmp_path):
  _, done = _grid(tmp_path, ['movers'], seeds=1)
  assert {line['group'] for line in _built(done, 'movers')[0].data} == {'real shift', 'no shift'}


def test_what_the_adaptive_reservoir_learned(tmp_path):
  _, done = _grid(tmp_path, ['variants'], skip=('sgct-sane-sane_variant=adaptive',))
  shown = {table.stem: table for table in _built(done, 'variants')}
  assert list(shown) == ['variants-gowalla', 'learned-gowalla']
  found = shown['learned-gowalla'].data
  assert [row['label'] for row in found[::3]] == [
      f'{name}-SANE adaptive' for name in ('Fine Tune', 'GraphSAIL', 'LWC-KD')]
  assert found[1] == {'label': 'Fine Tune-SANE adaptive', 'block': 2, 'first': [20, 21], 'seeds': 2,
                      'concentration': pytest.approx(4.5)}
  assert shown['learned-gowalla'].table['cells'][1][1:3] == [2, '20 to 21']


def test_ranks_and_wins(tmp_path):
  _, done = _grid(tmp_path, ['main'], datasets=('gowalla', 'yelp'))
  found = {row['label']: row for row in metrics.average_ranks(done, metrics.Metrics.pairs)}
  # The three with SANE tie for the ranks 1 to 3, the others for 4 to 6.
  assert found['SGCT-SANE']['ranks'] == dict.fromkeys(('recall', 'precision', 'map', 'ndcg'), 2.)
  assert found['SGCT']['ranks']['ndcg'] == 5. and found['SGCT']['published']['ndcg'] == 4.75
  counted = metrics.wins(done, metrics.Metrics.with_partner)
  assert counted[-1] == {'dataset': 'all', 'cases': 96, 'wins': 96, 'wins_5': 96, 'losses': 0,
                         'losses_5': 0, 'seeds': 2}
  spread = metrics.spread(done, metrics.Metrics.rows)
  assert len(spread) == 16 and len(spread['SGCT']) == 2 * 2 * 3 * 4
  assert set(spread['SGCT-SANE']) == {2.}


def test_the_headline_is_the_mean_gain_over_data_sets(tmp_path):
  _, done = _grid(tmp_path, ['metrics'], datasets=('gowalla', 'yelp'), skip=('lwckd-sane',))
  lines = metrics.headline(done, metrics.Metrics.with_partner)
  assert [line['label'] for line in lines] == ['GraphSAIL', 'SGCT']
  assert lines[1]['gains'] == pytest.approx({'gowalla': 10., 'yelp': 10.}) and lines[1]['mean'] == pytest.approx(10.)
  assert (lines[0]['published'], lines[1]['published'], lines[1]['seeds']) == (11.2, 8.3, 2)
  # From the six data sets of the published main table.
  assert [line['from_table'] for line in lines] == pytest.approx([11.7, 9.9], abs=.05)
  shown = {part.stem: part for part in _built(done, 'metrics')}['metrics-headline']
  assert shown.table['heads'][:4] == ['method', 'gowalla, %', 'yelp, %', 'mean, %']
  told, = shown.source.sentences(shown)
  assert told.startswith('On average over 2 data sets SANE changed GraphSAIL by +10.0 %, SGCT by +10.0 % in Recall@20 '
                         '(2 seeds; ')


def test_other_backbones_stand_beside_their_own_fine_tuning(tmp_path):
  _, done = _grid(tmp_path, ['backbones'], skip=('pinsage',))
  shown = {part.stem: part for part in _built(done, 'backbones')}
  assert list(shown) == [f'backbones-{name}-gowalla' for name in ('MGCCF', 'LightGCN', 'PinSage')]
  assert [line['label'] for line in shown['backbones-MGCCF-gowalla'].data] == [
      'MGCCF Fine Tune', 'MGCCF Uniform replay', 'MGCCF Uniform replay-SANE', 'MGCCF Inv_degree replay',
      'MGCCF Inv_degree replay-SANE']
  light = shown['backbones-LightGCN-gowalla']
  assert '% to LightGCN Fine Tune' in light.table['heads'] and len(light.data) == 11
  assert _cell(light.data, 'LightGCN SGCT-SANE')['gain'] == pytest.approx(100 * fake_grid.GAIN)
  assert any('SANE changed LightGCN Uniform replay by +10.0 %' in line for line in _told(done, 'backbones'))


def test_costs_up_to_the_best_epoch(tmp_path):
  _, done = _grid(tmp_path, ['clustering'])
  shown, = _built(done, 'clustering')
  line = _cell(shown.data, 'SGCT-SANE (K-means)')
  # Blocks 1 to 3 are best in epochs 1, 2 and 1 of 3, which take 2, 3 and 4 seconds; rebuilds before epochs 1 and 3.
  assert line['best_epoch'] == pytest.approx(4 / 3)
  assert line['best_seconds'] == pytest.approx((2 + 5 + 2) / 3)
  assert line['rebuilds'] == 2.
  row = dict(zip(shown.table['heads'], shown.table['cells'][0]))
  assert row['epochs to best'] == line['best_epoch'] and row['s to best'] and row['rebuilds/block'] == 2.
  assert 'epochs to best' not in _built(_grid(tmp_path / 'main', ['main'])[1], 'main')[0].table['heads']


def test_the_ablation_marks_its_losses(tmp_path):
  _, done = _grid(tmp_path, ['ablation'], seeds=1)
  shown, = _built(done, 'ablation')
  assert shown.table['heads'][:6] == ['method', 'BPR', 'KD', 'SANE', 'KL', 'end to end']
  assert [cells[:6] for cells in shown.table['cells'][:4]] == [
      ['Fine Tune', '✓', '', '', '', '✓'], ['SGCT', '✓', '✓', '', '', '✓'],
      ['SGCT-hard-cluster', '✓', '✓', '✓', '', ''], ['SGCT-SANE', '✓', '✓', '✓', '✓', '✓']]


def test_what_is_missing_is_left_out_of_ranks(tmp_path):
  _, done = _grid(tmp_path, ['main'], skip=('sgct-sane',))
  assert metrics.average_ranks(done, metrics.Metrics.pairs) == []
  assert metrics.wins(done, metrics.Metrics.with_partner)[0]['cases'] == 32
  assert _cell(_built(done, 'main')[0].data, 'SGCT-SANE')['seeds'] == 0


def test_files(tmp_path):
  _, done = _grid(tmp_path / 'grid', ['main', 'metrics', 'clusters_k'], skip=('lsp',))
  lines = [outputs.write(tmp_path, shown.stem, shown.table, shown.title, shown.note, shown.data)
           for shown in _built(done, 'main', 'metrics', 'clusters_k')]
  text = (tmp_path / 'main-gowalla.md').read_text()
  assert '| SGCT-SANE |' in text and 'Data and protocol differ' in text and text == lines[0]
  assert '| p | p (Holm) |' in text and 'corrected for the comparisons of this table' in text
  with open(tmp_path / 'main-gowalla.csv', newline='', encoding='utf-8') as stream:
    rows = list(csv.DictReader(stream))
  assert rows[0]['method'] == 'Fine Tune' and rows[0]['published'] == '0.1705'
  assert rows[1]['method'] == 'LSP_s' and rows[1]['average'] == '' and rows[1]['seeds'] == '0'
  saved = json.loads((tmp_path / 'metrics-wins-gowalla.json').read_text())
  assert saved['data'][0]['wins'] == 48 and (tmp_path / 'metrics-ranks-gowalla.csv').exists()
  assert (tmp_path / 'clusters_k-gowalla.md').exists()
  assert outputs.markdown({'heads': ['a'], 'cells': [['x|y']]}, 't').count('x\\|y') == 1


def test_sentences(tmp_path):
  _, done = _grid(tmp_path, ['main', 'metrics'], skip=('lwckd-sane',))
  told = _told(done, 'main', 'metrics')
  assert 'gowalla: SANE changed SGCT by +10.0 % in Recall@20 (95 % interval +10.0 to +10.0 % over 2 seeds' in (
      told[1]) and told[1].endswith('it helps.') and "with Holm's correction" in told[1]
  assert any(line.startswith('SANE is ahead in 32 of 32') for line in told)
  assert any('lwckd-sane' in line for line in wording.scope(done, []))


_BEST = ('main', 'metrics', 'samplers', 'time', 'clusters_k', 'reservoir_q')


@pytest.mark.parametrize('seeds, skip', [
    (1, ()), (2, (('lsp', 1), ('sgct-warp', 1), ('sgct-sane-num_clusters=5', 0), ('sgct-sane-size=50', 0))),
    (3, (('lsp', 1), ('sgct-warp', 1), ('sgct-sane-num_clusters=5', 0), ('sgct-sane-size=50', 0)))])
def test_nothing_is_called_the_best_from_one_seed_or_an_unfinished_table(tmp_path, seeds, skip):
  _, done = _grid(tmp_path, _BEST, seeds=seeds, skip=skip)
  told = _told(done, *_BEST)
  assert told and not [line for line in told if 'best' in line]
  assert not any(shown.best for shown in _built(done, *_BEST))
  if seeds == 1:
    assert all('one seed' in line.lower() for line in told)


def test_the_best_of_a_finished_table_comes_with_the_number_of_its_seeds(tmp_path):
  _, done = _grid(tmp_path, _BEST, skip=('lsp',))
  told = [line for line in _told(done, *_BEST) if 'best' in line]
  # The main table lacks a row; one sentence of the samplers, and two curves each over K and |Q|.
  assert len(told) == 5 and all('2 seeds' in line for line in told)
  assert told[0].startswith('gowalla: over 2 seeds the best sampler on SGCT is SGCT+SANE with Recall@20 ')
  assert told[-1].startswith('gowalla: over |Q| the Recall@20 of LWC-KD-SANE spans 0.0 % (best at ')
  assert [shown.best for shown in _built(done, 'main', 'samplers')] == ['', 'average']


@pytest.mark.parametrize('change, expected', [
    ({}, 'helps'), ({'gain': -3., 'gain_low': -4., 'gain_high': -2., 'difference': -.1}, 'hurts'),
    ({'gain_low': -1.}, 'makes no clear difference'),
    ({'p_holm': .2}, 'makes no clear difference'),
    ({'difference': -.1}, 'makes no clear difference'),
    ({'gain_low': None, 'gain_high': None}, 'helps')])
def test_verdicts(change, expected):
  row = {'gain': 3., 'gain_low': 1., 'gain_high': 5., 'p_value': .001, 'p_holm': .002,
         'difference': .1, **change}
  assert wording.verdict(row) == expected


def _names(selected):
  return [table.name for table in selected]


@pytest.mark.parametrize('what', ['fig9', ''])
def test_unknown_table(what):
  with pytest.raises(UserError, match=f'--what={what} is not a table; choose from main, metrics, .*, all[.]'):
    tables.select([what] if what else [])
  with pytest.raises(UserError, match='--what=mian is not a table; did you mean main[?] Choose from main, '):
    tables.select(['mian'])


def test_tables_come_in_the_order_of_the_paper():
  assert _names(tables.select(['time', 'main'])) == ['main', 'time']
  assert _names(tables.select(['all'])) == [name for name in tables.REGISTRY if name not in OWN]


@pytest.mark.parametrize('name', list(tables.REGISTRY))
def test_published_numbers_are_found(name):
  table, = tables.select([name])
  if name == 'metrics':
    assert published.ranks('LWC-KD-SANE')['recall'] == 1.5
  elif table.published:
    values = {row.label: published.recall(table.published, 'taobao14', row.label) for row in table.rows}
    ours_only = {'SGCT+Uniform', 'SGCT+DNS', *(row.label for row in table.rows if row.alone)}
    assert all((value is None) == (label in ours_only) for label, value in values.items())


class _Broken(tables.Table):
  title = 'Broken'


def test_a_table_that_cannot_be_built_says_so():
  one = tables.Row('one')
  for rows, words in (((), 'needs rows'), ((one, tables.Row('one')), 'label of its own'),
                      ((tables.Row('two', partner=one),), 'compares with one')):
    _Broken.rows = rows
    with pytest.raises(UserError, match=f'table mine .*{words}'):
      _Broken('mine')


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
    tables.select(['main'])[0].build(done, None)


@pytest.mark.fault('lost or damaged output')
@pytest.mark.parametrize('text', [b'\xff', b'{"blocks": [', b'[]', b'{}', b'{"blocks": [], "config": {}}',
                                  b'{"blocks": [], "config": {"blocks": 3}}'])
def test_a_cell_with_damaged_results_is_run_again(tmp_path, text):
  cells, _ = _grid(tmp_path, ['main'], seeds=1)
  cell = next(cell for cell in cells if cell.name == 'sgct-sane')
  (cell.folder / 'results.json').write_bytes(text)
  assert comparison.FinishedGrid(cells).missing() == [cell]
