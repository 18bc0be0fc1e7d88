"""A store's model over HTTP: TensorFlow Serving's REST paths, recommendations in plain JSON, health and metrics."""
import asyncio
import concurrent.futures
import dataclasses
import hmac
import json
import pathlib
import socket
import time
from typing import Any, Callable, Dict, List, Mapping, Optional

import fastapi
from fastapi import responses
from starlette.requests import ClientDisconnect
import tensorflow as tf
from tensorflow.core.framework import types_pb2
import uvicorn

from graphsane_tf.errors import UserError
from graphsane_tf.serving import rest
from graphsane_tf.serving.clock import Clock
from graphsane_tf.serving.models import Current, Served
from graphsane_tf.serving.rest import BadRequest

_LEAST_TOKEN = 16


@dataclasses.dataclass(frozen=True)
class Limits:
  """What a request may ask for.

  Attributes:
    body_bytes: of a request.
    batch: users, or items, of a request.
    k: items of a list.
    seconds: until a request is given up, both to arrive and to be answered.
    waiting: requests that are being answered or wait for it; further ones are sent away.
    threads: requests that are answered at once.
  """
  body_bytes: int = 4 << 20
  batch: int = 4096
  k: int = 1000
  seconds: float = 30.
  waiting: int = 128
  threads: int = 4


def read_token(path) -> bytes:
  """The token that clients must send, from a file."""
  try:
    token = pathlib.Path(path).read_bytes().strip()
  except OSError as error:
    raise UserError(f'--token_file={path}: {error.strerror}.') from error
  if len(token) < _LEAST_TOKEN or any(letter <= 32 or letter > 126 for letter in token):
    raise UserError(f'--token_file={path} must hold one word of at least {_LEAST_TOKEN} letters and digits.')
  return token


