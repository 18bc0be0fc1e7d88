"""SavedModels with one signature of eight and no backbone: tracing them is half of a small run, and few tests ask."""
import contextlib

import pytest

_OTHERS = ('recommend', 'by_items', 'recommend_by_items', 'similar_items', 'embed_users', 'embed_items', 'score')


@contextlib.contextmanager
def short_exports():
  from graphsane_tf.serving import export, server  # pylint: disable=g-import-not-at-top
  short = type('Short', (server.Server,), {
      **dict.fromkeys(_OTHERS), 'signatures': lambda self: {'serving_default': self.serve}})
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(export, 'Server', short)
    patch.setattr(export, 'Trainable', lambda *_: None)
    yield
