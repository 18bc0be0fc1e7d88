"""For pytest: --plugin=FILE.py names files whose methods `graphsane_tf.testing` tests."""
import pytest

from graphsane_tf import cli, registry
from graphsane_tf.errors import UserError

# Assertions in the checks say what was compared.
pytest.register_assert_rewrite(*(f'graphsane_tf.testing.{name}' for name in (
    'backbones', 'clusterings', 'distillers', 'peers', 'replays', 'runs', 'samplers')))


def pytest_addoption(parser):
  parser.addoption('--plugin', action='append', default=[], metavar='FILE.py',
                   help='Python file that registers methods; may be repeated.')


def pytest_configure(config):
  try:
    with cli.importing():
      registry.load_entry_points()
      for path in config.getoption('--plugin'):
        registry.load_plugin(path)
  except UserError as error:
    raise pytest.UsageError(str(error)) from error
  if not _own():
    raise pytest.UsageError('there is no method to test: give a file that registers one with --plugin=FILE.py.')


def pytest_report_header():
  return f'tested: {", ".join(_own())}'


def _own():
  """'sampler mypop' and so on."""
  return [f'{kind} {name}' for kind, names in registry.REGISTRIES.items() for name in names.own()]
