"""Downloads from a server on this machine: whole, resumed, cut off, damaged, hostile."""
import functools
import hashlib
import http.server
import io
import re
import stat
import threading
import zipfile

import pytest

from graphsane_tf.data import download
from graphsane_tf.data import SOURCES
from graphsane_tf.data import prepare
from graphsane_tf.data.readers import ml10m
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from tests.data import raw_files


class Handler(http.server.BaseHTTPRequestHandler):
  """Serves a dictionary of files; knows ranges, and can break off in the middle."""

  def __init__(self, served, *args):
    self.served = served
    super().__init__(*args)

  def log_message(self, *_):
    pass

  def do_GET(self):
    content = self.served['files'].get(self.path)
    wanted = self.headers.get('Range') if self.served.get('ranges', True) else None
    self.served.setdefault('asked', []).append((self.path, wanted))
    if content is None:
      self.send_error(404)
      return
    start = int(re.fullmatch(r'bytes=(\d+)-', wanted).group(1)) if wanted else 0
    if wanted and start >= len(content):
      self.send_response(416)
      self.send_header('Content-Range', f'bytes */{len(content)}')
      self.end_headers()
      return
    self.send_response(206 if wanted else 200)
    if wanted:
      self.send_header('Content-Range', f'bytes {start}-{len(content) - 1}/{len(content)}')
    self.send_header('Content-Length', str(len(content) - start))
    self.end_headers()
    self.wfile.write(content[start:self.served.get('stop', len(content))])


@pytest.fixture(name='served')
def fixture_served():
  """A server; tests fill `files` and read `url`."""
  served = {'files': {}}
  server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Handler, served))
  thread = threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.01})
  thread.start()
  served['url'] = f'http://127.0.0.1:{server.server_port}'
  yield served
  server.shutdown()
  server.server_close()
  thread.join()


def quiet(_):
  pass


def ml10m_zip(tmp_path, **extra):
  folder = raw_files.write_ml10m(tmp_path / 'source', *raw_files.random_log(),
                                 genres={1: 'Drama'})
  stream = io.BytesIO()
  with zipfile.ZipFile(stream, 'w', zipfile.ZIP_DEFLATED) as archive:
    for name in ('ratings.dat', 'movies.dat'):
      archive.write(folder / name, f'ml-10M100K/{name}')
    archive.writestr('ml-10M100K/allbut.pl', 'not wanted')
    for name, content in extra.items():
      archive.writestr(name, content)
  return stream.getvalue()


def serve_zip(served, content, digest=None):
  digest = digest or hashlib.md5(content).hexdigest()
  served['files'] = {'/ml-10m.zip': content,
                     '/ml-10m.zip.md5': f'MD5 (ml-10m.zip) = {digest}\n'.encode()}
  return served['url'] + '/ml-10m.zip'


def test_gowalla_is_fetched_whole(tmp_path, served):
  served['files']['/x.txt.gz'] = b'content' * 1000
  download.download('gowalla', tmp_path / 'new', served['url'] + '/x.txt.gz', log=quiet)
  assert [path.name for path in (tmp_path / 'new').iterdir()] == ['x.txt.gz']
  assert (tmp_path / 'new' / 'x.txt.gz').read_bytes() == b'content' * 1000


@pytest.mark.parametrize('ranges', [True, False])
def test_broken_off_download_goes_on(tmp_path, served, ranges):
  content = bytes(range(256)) * 1000
  served.update(stop=100000, ranges=ranges)
  served['files']['/x.gz'] = content
  with pytest.raises(UserError, match='run the same command again'):
    download.download('gowalla', tmp_path, served['url'] + '/x.gz', log=quiet)
  assert [path.name for path in tmp_path.iterdir()] == ['x.gz.part']
  del served['stop']
  download.download('gowalla', tmp_path, served['url'] + '/x.gz', log=quiet)
  assert (tmp_path / 'x.gz').read_bytes() == content
  assert served['asked'][-1] == ('/x.gz', 'bytes=100000-' if ranges else None)
  assert not list(tmp_path.glob('*.part'))


