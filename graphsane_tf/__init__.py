"""graphsane_tf: keep a graph recommender up to date as new interactions arrive.

Importing the package selects legacy Keras (`tf-keras`), which TensorFlow Recommenders needs. That
choice is read once, when TensorFlow is first imported, so this package has to come first.
"""
import os
import sys


def _select_legacy_keras() -> None:
  """Sets TF_USE_LEGACY_KERAS, or fails with one sentence when it is too late to do so."""
  wanted = os.environ.get('TF_USE_LEGACY_KERAS', '').lower() in ('1', 'true')
  if 'tensorflow' in sys.modules and not wanted:
    raise ImportError(
        'graphsane_tf needs legacy Keras, but TensorFlow was imported first with Keras 3: import '
        'graphsane_tf before tensorflow, or set TF_USE_LEGACY_KERAS=1 and restart Python.')
  os.environ['TF_USE_LEGACY_KERAS'] = '1'
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')


def __getattr__(name: str):
  """`graphsane_tf.Recommender`, which brings TensorFlow, is imported when it is asked for."""
  if name == 'Recommender':
    from graphsane_tf.recommender import Recommender  # pylint: disable=import-outside-toplevel
    return Recommender
  raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


_select_legacy_keras()

__version__ = '0.2.0'
