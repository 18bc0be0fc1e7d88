"""The memory of a model is known before it is made."""
import pytest
import tensorflow as tf

from graphsane_tf import backbones
from graphsane_tf.config import default_config, resolved
from graphsane_tf.blocks.stream import Block
from graphsane_tf.errors import UserError
from graphsane_tf.runs import capacity as memory


def _config(name, size):
  config = default_config()
  config.backbone, config.model.embedding_dim = name, size
  return resolved(config)


@pytest.mark.parametrize('name', list(backbones.REGISTRY))
def test_weights_are_counted_without_making_them(name):
  config = _config(name, 6)
  model = backbones.REGISTRY[name](11, 7, config.model, (0, 0))
  assert memory.num_weights(config, 11, 7) == sum(
      tf.size(variable).numpy() for variable in model.trainable_variables)


def test_by_hand():
  """LightGCN has its tables alone: 12 bytes for each of their values, with Adam's moments."""
  assert memory.num_weights(_config('lightgcn', 10**6), 3, 4) == 7 * 10**6


@pytest.mark.fault('model larger than memory')
def test_a_model_that_cannot_fit_is_refused(monkeypatch):
  nothing = slice(0, 0)
  block = Block(3, nothing, nothing, nothing, 2**20, 2**20)
  config = _config('lightgcn', 1024)  # 2**31 values: 24 GiB.
  monkeypatch.setattr(memory, 'total_bytes', lambda: 24 << 30)
  memory.check(config, block)
  monkeypatch.setattr(memory, 'total_bytes', lambda: (24 << 30) - 1)
  with pytest.raises(UserError, match='--embedding_dim=1024: .* takes at least 24 GiB .* has 24'):
    memory.check(config, block)


@pytest.mark.parametrize('text,expected', [
    ('1000\n', 1000), ('max\n', 4096 * 500), ('9999999999\n', 4096 * 500), (None, 4096 * 500)])
def test_the_limit_of_a_container_counts(monkeypatch, text, expected):
  def read_text(path, encoding):
    del path, encoding
    if text is None:
      raise FileNotFoundError
    return text

  monkeypatch.setattr(memory.pathlib.Path, 'read_text', read_text)
  monkeypatch.setattr(memory.os, 'sysconf', {'SC_PHYS_PAGES': 500, 'SC_PAGE_SIZE': 4096}.get)
  assert memory.total_bytes() == expected
