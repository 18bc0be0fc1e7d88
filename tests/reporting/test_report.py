"""The report: self-contained, escaped, and shown by a browser where there is one."""
import html.parser
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from graphsane_tf import files
from graphsane_tf.reporting import comparison, figures, html as pieces, report, tables
from graphsane_tf.runs import grid
from tests.reporting import fake_grid

EVIL = '<script>alert("x")</script><img src=x onerror=alert(1)>$\\frac{"\'&'
NAMES = ['main', 'metrics', 'samplers', 'time', 'ablation', 'clusters_k', 'reservoir_q']
BROWSER = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which(
    'google-chrome')


class _Parser(html.parser.HTMLParser):
  """Collects tags, ids and attributes, and checks that elements are closed in order."""

  void = {'meta', 'img', 'br', 'path', 'use', 'rect', 'circle', 'line'}

  def __init__(self):
    super().__init__()
    self.tags, self.ids, self.open, self.attributes, self.text = [], [], [], [], []

  def handle_starttag(self, tag, attrs):
    self.tags.append(tag)
    self.attributes += [(tag, name, value) for name, value in attrs]
    self.ids += [value for name, value in attrs if name == 'id']
    if tag not in self.void:
      self.open.append(tag)

  def handle_startendtag(self, tag, attrs):
    self.handle_starttag(tag, attrs)
    if tag not in self.void:
      self.open.pop()

  def handle_endtag(self, tag):
    if tag not in self.void:
      assert self.open and self.open.pop() == tag, f'{tag} closes nothing'

  def handle_data(self, data):
    self.text.append(data)


class _Examples:
  """Stands for `analyses.Analyses`: a user whose id, items and categories are hostile."""
  problems = {}

  def examples(self, dataset):
    del dataset
    return [{'user': EVIL, 'block': 3, 'categories': [EVIL, 'b'], 'saved': True,
             'history': np.array([[3, 1], [2, 2], [4, 0], [0, 4]]).tolist(), 'counts': [4., 6.],
             'shift': [-1., 1.],
             'reservoir': {'item': [EVIL, 'i2'], 'category': [EVIL, 'b'], 'probability': [.7, .3]}}]

  def case_study(self, dataset, rows, reference):
    del dataset
    def study(factor):
      side = {'users': 3, 'recall': .1 * factor, 'old_share': .02 * factor, 'sampler_old_share': .1}
      return {'high': side, 'rest': side}
    return {row.label: [study(1. if row is reference else 1.05)] for row in rows}


@pytest.fixture(scope='module', name='page')
def _page(tmp_path_factory):
  workdir = tmp_path_factory.mktemp('report')
  selected = tables.select([*NAMES, 'case_study'])
  cells = grid.cells(tables.rows_of(selected), {'drift': ['--dataset=drift', EVIL]}, 2, workdir)
  for cell in cells:
    fake_grid.write_cell(cell)
  files.write_json(cells[1].folder / 'audit.json', {
      'heads': ['evaluation', 'average'], 'cells': [[EVIL, .1]], 'note': EVIL})
  files.write_json(workdir / 'tune' / 'tune.json', {
      'heads': ['chosen', 'value'], 'cells': [['sane.size', 50]], 'note': 'n'})
  done = comparison.FinishedGrid(cells)
  shown = [part for table in selected for part in table.build(done, _Examples())]
  return report.write(workdir, done, shown, _Examples(), 'data')


@pytest.fixture(scope='module', name='parsed')
def _parsed(page):
  parser = _Parser()
  parser.feed(page.read_text('utf-8'))
  parser.close()
  assert not parser.open
  return parser


def test_structure(parsed, page):
  assert len(parsed.ids) == len(set(parsed.ids))
  assert parsed.tags.count('h1') == 1
  text = page.read_text('utf-8')
  order = [text.index(name) for name in (
      'class="summary"', 'What the numbers say', 'Learning curves', 'Users whose interests moved',
      'Protocol audit', 'Tuning', '>Data<', '>Configuration<', '>Machine<')]
  assert order == sorted(order)
  # By block (3), ranks, time, K, Q, case study, curves, one user.
  assert parsed.tags.count('svg') == parsed.tags.count('figure') == 10
  assert 'SANE changed SGCT by +10.0 %' in text
  links = [value[1:] for _, name, value in parsed.attributes if name == 'href' and value]
  assert links and all(link in parsed.ids for link in links if not link.startswith('figure'))
  assert len(parsed.attributes) < 400_000 and page.stat().st_size < 3_000_000


