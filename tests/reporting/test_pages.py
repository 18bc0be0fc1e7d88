"""Tables as pages of the documentation, and what they say together."""
import pathlib
import re
import shutil
import xml.etree.ElementTree

import numpy as np
import pytest

from graphsane_tf import files
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import significance
from graphsane_tf.reporting import comparison, figures, pages, tables, verdict
from graphsane_tf.runs import grid
from tests.reporting import fake_grid

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARKED = '# Page\n\n<!-- {0}: it -->\nold\n<!-- end of {0} -->\nrest\n'


@pytest.fixture(name='folder', scope='module')
def _folder(tmp_path_factory):
  """Pages of three kinds of tables, of a grid whose runs were made at two commits."""
  place = tmp_path_factory.mktemp('pages')
  selected = tables.select(['main', 'peers', 'movers', 'metrics'])
  cells = grid.cells(tables.rows_of(selected), {'drift': ['--dataset=drift']}, 3, place / 'grid')
  for cell in cells:
    fake_grid.write_cell(cell)
    path = cell.folder / 'results.json'
    commit = 'abc' if cell.seed else 'def+'
    files.write_json(path, {**files.read_json(path), 'version': '0.2.0', 'commit': commit})
  done = comparison.FinishedGrid(cells)
  for table in selected:
    for shown in table.build(done):
      pages.write(place / 'results', shown, done, f'graphsane reproduce --what={table.name}')
  return place / 'results', done


def test_a_page_has_its_command_and_the_code_of_its_runs(folder):
  text = (folder[0] / 'main-drift.md').read_text()
  assert text.startswith('# Incremental methods with and without SANE, drift, test Recall@20\n\n```bash\ngraphsane '
                         'reproduce --what=main\n```\n\n| method | block 1 |')
  rows = tables.select(['main'])[0].rows
  count, alone = len(rows), sum(row.alone for row in rows)
  assert (f'version 0.2.0, commit abc ({2 * (count - alone)} runs), version 0.2.0, commit def+ ({count} runs).'
          in text), text
  table = pages.read(folder[0] / 'main-drift.md')
  assert table['heads'][0] == 'method' and len(table['cells']) == count


def test_a_page_of_what_the_paper_draws_has_the_picture(folder):
  place = folder[0]
  assert sorted(path.name for path in place.glob('*.svg')) == ['metrics-ranks-drift.svg']
  assert '](metrics-ranks-drift.svg)' in (place / 'metrics-ranks-drift.md').read_text()
  root = xml.etree.ElementTree.parse(place / 'metrics-ranks-drift.svg').getroot()
  assert root.tag.endswith('svg') and root.get('width') == '520' and root.get('viewBox')


def test_a_simple_model_that_one_table_lacks_is_taken_from_the_main_table(folder, tmp_path):
  place = tmp_path / 'results'
  shutil.copytree(folder[0], place)
  page, ease = place / 'peers-drift.md', verdict.line(place, 'main', 'drift', ('EASE',))['average']
  lines = page.read_text().splitlines()
  page.write_text('\n'.join(re.sub(r'[^|]+', ' ', text.removeprefix('| EASE |')).join(['| EASE |', ''])
                            if text.startswith('| EASE |') else text for text in lines) + '\n')
  assert verdict.line(place, 'peers', 'drift', ('EASE',))['average'] == ''
  table = verdict.short(place)
  assert [row[1] for row in table['cells'] if row[0].startswith('EASE')] == [ease]


def test_seconds_on_a_logarithmic_axis_are_numbers():
  rows = [{'label': name, 'seeds': 1, 'average': .1, 'low': None, 'high': None, 'seconds': seconds}
          for name, seconds in (('a', 1.5), ('b', 3.), ('c', 45.))]
  drawn = figures.Figures().recall_against_time(rows)
  assert 'mathdefault' not in drawn and all(f'<!-- {tick} -->' in drawn for tick in (2, 5, 10, 20))


