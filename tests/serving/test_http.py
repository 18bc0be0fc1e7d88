"""A real server on this machine: TensorFlow Serving's bodies, limits, tokens, and versions that change under load."""
import base64
import contextlib
import http.client
import json
import pathlib
import shutil
import socket
import threading
import time
import urllib.parse

import numpy as np
import pytest

from graphsane_tf.errors import UserError
from graphsane_tf.graph import csr
from graphsane_tf.serving import export, http as serving, models, versions

PATIENCE = 60.
USERS, ITEMS = [f'u{number}' for number in range(20)], [f'i{number}' for number in range(50)]


def manifest(number, content):
  return {'name': 'shop', 'number': number, 'kind': 'trained', 'update': number - 1, 'numbering': 0, 'content': content,
          'parent': None, 'data': {'rows': number}, 'config': {}, 'trained': {}, 'gate': {'decision': 'trained'}}


@pytest.fixture(name='exports', scope='module')
def _exports(tmp_path_factory):
  """Two models; all scores of the first are 1, all of the second 2."""
  folder = tmp_path_factory.mktemp('models')
  for content in (1, 2):
    export.export_block(folder / str(content), np.ones((20, 1)), np.full((50, 1), content), USERS, ITEMS,
                        csr.from_pairs([0, 0], [0, 3], 20, 50), np.arange(50))
  return folder


class Shop:
  """A store's versions, and the server of them."""

  def __init__(self, folder: pathlib.Path, exports: pathlib.Path):
    self.versions = versions.Versions(folder, 'shop')
    self._work, self._exports = folder / 'work', exports
    self.content = {}

  def publish(self, content):
    number = self.versions.next_number()
    shutil.copytree(self._exports / str(content), self._work)
    versions.seal(self._work, manifest(number, content))
    self.content[number] = content
    self.versions.publish(self._work, number)

  def rollback(self, number):
    new = self.versions.next_number()
    self.content[new] = self.content[number]
    assert self.versions.rollback(number, self._work) == new

  @contextlib.contextmanager
  def serving(self, poll=.05, token=None, page=None, **limits):
    """A server in a thread; gives a client of it."""
    bounds = serving.Limits(**limits)
    current = models.Current(self.versions)
    service = serving.Service('shop', current, bounds)
    with serving.listen('127.0.0.1', 0) as place:
      server = serving.make_server(serving.make_app(service, token, page), bounds)
      thread = threading.Thread(target=server.run, kwargs={'sockets': [place]})
      thread.start()
      current.follow(poll)
      try:
        yield Client(place.getsockname()[1], current, server)
      finally:
        server.should_exit = True
        thread.join(PATIENCE)
        current.close()
        service.close()
    assert not thread.is_alive()


class Client:
  """Asks a server."""

  def __init__(self, port, current=None, server=None):
    self.port, self.current, self.server = port, current, server
    self._connection = http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)

  def ask(self, method, path, body=None, headers=None):
    """Code, answer and the version that it names."""
    body = json.dumps(body) if isinstance(body, (dict, list)) else body
    self._connection.request(method, path, body, headers or {})
    response = self._connection.getresponse()
    text = response.read().decode()
    is_json = response.headers.get('content-type') == 'application/json'
    return response.status, json.loads(text) if is_json else text, response.headers.get('X-Model-Version')

  def predict(self, body, path='/v1/models/shop:predict'):
    code, answer, _ = self.ask('POST', path, body)
    assert code == 200, answer
    return answer


@pytest.fixture(name='shop', scope='module')
def _shop(tmp_path_factory, exports):
  shop = Shop(tmp_path_factory.mktemp('shop'), exports)
  shop.publish(1)
  return shop


def _page(user):
  if user == 'broken':
    raise UserError('the log is damaged.')
  return f'<p>{user}</p>'


@pytest.fixture(name='client', scope='module')
def _client(shop):
  with shop.serving(page=_page, body_bytes=20_000, batch=100, k=60) as client:
    yield client