@pytest.mark.parametrize('part', [b'whole file', b'longer than the whole file'])
def test_part_that_is_already_long_enough(tmp_path, served, part):
  served['files']['/x.gz'] = b'whole file'
  (tmp_path / 'x.gz.part').write_bytes(part)
  download.download('gowalla', tmp_path, served['url'] + '/x.gz', log=quiet)
  assert (tmp_path / 'x.gz').read_bytes() == b'whole file'


def test_zip_is_checked_and_unpacked(tmp_path, served):
  content = ml10m_zip(tmp_path)
  folder = tmp_path / 'ml10m'
  download.download('ml10m', folder, serve_zip(served, content), log=quiet)
  assert sorted(path.name for path in folder.iterdir()) == ['movies.dat', 'ratings.dat']
  assert (folder / 'ratings.dat').read_bytes() == (tmp_path / 'source/ratings.dat').read_bytes()
  assert ml10m.find(folder)


def test_load_downloads_when_asked(tmp_path, served, monkeypatch):
  url = serve_zip(served, ml10m_zip(tmp_path))
  monkeypatch.setattr(SOURCES['ml10m'], 'url', url)
  assert len(prepare.load(DataSpec('ml10m'), tmp_path / 'data', download=True, log=quiet)) > 100
  count = len(served['asked'])
  prepare.load(DataSpec('ml10m'), tmp_path / 'data', download=True, log=quiet)
  assert len(served['asked']) == count


def test_wrong_md5(tmp_path, served):
  url = serve_zip(served, ml10m_zip(tmp_path), digest='0' * 32)
  with pytest.raises(UserError, match='md5'):
    download.download('ml10m', tmp_path / 'data', url, log=quiet)
  assert not list((tmp_path / 'data').iterdir())


def test_no_md5_is_noted(tmp_path, served):
  url = serve_zip(served, ml10m_zip(tmp_path))
  del served['files']['/ml-10m.zip.md5']
  lines = []
  download.download('ml10m', tmp_path / 'data', url, log=lines.append)
  assert any('no md5' in line for line in lines)


def symlink():
  member = zipfile.ZipInfo('ml-10M100K/link')
  member.external_attr = (stat.S_IFLNK | 0o777) << 16
  return member


@pytest.mark.parametrize('name', ['../evil', '/evil', 'a/../../evil', '..\\evil', symlink()],
                         ids=str)
def test_hostile_zip(tmp_path, served, name):
  content = io.BytesIO(ml10m_zip(tmp_path))
  with zipfile.ZipFile(content, 'a') as archive:
    archive.writestr(name, 'x')
  with pytest.raises(UserError, match='unsafe member'):
    download.download('ml10m', tmp_path / 'data', serve_zip(served, content.getvalue()), log=quiet)
  assert not list((tmp_path / 'data').iterdir())
  assert not list(tmp_path.rglob('evil'))


def test_bomb_and_damaged_zip(tmp_path, served, monkeypatch):
  content = ml10m_zip(tmp_path)
  with pytest.raises(UserError, match='damaged zip'):
    download.download('ml10m', tmp_path / 'data', serve_zip(served, content[:500]), log=quiet)
  monkeypatch.setattr(download, '_MAX_MEMBER_BYTES', 100)
  with pytest.raises(UserError, match='unpacks to over'):
    download.download('ml10m', tmp_path / 'data', serve_zip(served, content), log=quiet)
  assert [path.name for path in (tmp_path / 'data').iterdir()] == ['movies.dat']


def test_network_failures_are_one_sentence(tmp_path, served):
  for url in (served['url'] + '/none.gz', 'http://127.0.0.1:9/x.gz'):
    with pytest.raises(UserError) as caught:
      download.download('gowalla', tmp_path, url, log=quiet)
    assert url in str(caught.value) and '\n' not in str(caught.value)


def test_closed_data_sets_name_their_page(tmp_path):
  with pytest.raises(UserError, match='https://www.yelp.com/dataset'):
    download.download('yelp', tmp_path, log=quiet)