class Service:
  """Answers requests from the version that is served when they arrive."""

  def __init__(self, name: str, current: Current, limits: Limits = Limits()):
    self.name, self.current, self.limits = name, current, limits
    self.clock = Clock()
    self._pool = concurrent.futures.ThreadPoolExecutor(limits.threads, 'answers')
    self._busy = 0

  def close(self) -> None:
    self._pool.shutdown(wait=False, cancel_futures=True)

  async def body(self, request: fastapi.Request) -> Dict[str, Any]:
    """The JSON object that a request brings, in bounded time and space."""

    async def read():
      parts: List[bytes] = []
      size = 0
      async for part in request.stream():
        size += len(part)
        if size > self.limits.body_bytes:
          raise BadRequest(f'the body is longer than {self.limits.body_bytes} bytes.', 413)
        parts.append(part)
      return b''.join(parts)

    if int(request.headers.get('content-length') or 0) > self.limits.body_bytes:
      raise BadRequest(f'the body is longer than {self.limits.body_bytes} bytes.', 413)
    try:
      return rest.parsed(await asyncio.wait_for(read(), self.limits.seconds))
    except asyncio.TimeoutError as error:
      raise BadRequest('the body did not arrive in time.', 408) from error
    except ClientDisconnect as error:
      raise BadRequest('the body did not arrive.') from error

  async def ask(self, served: Served, signature: str, values: Mapping[str, Any]) -> Dict[str, List[Any]]:
    """One call of one version, in a thread.

    Args:
      served: the version.
      signature: name of one of its signatures.
      values: inputs by name, from JSON.
    """
    self._check(values)

    def work():
      inputs = rest.tensors(values, served.specs[signature])
      try:
        return rest.plain(served.ask(signature, inputs))
      except tf.errors.InvalidArgumentError as error:
        raise BadRequest(f'the inputs do not fit together: {str(error.message).splitlines()[0][:200]}') from error

    return await self.run(work)

  async def run(self, work: Callable[[], Any]) -> Any:
    """What `work` returns, in a thread and in bounded time, unless too many wait already."""
    if self._busy >= self.limits.waiting:
      raise BadRequest('too many requests wait for an answer.', 503)
    self._busy += 1
    future = asyncio.get_running_loop().run_in_executor(self._pool, work)
    # A thread cannot be stopped: its place is free only when it has ended.
    future.add_done_callback(self._done)
    try:
      return await asyncio.wait_for(asyncio.shield(future), self.limits.seconds)
    except asyncio.TimeoutError as error:
      raise BadRequest('the answer took too long.', 504) from error

  def _done(self, future) -> None:
    self._busy -= 1
    if not future.cancelled():
      future.exception()  # Nobody else may look at it after a timeout.

  def _check(self, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
      if isinstance(value, list) and len(value) > self.limits.batch:
        raise BadRequest(f'{name!r} has {len(value)} rows; a request may have {self.limits.batch}.')
    k = values.get('k')
    if isinstance(k, int) and not 0 <= k <= self.limits.k:
      raise BadRequest(f"'k' must be from 0 to {self.limits.k}.")

  def gauges(self) -> Dict[str, Any]:
    current = self.current
    return {'model_version': ('gauge', 'Version that is served.', current.served.number),
            'requests_waiting': ('gauge', 'Requests being answered, or waiting for it.', self._busy),
            'versions_loaded_total': ('counter', 'Versions taken up.', current.loads),
            'versions_failed_total': ('counter', 'Versions that could not be loaded.', current.failures)}


class _Json(responses.Response):
  """JSON with infinities, as TensorFlow Serving writes them."""
  media_type = 'application/json'

  def render(self, content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode('utf-8')


def make_app(service: Service, token: Optional[bytes] = None, page: Optional[Callable[[Optional[str]], str]] = None
             ) -> fastapi.FastAPI:
  """The application.

  Args:
    service: answers.
    token: what clients must send as a bearer token, or None; only /healthz does not ask for it.
    page: makes the HTML page of `/`, or None; takes the user of `/?user=ID`.
  """
  app = fastapi.FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
  app.add_middleware(_Guard, service=service, token=token)
  name = service.name

  @app.exception_handler(BadRequest)
  async def refuse(_, error: BadRequest):
    return _error(str(error), error.code, {'Retry-After': '1'} if error.code == 503 else None)

  @app.exception_handler(UserError)
  async def explain(_, error: UserError):
    return _error(str(error), 500)

  @app.exception_handler(404)
  @app.exception_handler(405)
  async def nowhere(request: fastapi.Request, error):
    return _error(f'there is no {request.method} {request.url.path}.', error.status_code)

  @app.exception_handler(Exception)
  async def broken(_, error: Exception):
    del error  # uvicorn prints it.
    return _error('the server has made a mistake.', 500)

  def served_of(model: str, version: Optional[str]) -> Served:
    served = service.current.served
    if model != name or version not in (None, str(served.number)):
      asked = f'Latest({model})' if version is None else f'Specific({model}, {version})'
      raise BadRequest(f'Servable not found for request: {asked}', 404)
    return served

  async def predict(request: fastapi.Request, model: str, version: Optional[str] = None):
    served = served_of(model, version)
    asked = await service.body(request)
    signature = asked.get('signature_name', 'serving_default')
    if not isinstance(signature, str) or signature not in served.specs:
      raise BadRequest(f'there is no signature {str(signature)[:80]!r}; choose from {", ".join(sorted(served.specs))}.')
    values = rest.columns(asked, served.specs[signature])
    return _answer(rest.response(asked, await service.ask(served, signature, values)), served)

  async def state(model: str, version: Optional[str] = None):
    served = served_of(model, version)
    return _answer({'model_version_status': [{
        'version': str(served.number), 'state': 'AVAILABLE', 'status': {'error_code': 'OK', 'error_message': ''}}]},
                   served)

  async def metadata(model: str, version: Optional[str] = None):
    served = served_of(model, version)
    return _answer(_metadata(name, served), served)

  for prefix in ('/v1/models/{model}', '/v1/models/{model}/versions/{version}'):
    app.add_api_route(f'{prefix}:predict', predict, methods=['POST'])
    app.add_api_route(f'{prefix}/metadata', metadata, methods=['GET'])
    app.add_api_route(prefix, state, methods=['GET'])

  @app.get('/recommend')
  async def recommend_one(request: fastapi.Request):
    query = request.query_params
    unknown = sorted(set(query) - {'user', 'items', 'k', 'exclude', 'allow'})
    if unknown or ('user' in query) == ('items' in query):
      raise BadRequest("give either 'user' or 'items', and 'k', 'exclude' and 'allow' if wanted"
                       + (f'; there is no {unknown[0]!r}.' if unknown else '.'))
    asked: Dict[str, Any] = {key: query.getlist(key) for key in ('exclude', 'allow', 'items') if key in query}
    if 'user' in query:
      asked['users'] = [query['user']]
    try:
      asked['k'] = int(query.get('k', '10'))
    except ValueError as error:
      raise BadRequest("'k' must be a whole number.") from error
    return await _recommend(service, asked)

  @app.post('/recommend')
  async def recommend_many(request: fastapi.Request):
    return await _recommend(service, await service.body(request))

  @app.get('/healthz')
  async def health():
    served = service.current.served
    return _answer({'status': 'ok', 'model': name, 'version': served.number, 'problem': service.current.problem},
                   served)

  @app.get('/metrics')
  async def metrics():
    return responses.PlainTextResponse(service.clock.text(service.gauges()), media_type='text/plain; version=0.0.4')

  if page is not None:
    @app.get('/')
    async def report(user: Optional[str] = None):
      # It reads files, draws, and loads models if a user is named.
      return responses.HTMLResponse(await service.run(lambda: page(user)))

  return app


class _Guard:
  """Asks for the token, and counts requests."""

  def __init__(self, app, service: Service, token: Optional[bytes]):
    self._app, self._service, self._token = app, service, token

  async def __call__(self, scope, receive, send):
    started, code = time.perf_counter(), 500

    async def sending(message):
      nonlocal code
      if message['type'] == 'http.response.start':
        code = message['status']
      await send(message)

    try:
      if self._token is not None and scope['path'] != '/healthz' and not self._authorised(scope):
        await _error('a bearer token is needed.', 401, {'WWW-Authenticate': 'Bearer'})(scope, receive, sending)
      else:
        await self._app(scope, receive, sending)
    finally:
      # The pattern, because there are few of these.
      path = getattr(scope.get('route'), 'path', 'other')
      self._service.clock.add(path, code, time.perf_counter() - started)

  def _authorised(self, scope) -> bool:
    kind, _, given = dict(scope['headers']).get(b'authorization', b'').partition(b' ')
    return kind.lower() == b'bearer' and hmac.compare_digest(given.strip(), self._token)


def _error(message: str, code: int, headers: Optional[Dict[str, str]] = None) -> responses.Response:
  return _Json({'error': message}, code, headers)


def _answer(content: Any, served: Served) -> responses.Response:
  return _Json(content, headers={'X-Model-Version': str(served.number)})


async def _recommend(service: Service, asked: Mapping[str, Any]) -> responses.Response:
  """Lists for users, or for somebody who has taken some items.

  Args:
    service: answers.
    asked: 'users' or 'items' (of one person), and 'k', 'exclude', 'allow' if wanted; lists of strings.
  """
  unknown = sorted(set(asked) - {'users', 'items', 'k', 'exclude', 'allow'})
  if unknown or ('users' in asked) == ('items' in asked):
    raise BadRequest("give either 'users' or 'items', and 'k', 'exclude' and 'allow' if wanted"
                     + (f'; there is no {unknown[0]!r}.' if unknown else '.'))
  for key in ('users', 'items', 'exclude', 'allow'):
    if not isinstance(asked.get(key, []), list):
      raise BadRequest(f'{key!r} must be a list of strings.')
  lists = {key: [asked[key]] for key in ('exclude', 'allow') if asked.get(key)}
  side = {'user_id': asked['users']} if 'users' in asked else {'item_id': [asked['items']]}
  signature = ('recommend' if lists else 'serving_default') if 'users' in asked else (
      'recommend_by_items' if lists else 'by_items')
  served = service.current.served
  found = await service.ask(served, signature, {**side, **lists, 'k': asked.get('k', 10)})
  rows = [{'known': known, 'items': [{'item': item, 'score': score} for item, score in zip(items, scores) if item]}
          for items, scores, known in zip(found['item_id'], found['score'], found['known'])]
  if 'users' in asked:
    rows = [{'user': user, **row} for user, row in zip(asked['users'], rows)]
  return _answer({'model': service.name, 'version': served.number, 'recommendations': rows}, served)


def _metadata(name: str, served: Served) -> Dict[str, Any]:
  """Inputs of the signatures, in TensorFlow Serving's form."""
  signatures = {signature: {'inputs': {key: {
      'dtype': types_pb2.DataType.Name(spec.dtype.as_datatype_enum),
      'tensor_shape': {'dim': [{'size': str(size or -1)} for size in spec.shape], 'unknown_rank': False}}
                                       for key, spec in specs.items()}} for signature, specs in served.specs.items()}
  return {'model_spec': {'name': name, 'signature_name': '', 'version': str(served.number)},
          'metadata': {'signature_def': {'signature_def': signatures}}}


def listen(host: str, port: int) -> socket.socket:
  """A socket of an address; port 0 takes a free one."""
  try:
    place = socket.create_server((host, port), family=socket.AF_INET6 if ':' in host else socket.AF_INET)
    # Otherwise every answer, whose head and body are sent one after the other, waits 40 ms for the client's receipt.
    place.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return place
  except (OSError, OverflowError) as error:
    raise UserError(f'cannot listen at --host={host} --port={port}: {error}; choose another one.') from error


def make_server(app: fastapi.FastAPI, limits: Limits = Limits()) -> uvicorn.Server:
  """A server that answers, when it is told to stop, what it has been asked already."""
  return uvicorn.Server(uvicorn.Config(
      app, log_level='warning', access_log=False, lifespan='off', server_header=False,
      limit_concurrency=4 * limits.waiting, timeout_keep_alive=30, timeout_graceful_shutdown=int(limits.seconds) + 1))