def test_predict_by_column_and_by_row(client):
  answer = client.predict({'inputs': {'user_id': ['u0', 'nobody'], 'k': 3}})
  assert answer == {'outputs': {'item_id': [['i1', 'i2', 'i4'], ['i49', 'i48', 'i47']], 'known': [True, False],
                                'score': [[1., 1., 1.], [pytest.approx(np.log1p(n)) for n in (49, 48, 47)]]}}
  rows = client.predict({'instances': [{'user_id': 'u0', 'k': 3}, {'user_id': 'nobody', 'k': 3}]})
  assert rows == {'predictions': [{name: values[row] for name, values in answer['outputs'].items()} for row in (0, 1)]}
  encoded = {'b64': base64.b64encode(b'u0').decode()}
  assert client.predict({'inputs': {'user_id': [encoded], 'k': 1}})['outputs']['item_id'] == [['i1']]
  padded = client.predict({'inputs': {'user_id': ['u0'], 'k': 60}})['outputs']
  assert padded['item_id'][0][48:] == [''] * 12 and padded['score'][0][48:] == [-np.inf] * 12
  for path in ('/v1/models/shop/versions/1:predict', '/v1/models/shop:predict'):
    assert client.predict({'inputs': {'user_id': ['u0'], 'k': 1}}, path)['outputs']['item_id'] == [['i1']]


def test_other_signatures(client):
  ask = lambda name, **body: client.predict({'signature_name': name, **body})
  lists = {'user_id': ['u0', 'u1'], 'k': 2, 'exclude': [['i1'], ['i0', 'i2']]}
  assert ask('recommend', inputs=lists)['outputs']['item_id'] == [['i2', 'i4'], ['i1', 'i3']]
  rows = [{'user_id': 'u0', 'k': 2, 'exclude': ['i1']}, {'user_id': 'u1', 'k': 2, 'exclude': ['i0', 'i2']}]
  assert [row['item_id'] for row in ask('recommend', instances=rows)['predictions']] == [['i2', 'i4'], ['i1', 'i3']]
  allowed = {'user_id': ['u0'], 'k': 5, 'allow': [['i9', 'i3', 'i7']]}
  assert ask('recommend', inputs=allowed)['outputs']['item_id'] == [['i7', 'i9', '', '', '']]
  assert ask('by_items', inputs={'item_id': [['i0', 'i1'], ['i2']], 'k': 2})['outputs']['item_id'] == [
      ['i2', 'i3'], ['i0', 'i1']]
  assert ask('embed_users', inputs=['u1'])['outputs'] == {'embedding': [[1.]], 'known': [True]}
  assert ask('embed_items', instances=['i1', 'x'])['predictions'] == [
      {'embedding': [1.], 'known': True}, {'embedding': [0.], 'known': False}]
  assert ask('score', inputs={'user_id': ['u0'], 'item_id': ['i0']})['outputs'] == {'known': [True], 'score': [1.]}
  assert ask('similar_items', inputs={'item_id': ['i4'], 'k': 2})['outputs']['item_id'] == [['i0', 'i1']]


def test_state_metadata_health_metrics_and_page(client):
  status = {'model_version_status': [{'version': '1', 'state': 'AVAILABLE',
                                      'status': {'error_code': 'OK', 'error_message': ''}}]}
  assert client.ask('GET', '/v1/models/shop') == (200, status, '1')
  assert client.ask('GET', '/v1/models/shop/versions/1') == (200, status, '1')
  _, answer, _ = client.ask('GET', '/v1/models/shop/metadata')
  assert answer['model_spec']['version'] == '1'
  inputs = answer['metadata']['signature_def']['signature_def']['serving_default']['inputs']
  assert inputs == {'user_id': {'dtype': 'DT_STRING', 'tensor_shape': {'dim': [{'size': '-1'}], 'unknown_rank': False}},
                    'k': {'dtype': 'DT_INT32', 'tensor_shape': {'dim': [], 'unknown_rank': False}}}
  assert client.ask('GET', '/healthz')[:2] == (200, {'status': 'ok', 'model': 'shop', 'version': 1, 'problem': ''})
  assert client.ask('GET', '/')[:2] == (200, '<p>None</p>') and client.ask('GET', '/?user=u1')[1] == '<p>u1</p>'
  assert client.ask('GET', '/?user=broken')[:2] == (500, {'error': 'the log is damaged.'})
  _, text, _ = client.ask('GET', '/metrics')
  assert '\ngraphsane_model_version 1\n' in text and 'graphsane_requests_total{path="/healthz",code="200"} 1\n' in text
  assert 'graphsane_request_seconds_count{path="/healthz"} 1\n' in text