def test_ours_against_the_best_simple_model(folder):
  table = verdict.against_peers(folder[0])
  line = dict(zip(table['heads'], table['cells'][0]))
  values = folder[1].averages('drift', next(row for row in tables.select(['peers'])[0].rows
                                            if row.label == verdict.STRONG))
  best = max(np.mean(list(folder[1].averages('drift', row).values())) for row in verdict.peers.PEERS)
  span = significance.interval([100 * (value / best - 1) for value in values.values()])
  assert (line['log'], line['seeds'], line['ours is']) == ('drift', 3, 'open')
  assert line['best simple model'] in verdict.SIMPLE and line['Recall@20'] == pytest.approx(best, abs=5e-5)
  assert line['gain %'] == pytest.approx(span.mean, abs=.1)
  np.testing.assert_allclose([float(word) for word in line['gain 95 %'].split(' to ')], [span.low, span.high], atol=.2)


def test_logs_count_alike_in_the_mean_over_them(monkeypatch):
  monkeypatch.setattr(verdict, 'against_peers', lambda folder: {'cells': [['a', 'ahead', 100.], ['b', 'behind', -50.],
                                                                          ['c', 'open', 33.1]]})
  # The third root of 2 * 0.5 * 1.331.
  assert verdict.overall('') == 'Over these 3 logs ours is +10.0 % over the best simple model, in the geometric mean.'
  monkeypatch.setattr(verdict, 'against_peers', lambda folder: {'cells': []})
  assert verdict.overall('') == ''


def test_claims_are_answered_by_interval_and_test(folder, tmp_path):
  cells = {row[0]: row[1:] for row in verdict.claims(folder[0])['cells']}
  assert cells['SANE improves SGCT'] == ['+10.0 (10.0 to 10.0) **yes**']
  assert cells['the prior helps users whose interests move'] == ['+0.0 open']
  assert cells['SGCT improves fine-tuning'] == ['+0.0']
  for change, answer in (({}, '**yes**'), ({'gain 95 %': '-1.0 to 9.0'}, 'open'), ({'p (Holm)': '0.2'}, 'open'),
                         ({'gain %': '-5.0', 'gain 95 %': '-9.0 to -1.0'}, '**no**'), ({'gain 95 %': ''}, '**yes**'),
                         ({'p (Holm)': ''}, '**yes**'), ({'gain 95 %': '', 'p (Holm)': ''}, '')):
    line = {'method': 'SGCT-SANE', 'gain %': '+5.0', 'gain 95 %': '1.0 to 9.0', 'p (Holm)': '0.01', **change}
    (tmp_path / 'main-x.md').write_text('# Title\n\n' + '\n'.join(
        f'| {" | ".join(words)} |' for words in (line, ['---'] * 4, line.values())) + '\n')
    row = next(cells[1] for cells in verdict.claims(tmp_path)['cells'] if cells[0] == 'SANE improves SGCT')
    assert row.split(' ')[-1] == (answer or line['gain %'])


def test_a_marked_place_is_filled_and_nothing_else(tmp_path):
  page = tmp_path / 'page.md'
  page.write_text(MARKED.format('it'))
  pages.fill(page, 'it', 'new\\1')
  assert page.read_text() == '# Page\n\n<!-- it: it -->\n\nnew\\1\n\n<!-- end of it -->\nrest\n'
  with pytest.raises(UserError, match='has 0 places for other'):
    pages.fill(page, 'other', 'new')


def test_pages_without_a_sound_table_are_refused(tmp_path):
  page = tmp_path / 'page.md'
  for text, words in (('# Title\n', 'has no table'), ('| a | b |\n|---|---|\n| 1 |\n', 'fewer or more cells')):
    page.write_text(text)
    with pytest.raises(UserError, match=words):
      pages.read(page)


def test_the_summaries_are_up_to_date(tmp_path):
  """`python experiments/results.py` would change nothing."""
  shutil.copytree(ROOT / 'docs' / 'results', tmp_path / 'results')
  for path in (ROOT / 'docs' / 'results.md', ROOT / 'README.md'):
    shutil.copy(path, tmp_path / path.name)
  verdict.update(tmp_path / 'results', tmp_path / 'results.md', tmp_path / 'README.md')
  for path in (ROOT / 'docs' / 'results.md', ROOT / 'README.md'):
    assert (tmp_path / path.name).read_text() == path.read_text(), 'run python experiments/results.py'
