"""`graphsane serve` and `graphsane report` on a real store: one page, one process."""
import html.parser
import json
import re
import signal
import urllib.request

import pytest

from graphsane_tf import files
from graphsane_tf.recommender import Recommender
from graphsane_tf.reporting import store_page
from graphsane_tf.runs import store as stores
from graphsane_tf.runs import updating
from tests import store_files

pytestmark = pytest.mark.usefixtures('short_exports')

PATIENCE = 240.


@pytest.fixture(name='shop', scope='module')
def _shop(tmp_path_factory):
  """Two published versions, one refused, and the first one published again."""
  folder = tmp_path_factory.mktemp('shop')
  days = store_files.write_days(folder)
  quiet = lambda line: None
  updating.create(folder / 'shop', days['history'], store_files.config(), say=quiet)
  shop = stores.Store(folder / 'shop')
  # Any margin will do: two versions are published, and the third can never be.
  assert updating.update(shop, days['monday'], margin=.99, say=quiet).decision == 'published'
  assert updating.update(shop, days['popular'], margin=0., say=quiet).decision == 'refused'
  return shop


class _Page(html.parser.HTMLParser):
  """Tables by the heading before them, as lists of rows of text; checks that tags are closed in order."""

  def __init__(self, text):
    super().__init__()
    self._open, self._heading, self.tables, self.headings, self.links = [], '', {}, [], []
    self.feed(text)
    self.close()
    assert not self._open

  def handle_starttag(self, tag, attrs):
    self.links += [value for name, value in attrs if name in ('href', 'src', 'xlink:href')]
    if tag not in ('meta', 'br', 'path', 'use', 'rect'):
      self._open.append(tag)
    if tag == 'h2' or tag == 'h3':
      self._heading = ''
    if tag == 'table':
      self.tables[self._heading] = []
      self.headings.append(self._heading)
    if tag == 'tr':
      self.tables[self._heading].append([])
    if tag in ('td', 'th'):
      self.tables[self._heading][-1].append('')

  def handle_endtag(self, tag):
    if tag in self._open:
      assert self._open.pop() == tag

  def handle_data(self, data):
    if self._open and self._open[-1] in ('h2', 'h3'):
      self._heading += data
    if 'td' in self._open[-3:] or 'th' in self._open[-3:]:
      self.tables[self._heading][-1][-1] += data


def _column(table, head):
  return [row[table[0].index(head)] for row in table[1:]]


def test_the_page_has_what_the_manifests_have(shop):
  text = store_page.page(shop, 'u00001')
  page = _Page(text)
  assert all(link.startswith('#') for link in page.links), 'nothing is fetched'
  manifests = [shop.manifest(1), shop.manifest(2), files.read_json(shop.path / 'rejected/3/assets.extra/manifest.json')]
  table = page.tables['Versions']
  assert _column(table, 'version') == ['1', '2', '3']
  assert _column(table, 'state') == ['published before', 'served', 'refused']
  assert _column(table, 'rows') == [str(entry['data']['rows']) for entry in manifests]
  recall = page.tables['recall@20']
  assert _column(recall, 'version before')[0] == '–'
  for option, label in (('current', 'version before'), ('popularity', 'popular last week'),
                        ('trained', 'trained today')):
    measured = [entry['gate']['options'][option]['recall@20'] for entry in manifests[1:]]
    assert _column(recall, label)[1:] == [f'{value:.4f}' for value in measured]
  never = manifests[2]['gate']['options']['never_updated']['recall@20']
  # The first update's version before is the first version itself.
  assert _column(recall, 'never updated') == ['–', '–', f'{never:.4f}']
  assert _column(page.tables['Decisions'], 'reason') == [entry['gate']['reason'] for entry in manifests]
  assert _column(page.tables['Drift'], 'new users') == [str(entry['drift']['new_users']) for entry in manifests]
  assert _column(page.tables['Time and size'], 'new rows') == [str(entry['arrived']['rows']) for entry in manifests]
  lists = page.tables['Lists before and after the newest version']
  now = [item for item, _ in Recommender.open(shop.path).recommend('u00001', 10)]
  assert _column(lists, 'version 2') == now
  before = _column(lists, 'version 1')
  assert _column(lists, 'in the one before') == [
      f'rank {before.index(item) + 1}' if item in before else 'not listed' for item in now]
  taken = page.tables['What they have taken']
  log = shop.log().interactions
  assert sum(map(int, _column(taken, 'items taken'))) == (log.user_ids[log.user] == 'u00001').sum()


def test_a_page_of_strangers_and_hostile_names(shop):
  for user in ('<script>alert(1)</script>', 'nobody'):
    text = store_page.page(shop, user)
    assert '<script>alert' not in text and 'The log does not know this user' in text
    _Page(text)
  assert 'User ' not in ''.join(_Page(store_page.page(shop)).headings)


def test_serve_and_report_as_processes(forked, shop, tmp_path):
  server = forked.start('graphsane_tf', 'serve', f'--store={shop.path}', '--port=0', cwd=tmp_path)
  try:
    server.until(lambda: server.stdout.endswith(' is ready\n'))
    address = re.fullmatch(r'version 2 is served\.\n(http://127\.0\.0\.1:\d+) is ready\n', server.stdout)[1]
    with urllib.request.urlopen(f'{address}/recommend?user=u00001&k=3', timeout=PATIENCE) as answer:
      found = json.load(answer)
    assert found['version'] == 2 and found['recommendations'][0]['known']
    wanted = Recommender.open(shop.path).recommend('u00001', 3)
    assert [(entry['item'], entry['score']) for entry in found['recommendations'][0]['items']] == [
        (item, pytest.approx(score)) for item, score in wanted]
    with urllib.request.urlopen(f'{address}/?user=u00001', timeout=PATIENCE) as answer:
      assert 'Lists before and after' in answer.read().decode()
    server.send_signal(signal.SIGTERM)
    code, out, errors = server.finish()
    assert code == 0 and out.endswith(' is ready\nstopped.\n') and errors == ''
  finally:
    if server.poll() is None:
      server.send_signal(signal.SIGKILL)
  done = forked.run('graphsane_tf', 'report', f'--store={shop.path}', '--user=u00001', '--output=page.html',
                    cwd=tmp_path)
  assert done.returncode == 0 and done.stdout == 'written   page.html\n', done.stderr
  assert 'User u00001' in (tmp_path / 'page.html').read_text('utf-8')