def test_recommend_in_plain_json(client):
  wanted = {'model': 'shop', 'version': 1, 'recommendations': [
      {'user': 'u0', 'known': True, 'items': [{'item': 'i1', 'score': 1.}, {'item': 'i2', 'score': 1.}]}]}
  assert client.ask('GET', '/recommend?user=u0&k=2') == (200, wanted, '1')
  assert client.ask('POST', '/recommend', {'users': ['u0'], 'k': 2}) == (200, wanted, '1')
  items = lambda answer: [[entry['item'] for entry in row['items']] for row in answer[1]['recommendations']]
  assert items(client.ask('GET', '/recommend?user=u0&k=2&exclude=i1&exclude=i4')) == [['i2', 'i5']]
  assert items(client.ask('POST', '/recommend', {'users': ['u0', 'x'], 'allow': ['i3', 'i8', 'none']})) == [
      ['i8'], ['i8', 'i3']]
  assert items(client.ask('POST', '/recommend', {'items': ['i0', 'i2'], 'k': 2})) == [['i1', 'i3']]
  assert items(client.ask('GET', '/recommend?items=i0&items=i2&exclude=i1&k=2')) == [['i3', 'i4']]
  assert items(client.ask('GET', f'/recommend?user={urllib.parse.quote("ü/ 用")}&k=1')) == [['i49']]


@pytest.mark.fault('request that cannot be answered')
@pytest.mark.parametrize('query, words', [
    ('usr=u0', "give either 'user' or 'items', and 'k', 'exclude' and 'allow' if wanted; there is no 'usr'."),
    ('k=3', "give either 'user' or 'items'"), ('user=u0&items=i1', "give either 'user' or 'items'"),
    ('user=u0&k=few', "'k' must be a whole number.")])
def test_a_mistaken_address_is_told(client, query, words):
  code, answer, _ = client.ask('GET', f'/recommend?{query}')
  assert code == 400 and answer['error'].startswith(words)


@pytest.mark.fault('request that cannot be answered')
@pytest.mark.parametrize('path, body, code, words', [
    ('/v1/models/shop:predict', '{', 400, 'not JSON'), ('/v1/models/shop:predict', '[' * 15_000, 400, 'not JSON'),
    ('/v1/models/shop:predict', '[]', 400, 'not a JSON object'), ('/v1/models/shop:predict', '{}', 400, 'instances'),
    ('/v1/models/shop:predict', b'\xff\xfe\x00', 400, 'not JSON'),
    ('/v1/models/shop:predict', {'inputs': {'user_id': ['a']}}, 400, "'k' is missing"),
    ('/v1/models/shop:predict', {'inputs': ['a']}, 400, 'name the inputs'),
    ('/v1/models/shop:predict', {'inputs': {'user_id': 'a', 'k': 1}}, 400, 'list of strings'),
    ('/v1/models/shop:predict', {'inputs': {'user_id': [1], 'k': 1}}, 400, 'must hold strings'),
    ('/v1/models/shop:predict', {'inputs': {'user_id': ['\ud800'], 'k': 1}}, 400, 'Unicode'),
    ('/v1/models/shop:predict', {'inputs': {'user_id': [{'b64': '*'}], 'k': 1}}, 400, 'base64'),
    ('/v1/models/shop:predict', {'inputs': {'user_id': ['a'], 'k': True}}, 400, 'whole number'),
    ('/v1/models/shop:predict', {'inputs': {'user_id': ['a'], 'k': 1e300}}, 400, 'whole number'),
    ('/v1/models/shop:predict', '{"inputs": {"user_id": ["a"], "k": 1' + '0' * 5000 + '}}', 400, ''),
    ('/v1/models/shop:predict', {'inputs': {'user_id': ['a'], 'k': 61}}, 400, 'from 0 to 60'),
    ('/v1/models/shop:predict', {'inputs': {'user_id': ['a'], 'k': -1}}, 400, 'from 0 to 60'),
    ('/v1/models/shop:predict', {'inputs': {'user_id': ['a'] * 101, 'k': 1}}, 400, 'may have 100'),
    ('/v1/models/shop:predict', {'inputs': {'user_id': ['a'], 'k': 1, 'x': 1}}, 400, "no input 'x'"),
    ('/v1/models/shop:predict', {'signature_name': 'x', 'inputs': {}}, 400, "no signature 'x'"),
    ('/v1/models/shop:predict', {'signature_name': {'a': 1}, 'inputs': {}}, 400, 'no signature'),
    ('/v1/models/shop:predict', {'instances': [{'user_id': 'a', 'k': 1}, {'user_id': 'a', 'k': 2}]}, 400, 'the same'),
    ('/v1/models/shop:predict', {'instances': [{'user_id': 'a', 'k': 1}, {'user_id': 'a'}]}, 400, 'the same inputs'),
    ('/v1/models/shop:predict', {'instances': []}, 400, 'list of rows'),
    ('/v1/models/shop:predict', {'signature_name': 'recommend', 'inputs': {
        'user_id': ['a', 'b', 'c'], 'k': 1, 'exclude': [['a'], ['b']]}}, 400, 'do not fit together'),
    ('/v1/models/shop:predict', 'x' * 20_001, 413, 'longer than 20000'),
    ('/v1/models/other:predict', {'inputs': {}}, 404, 'Servable not found for request: Latest(other)'),
    ('/v1/models/shop/versions/7:predict', {'inputs': {}}, 404, 'Specific(shop, 7)'),
    ('/v1/models/shop:classify', {'inputs': {}}, 405, 'there is no POST'), ('/healthz', {}, 405, 'there is no POST'),
    ('/recommend', {'users': ['a'], 'items': ['b']}, 400, "either 'users' or 'items'"),
    ('/recommend', {'users': 'a'}, 400, 'list of strings'), ('/recommend', {'users': ['a'], 'K': 1}, 400, "no 'K'"),
    ('/recommend', {'users': ['a'], 'k': 'x'}, 400, 'whole number')])
