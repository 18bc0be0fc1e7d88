"""Sections of the benchmark about serving: the SavedModel and HTTP against the bare product and top-k.

  python -m graphsane_benchmark.serving FOLDER
"""
import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Sequence

import numpy as np
import scipy.sparse
import tensorflow as tf

from graphsane_benchmark import processes
from graphsane_benchmark.figures import Figure, compare
from graphsane_tf.configs import tiny
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.graph import csr
from graphsane_tf.random import host_generator
from graphsane_tf.runs import incremental
from graphsane_tf.serving import export

_USERS, _DIMENSION, _SEEN, _WEIGHTS, _K = 2000, 128, 50, 100, 20
_BATCHES = (1, 256)
_CLIENTS = 4
# Seconds until a request is given up: a machine that is shared may be slow.
_PATIENCE = 900.


def _arrays(num_items: int) -> Dict[str, Any]:
  """Arguments of `export_block`."""
  rng = host_generator(num_items)
  # Different items of a user come from different stretches of the catalogue.
  stretch = num_items // _SEEN
  seen = csr.Csr(np.arange(_USERS + 1) * _SEEN, (rng.integers(stretch, size=(_USERS, _SEEN))
                                                 + np.arange(_SEEN) * stretch).ravel().astype(np.int32), num_items)
  return {'user_vectors': rng.standard_normal((_USERS, _DIMENSION), np.float32),
          'item_vectors': rng.standard_normal((num_items, _DIMENSION), np.float32),
          'user_ids': [f'user-{number}' for number in range(_USERS)],
          'item_ids': [f'item-{number}' for number in range(num_items)],
          'seen': seen, 'popularity': np.ones(num_items)}


def _memory(seen: csr.Csr) -> Dict[str, Any]:
  """Further arguments for a memory: profiles of the items seen, 100 weights an item."""
  num_items = seen.num_columns
  rng = host_generator(num_items, 1)
  entries = num_items * _WEIGHTS
  weights = scipy.sparse.csr_matrix(
      (rng.standard_normal(entries, np.float32), rng.integers(num_items, size=entries, dtype=np.int32),
       np.arange(num_items + 1) * _WEIGHTS), shape=(num_items, num_items))
  profile = scipy.sparse.csr_matrix((rng.random(_USERS * _SEEN, np.float32), seen.indices, seen.indptr),
                                    shape=(_USERS, num_items))
  return {'profile': profile, 'weights': weights}


def _users(batch: int) -> List[str]:
  return [f'user-{number}' for number in range(batch)]


def _latencies(action: Callable[[], Any], seconds: float) -> np.ndarray:
  """Times of single calls."""
  times, end = [], time.perf_counter() + seconds
  while not times or time.perf_counter() < end:
    began = time.perf_counter()
    action()
    times.append(time.perf_counter() - began)
  return np.array(times)


def _shown(times: np.ndarray, **figure) -> Iterator[Figure]:
  """The figures of single calls: p50, p99."""
  name = figure.pop('name')
  for share in (50, 99):
    yield Figure(name=f'{name}, p{share}', ours=float(np.percentile(times, share)), **figure)


def serving_section(num_items: int, repeats: int, seconds: float = 3.) -> Iterator[Figure]:
  """Latency and throughput with a catalogue of some size.

  Args:
    num_items: size of the catalogue.
    repeats: rounds of each comparison.
    seconds: how long single calls are timed.
  """
  common = {'section': 'serving', 'shape': f'{num_items:,} items'}
  arrays = _arrays(num_items)
  with tempfile.TemporaryDirectory() as folder:
    paths = {name: pathlib.Path(folder) / name for name in ('vectors', 'memory')}
    export.export_block(paths['vectors'], **arrays)
    export.export_block(paths['memory'], **arrays, **_memory(arrays['seen']))
    yield from _called(paths, arrays, repeats, seconds, common)
    # The server has the vectors once more.
    yield from _over_http(paths['vectors'], seconds, common)


def sampler_section(log: Interactions, repeats: int) -> Iterator[Figure]:
  """Latency of a model that was trained with SANE's reservoir, against one that was not.

  Args:
    log: what both are trained on, for one epoch a block.
    repeats: rounds of each comparison.
  """
  asked: Dict[str, Any] = {}
  with tempfile.TemporaryDirectory() as folder:
    for sampler in ('sane', 'uniform'):
      config = tiny.get_config()
      config.update_from_flattened_dict({'sampler': sampler, 'train.epochs': 1, 'train.base_epochs': 1})
      place = pathlib.Path(folder) / sampler
      incremental.run(config, log, place, blocks=[0, 1], log=lambda line: None)
      asked[sampler] = tf.saved_model.load(str(place / 'export' / '1')).signatures['serving_default']
    for batch in _BATCHES:
      users, k = tf.constant(np.resize(log.user_ids, batch).astype(str)), tf.constant(_K)
      calls = [lambda ask=asked[sampler]: ask(user_id=users, k=k) for sampler in ('sane', 'uniform')]
      yield compare(*calls, repeats, section='sampler_latency', shape=log.name, turns=20,
                    name=f'SavedModel trained with SANE against uniform negatives, batch {batch}')


