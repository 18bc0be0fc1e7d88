"""Selects legacy Keras before any test module imports TensorFlow; begins with the longest files."""
import graphsane_tf  # pylint: disable=unused-import

_LONG = ('test_run_incremental.py', 'test_leaks.py', 'test_incremental.py', 'test_methods.py',
         'test_notebooks.py', 'test_tuning.py')


def pytest_collection_modifyitems(items):
  """Puts files with whole runs first: one that begins last would keep a single core busy."""
  items.sort(key=lambda item: _LONG.index(item.path.name) if item.path.name in _LONG else len(_LONG))