def test_mistakes_get_a_sentence_and_a_code(client, path, body, code, words):
  got, answer, _ = client.ask('POST', path, body)
  assert got == code and list(answer) == ['error'] and words in answer['error'], answer
  # The connection lives on unless the body was too long to be read.
  assert Client(client.port).ask('GET', '/healthz')[0] == 200


@pytest.mark.fault('request that cannot be answered')
def test_a_body_without_a_length_is_bounded_too(client):
  parts = (b'x' * 1000 for _ in range(100))
  connection = http.client.HTTPConnection('127.0.0.1', client.port, timeout=PATIENCE)
  with contextlib.suppress(BrokenPipeError, ConnectionResetError):
    connection.request('POST', '/recommend', parts, {'Transfer-Encoding': 'chunked'}, encode_chunked=True)
    assert connection.getresponse().status == 413
  assert client.ask('GET', '/healthz')[0] == 200


@pytest.mark.fault('slow client')
def test_slow_clients_slow_answers_and_crowds_are_sent_away(shop):
  with shop.serving(seconds=.5, threads=1, waiting=2) as client:
    with socket.create_connection(('127.0.0.1', client.port), timeout=PATIENCE) as slow:
      slow.sendall(b'POST /recommend HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{')
      assert b' 408 ' in slow.recv(1000).split(b'\r\n')[0]
    held, served = threading.Event(), client.current.served
    try:
      answer = served.ask
      served.ask = lambda *inputs: held.wait(PATIENCE) and answer(*inputs)
      codes = []
      crowd = [threading.Thread(target=lambda: codes.append(Client(client.port).ask('GET', '/recommend?user=u0')[0]))
               for _ in range(4)]
      for one in crowd:
        one.start()
      for one in crowd:
        one.join(PATIENCE)
      assert sorted(codes) == [503, 503, 504, 504]
    finally:
      held.set()
      del served.ask
    deadline = time.monotonic() + PATIENCE
    while client.ask('GET', '/recommend?user=u0')[0] != 200:
      assert time.monotonic() < deadline


def test_a_server_that_stops_answers_first(shop):
  arrived, held, codes = threading.Event(), threading.Event(), []
  with shop.serving() as client:
    served = client.current.served
    answer = served.ask
    try:
      served.ask = lambda *inputs: arrived.set() or held.wait(PATIENCE) and answer(*inputs)
      asking = threading.Thread(target=lambda: codes.append(client.ask('GET', '/recommend?user=u0&k=1')[:2]))
      asking.start()
      assert arrived.wait(PATIENCE)
      client.server.should_exit = True
      time.sleep(.3)
    finally:
      held.set()
      del served.ask
    asking.join(PATIENCE)
  assert [code for code, _ in codes] == [200] and codes[0][1]['recommendations'][0]['items'][0]['item'] == 'i1'


