"""Serves a store over HTTP."""
import importlib.util
import ipaddress

from absl import flags

from graphsane_tf import cli
from graphsane_tf.commands import stores
from graphsane_tf.errors import UserError

HELP = "Serves a store over HTTP, with TensorFlow Serving's REST paths, and takes up new versions by itself."
EXAMPLES = ('graphsane serve --store=shop', "curl 'http://127.0.0.1:8501/recommend?user=u00012&k=10'")
AFTER = ('Paths: /recommend, /v1/models/NAME:predict, /v1/models/NAME, /healthz, /metrics, and / for the page of the '
         'store. Only this machine can connect unless --host says otherwise; put a proxy with TLS in front of it then.')


def define():
  stores.define_store()
  flags.DEFINE_string('host', '127.0.0.1', 'Address to listen at; 0.0.0.0 is every one.')
  flags.DEFINE_integer('port', 8501, 'Port to listen at; 0 takes a free one.', lower_bound=0, upper_bound=65535)
  flags.DEFINE_string('token_file', None, 'File with a word that clients must send as bearer token.')
  flags.DEFINE_string('ranking', 'exact', 'exact, or approximate by an index of the items, for large catalogues.')
  flags.DEFINE_float('poll_seconds', 1., 'Seconds between two looks for a new version.', lower_bound=.01)
  flags.DEFINE_integer('max_body', 4 << 20, 'Largest body of a request, in bytes.', lower_bound=1)
  flags.DEFINE_integer('max_batch', 4096, 'Most users or items of a request.', lower_bound=1)
  flags.DEFINE_integer('max_k', 1000, 'Longest list.', lower_bound=1)
  flags.DEFINE_float('timeout', 30., 'Seconds until a request is given up.', lower_bound=.01)
  flags.DEFINE_integer('max_waiting', 128, 'Most requests at a time; others are sent away.', lower_bound=1)
  flags.DEFINE_integer('threads', 4, 'Requests that are answered at once.', lower_bound=1)
  return {'flags': ['store', 'host', 'port', 'token_file', 'ranking', 'poll_seconds'],
          'limits': ['max_body', 'max_batch', 'max_k', 'timeout', 'max_waiting', 'threads']}


def main():
  values = flags.FLAGS
  path = stores.folder()
  for library in ('fastapi', 'uvicorn'):
    if importlib.util.find_spec(library) is None:
      raise UserError(f"graphsane serve needs {library}: pip install 'graphsane_tf[serve]'.")
  cli.load_tensorflow_quietly()
  from graphsane_tf.reporting import store_page  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs.store import Store  # pylint: disable=g-import-not-at-top
  from graphsane_tf.serving import approximate, http, models  # pylint: disable=g-import-not-at-top
  approximate.check(values.ranking)
  token = http.read_token(values.token_file) if values.token_file else None
  store = Store(path)
  current = models.Current(store.versions, stores.say, values.ranking)
  limits = http.Limits(values.max_body, values.max_batch, values.max_k, values.timeout, values.max_waiting,
                       values.threads)
  service = http.Service(store.name, current, limits)
  if token is None and not _is_loopback(values.host):
    stores.say(f'note: whoever reaches {values.host} may ask: give a --token_file, or listen at 127.0.0.1.')
  app = http.make_app(service, token, lambda user: store_page.page(Store(path), user))
  with http.listen(values.host, values.port) as place:
    current.follow(values.poll_seconds)
    host = f'[{values.host}]' if ':' in values.host else values.host
    stores.say(f'http://{host}:{place.getsockname()[1]} is ready')
    try:
      http.make_server(app, limits).run(sockets=[place])
    except KeyboardInterrupt:
      pass  # Whoever stops a server has not stopped it half way.
    finally:
      current.close()
      service.close()
  stores.say('stopped.')


def _is_loopback(host: str) -> bool:
  try:
    return ipaddress.ip_address(host).is_loopback
  except ValueError:
    return host == 'localhost'