def _called(paths: Dict[str, pathlib.Path], arrays: Dict[str, Any], repeats: int, seconds: float,
            common: Dict[str, Any]) -> Iterator[Figure]:
  """The SavedModels of some paths, called in this process."""
  loaded = {name: tf.saved_model.load(str(path)) for name, path in paths.items()}
  items, k = tf.Variable(arrays.pop('item_vectors')), tf.constant(_K)

  @tf.function(reduce_retracing=True)
  def product_and_top(queries, k):
    return tf.math.top_k(tf.matmul(queries, items, transpose_b=True), k)

  for batch in _BATCHES:
    users, queries = tf.constant(_users(batch)), tf.constant(arrays['user_vectors'][:batch])
    asks = {name: lambda model=model: model.signatures['serving_default'](user_id=users, k=k)
            for name, model in loaded.items()}
    bare = lambda: product_and_top(queries, k)
    yield compare(asks['vectors'], bare, repeats, target=('<=', 1.5),
                  name=f'SavedModel against product and top-k, batch {batch}', **common)
    note = f'profiles of {_SEEN} items, {_WEIGHTS} weights an item'
    yield compare(asks['memory'], bare, repeats, target=('<=', 2.),
                  name=f'SavedModel with a memory against product and top-k, batch {batch}', note=note, **common)
    yield compare(asks['memory'], asks['vectors'], repeats,
                  name=f'SavedModel with a memory against without, batch {batch}', note=note, **common)
    yield from _shown(_latencies(asks['vectors'], seconds), name=f'SavedModel, batch {batch}', **common)
    yield _throughput([asks['vectors']] * _CLIENTS, seconds, f'SavedModel, batch {batch}, {_CLIENTS} callers', common)


def _over_http(path: pathlib.Path, seconds: float, common: Dict[str, Any]) -> Iterator[Figure]:
  """Latency of one client, and requests of four at once, with a server in another process."""
  command, settings = processes.child_command('graphsane_benchmark.serving', str(path))
  with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True) as server:
    try:
      assert server.stdout is not None
      port = int(server.stdout.readline())
      for batch in _BATCHES:
        body = json.dumps({'inputs': {'user_id': _users(batch), 'k': _K}})

        def client():
          connection = http.client.HTTPConnection('127.0.0.1', port, timeout=_PATIENCE)

          def ask():
            connection.request('POST', '/v1/models/bench:predict', body)
            response = connection.getresponse()
            response.read()
            if response.status != 200:
              raise RuntimeError(f'the server answered {response.status}')

          return ask

        ask = client()
        ask()
        yield from _shown(_latencies(ask, seconds), name=f'HTTP, batch {batch}', **common)
        yield _throughput([client() for _ in range(_CLIENTS)], seconds, f'HTTP, batch {batch}, {_CLIENTS} clients',
                          common)
    finally:
      server.terminate()


def _throughput(actions: Sequence[Callable[[], Any]], seconds: float, name: str, common: Dict[str, Any]) -> Figure:
  """Calls a second of several threads, each with its action, until the last one has ended."""
  calls: List[int] = []
  threads = [threading.Thread(target=lambda ask=ask: calls.append(len(_latencies(ask, seconds)))) for ask in actions]
  began = time.perf_counter()
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  if len(calls) < len(actions):
    raise RuntimeError('a client has failed')
  return Figure(name=name, unit='requests/s', ours=sum(calls) / (time.perf_counter() - began), **common)


class _OneVersion:
  """A folder as a store's only version."""

  def __init__(self, path):
    self._path = pathlib.Path(path)

  def current(self):
    return 1

  def path(self, number):
    del number
    return self._path

  def check(self, number):
    del number


def _serve(path: str) -> None:
  """Serves a SavedModel on a free port, which it prints."""
  from graphsane_tf.serving import http as serving, models  # pylint: disable=g-import-not-at-top
  limits = serving.Limits(seconds=_PATIENCE)
  service = serving.Service('bench', models.Current(_OneVersion(path)), limits)
  with serving.listen('127.0.0.1', 0) as place:
    print(place.getsockname()[1], flush=True)
    serving.make_server(serving.make_app(service), limits).run(sockets=[place])


if __name__ == '__main__':
  _serve(sys.argv[1])