def test_a_token_is_asked_for(shop, tmp_path):
  (tmp_path / 'token').write_text('a-long-enough-word\n')
  with shop.serving(token=serving.read_token(tmp_path / 'token')) as client:
    for headers in ({}, {'Authorization': 'Bearer a-long-enough-wor'}, {'Authorization': 'Basic a-long-enough-word'},
                    {'Authorization': 'Bearer ü'.encode()}):
      for path in ('/recommend?user=u0', '/v1/models/shop', '/metrics', '/nowhere'):
        assert client.ask('GET', path, headers=headers)[:2] == (401, {'error': 'a bearer token is needed.'})
    assert client.ask('GET', '/recommend?user=u0', headers={'Authorization': 'Bearer a-long-enough-word'})[0] == 200
    assert client.ask('GET', '/healthz')[0] == 200
  for text in ('short', 'two words of enough letters', 'a-lóng-enough-word-too'):
    (tmp_path / 'token').write_text(text)
    with pytest.raises(UserError, match='--token_file'):
      serving.read_token(tmp_path / 'token')
  with pytest.raises(UserError, match='No such file'):
    serving.read_token(tmp_path / 'none')


def _under_load(shop, clients, seconds):
  """Asks from several threads while versions come and go; (versions seen, requests made)."""
  stop, failed, seen = threading.Event(), [], []

  def work(place):
    client, rng = Client(port), np.random.default_rng(place)
    while not stop.is_set():
      users = [USERS[number] for number in rng.integers(20, size=rng.integers(1, 40))]
      code, answer, version = client.ask('POST', '/v1/models/shop:predict', {'inputs': {'user_id': users, 'k': 7}})
      scores = set(np.ravel(answer['outputs']['score'])) if code == 200 else None
      if scores != {float(shop.content[int(version)])}:
        failed.append((code, version, scores))
      seen.append(int(version or 0))

  with shop.serving() as client:
    port = client.port
    threads = [threading.Thread(target=work, args=(place,)) for place in range(clients)]
    for thread in threads:
      thread.start()
    try:
      # A newer version, and back again, each long enough to be taken up.
      for change in (lambda: shop.publish(2), lambda: shop.rollback(min(shop.content))):
        before = client.current.served.number
        time.sleep(seconds / 3)
        change()
        deadline = time.monotonic() + PATIENCE
        while client.current.served.number == before:
          assert time.monotonic() < deadline
          time.sleep(.01)
      time.sleep(seconds / 3)
    finally:
      stop.set()
      for thread in threads:
        thread.join(PATIENCE)
  assert not failed, failed[:5]
  return set(seen), len(seen)


def test_no_request_is_lost_and_no_answer_mixed_when_versions_change(tmp_path, exports):
  shop = Shop(tmp_path, exports)
  shop.publish(1)
  seen, number = _under_load(shop, 4, 1.5)
  assert seen == {1, 2, 3} and number > 20


@pytest.mark.slow
def test_load_of_a_minute(tmp_path, exports):
  shop = Shop(tmp_path, exports)
  shop.publish(1)
  seen, number = _under_load(shop, 8, 60.)
  print(f'{number} requests')
  assert seen == {1, 2, 3} and number > 1000


@pytest.mark.fault('damaged version')
def test_a_damaged_version_is_not_taken_up(tmp_path, exports):
  shop = Shop(tmp_path, exports)
  with pytest.raises(UserError, match='no version yet'):
    models.Current(shop.versions)
  shop.publish(1)
  lines = []
  current = models.Current(shop.versions, lines.append)
  shop.publish(2)
  file = shop.versions.path(2) / 'saved_model.pb'
  file.write_bytes(file.read_bytes()[:-10])
  assert not current.refresh() and not current.refresh()
  assert current.served.number == 1 and 'damaged' in current.problem and current.failures == 1
  assert [line for line in lines if 'cannot be loaded' in line]
  shop.publish(2)
  assert current.refresh() and current.served.number == 3 and current.problem == ''
  shutil.rmtree(shop.versions.path(3))
  with pytest.raises(UserError, match='damaged'):
    models.Current(shop.versions)


def test_answers_do_not_wait_for_receipts():
  """With Nagle's algorithm each would take 40 ms; what a client connects to inherits the option."""
  with serving.listen('127.0.0.1', 0) as place:
    assert place.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken():
  with serving.listen('127.0.0.1', 0) as place, pytest.raises(UserError, match='--port'):
    serving.listen('127.0.0.1', place.getsockname()[1])
