"""Selects legacy Keras before any test module imports TensorFlow; begins with the longest files.

`pytest -m fault --faults=docs/reliability.md` (make reliability) writes the table of faults into that page.
"""
import collections
import pathlib
import sys

import pytest

import graphsane_tf  # pylint: disable=unused-import
import graphsane_tf.testing.plugin  # pylint: disable=unused-import  # Assertions in its checks are explained.
from tests import forked
from tests import short_exports as exports

# The benchmark is a package beside the mains that use it.
sys.path.append(str(pathlib.Path(__file__).parents[1] / 'experiments'))
_LONG = ('test_run_incremental.py', 'test_extending.py', 'test_leaks.py', 'test_incremental.py', 'test_methods.py',
         'test_notebooks.py', 'test_tuning.py')
_BEGIN, _END = '<!-- faults: written by `make reliability` -->', '<!-- end of faults -->'


@pytest.fixture(name='forked', scope='session')
def forked_fixture(tmp_path_factory):
  """Starts commands without waiting for the import of TensorFlow."""
  server = forked.Server(tmp_path_factory.mktemp('forked'))
  yield server
  server.close()


@pytest.fixture(name='short_exports', scope='module')
def short_exports_fixture():
  with exports.short_exports():
    yield


def pytest_addoption(parser):
  parser.addoption('--faults', help='Page whose table of faults is written anew.')


def pytest_collection_modifyitems(items):
  """Puts files with whole runs first: one that begins last would keep a single core busy."""
  items.sort(key=lambda item: _LONG.index(item.path.name) if item.path.name in _LONG else len(_LONG))
  for item in items:
    for marker in item.iter_markers('fault'):
      item.user_properties.append(('fault', marker.args[0]))


@pytest.fixture(autouse=True)
def traces_of_changed_code(request):
  """Traces are kept from test to test, but not those of a class that a test changes."""
  changes = 'monkeypatch' in request.fixturenames and 'graphsane_tf.traced' in sys.modules
  if changes:
    sys.modules['graphsane_tf.traced'].forget()
  yield
  if changes:
    sys.modules['graphsane_tf.traced'].forget()


class _Faults:
  """Counts the tests of each kind of fault by outcome."""

  def __init__(self):
    self._outcomes = collections.defaultdict(dict)

  def pytest_runtest_logreport(self, report):
    for name, kind in report.user_properties:
      if name == 'fault' and (report.when == 'call' or report.outcome != 'passed'):
        self._outcomes[kind, report.nodeid.split('[')[0]][report.nodeid] = report.outcome

  def lines(self):
    """The table in Markdown, one line a kind and test."""
    yield '| fault | tried | result | test |'
    yield '|---|---|---|---|'
    for (kind, test), outcomes in sorted(self._outcomes.items()):
      counts = collections.Counter(outcomes.values())
      result = ', '.join(f'{number} {outcome}' for outcome, number in sorted(counts.items()))
      yield f'| {kind} | {len(outcomes)} | {result} | `{test}` |'
    yield ''
    yield f'{sum(map(len, self._outcomes.values())):,} faults tried.'


def pytest_configure(config):
  # Workers of pytest-xdist send their reports to the controller, which has all of them.
  if config.getoption('--faults') and not hasattr(config, 'workerinput'):
    config.pluginmanager.register(_Faults(), 'faults')


def pytest_sessionfinish(session):
  faults = session.config.pluginmanager.get_plugin('faults')
  if faults is not None:
    page = pathlib.Path(session.config.getoption('--faults'))
    before, rest = page.read_text('utf-8').split(_BEGIN)
    after = rest.split(_END)[1]
    page.write_text('\n'.join([before + _BEGIN, '', *faults.lines(), '', _END + after]), 'utf-8')