def test_no_network(parsed, page):
  text = page.read_text('utf-8')
  for tag, name, value in parsed.attributes:
    if name in ('src', 'href', 'xlink:href', 'action', 'data', 'srcset'):
      assert value.startswith('#'), f'{tag} {name}={value}'
  assert 'link' not in parsed.tags and '@import' not in text
  assert "default-src 'none'" in text or 'default-src &#x27;none&#x27;' in text
  style = re.findall(r'url\(([^)]*)\)', text)
  assert all(target.strip('"\'').startswith('#') for target in style)


def test_hostile_ids_are_only_text(parsed, page):
  assert parsed.tags.count('script') == 1 and 'img' not in parsed.tags
  assert not [name for _, name, _ in parsed.attributes if name.startswith('on')]
  assert any(EVIL in text for text in parsed.text)
  assert EVIL not in page.read_text('utf-8')


def test_every_figure_has_a_name_and_references_inside_itself(page):
  for number, svg in enumerate(re.findall(r'<svg.*?</svg>', page.read_text('utf-8'), re.DOTALL), 1):
    assert 'aria-label="' in svg.split('>')[0] and 'viewBox' in svg.split('>')[0]
    ids = set(re.findall(r'\bid="([^"]*)"', svg))
    used = set(re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"', svg))
    assert {a or b for a, b in used} <= ids and all(i.startswith(f'figure{number}-') for i in ids)


def test_a_grid_without_results_still_gives_a_report(tmp_path):
  cells = grid.cells(tables.rows_of(tables.select(['main'])), {'drift': []}, 1, tmp_path)
  done = comparison.FinishedGrid(cells)
  text = report.write(tmp_path, done, [], None, 'data').read_text('utf-8')
  assert '0 of 17 runs' in text and 'No table has enough finished runs' in text


def test_tables_sort_by_value():
  shown = pieces.table({'heads': ['m', 'average'], 'cells': [['a', .1], ['b', None], ['c', .25]]},
                       'average')
  assert 'data-value="0.25"' in shown and 'data-value=""' in shown
  assert shown.index('class="best"') > shown.index('>b<')


def test_labels_are_no_formulas():
  row = {'label': '$\\frac{a', 'seeds': 1, 'blocks': [.1, .2], 'average': .15, 'low': .1,
         'high': .2}
  assert '<svg' in figures.Figures().recall_by_block([row, dict(row, label='$$ & <b>')])


def _dump(page, width, profile, script=''):
  """The DOM as the browser has it after its scripts ran."""
  target = page
  if script:
    target = page.with_name('probe.html')
    # The page's policy allows its own script only, so the probe looks in from outside.
    target.write_text(f'<iframe id="f" src="{page.name}" width="{width}" height="800"></iframe>'
                      f'<script>window.onload=function(){{{script}}}</script>')
  done = subprocess.run(
      [BROWSER, '--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking',
       '--disable-component-update', '--disable-sync', '--allow-file-access-from-files',
       f'--user-data-dir={profile}', '--virtual-time-budget=5000', '--dump-dom',
       f'--window-size={width + 40},900', f'file://{target}'],
      capture_output=True, text=True, timeout=120, check=True)
  return done.stdout


@pytest.mark.parametrize('width', [390, 1280])
def test_in_the_browser(page, width, tmp_path):
  if BROWSER is None:
    pytest.skip('no Chromium on this machine: the structure is tested above, its look is not.')
  probe = '''
    var d = document.getElementById('f').contentDocument, w = d.documentElement;
    var head = d.querySelectorAll('table.sortable thead th')[4];
    head.querySelector('button').click();
    var first = d.querySelector('table.sortable tbody tr th').textContent;
    var svg = d.querySelector('figure svg').getBoundingClientRect();
    document.title = JSON.stringify({wide: w.scrollWidth, inner: w.clientWidth, first: first,
        sorted: head.getAttribute('aria-sort'), svg: svg.width, images: d.images.length});'''
  shown = _dump(page, width, tmp_path / 'profile', probe)
  values = json.loads(re.search(r'<title>(.*?)</title>', shown).group(1))
  assert values['wide'] <= values['inner'], 'the page scrolls sideways'
  assert values['sorted'] == 'descending' and 'SANE' in values['first']
  assert .5 * min(width, 640) < values['svg'] <= width and values['images'] == 0
