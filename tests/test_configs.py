"""Every shipped configuration has the default's fields, and can be resolved."""
import importlib.util
import pathlib

import pytest

from graphsane_tf import config as config_lib
from graphsane_tf.data import SOURCES
from graphsane_tf.runs.workdir import flatten

FOLDER = pathlib.Path(__file__).resolve().parents[1] / 'configs'


def load(name):
  spec = importlib.util.spec_from_file_location(name, FOLDER / f'{name}.py')
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


@pytest.mark.parametrize('name', ['default', 'paper', 'released', 'strong', 'tiny'])
def test_named_sets(name):
  config = load(name).get_config()
  assert flatten(config.to_dict()).keys() == flatten(
      config_lib.default_config().to_dict()).keys()
  config_lib.resolved(config)


def test_every_data_set_has_a_configuration():
  module = load('datasets')
  for name in SOURCES:
    if not SOURCES[name].paths():
      config_lib.resolved(module.get_config(name))


def test_the_papers_values():
  """The printed hyper-parameter table."""
  c = config_lib.resolved(load('paper').get_config())
  assert (c.train.base_min_epochs, c.train.min_epochs, c.train.epochs, c.train.patience) == (
      10, 3, 15, 2)
  assert (c.train.batch_size, c.train.learning_rate, c.train.base_learning_rate) == (64, 5e-4, 5e-4)
  # "N/A": early stopping alone ends the base block.
  assert c.train.base_epochs == 1000 and c.model.mgccf_layers == 2
  assert (c.sane.refresh_epochs, c.sane.size, c.sane.start_rank) == (2, 100, 1)
  assert (c.model.dropout, c.model.embedding_dim, c.clustering.num_clusters) == (.2, 128, 10)


def test_the_released_values():
  c = config_lib.resolved(load('released').get_config())
  assert (c.train.batch_size, c.train.learning_rate, c.train.base_learning_rate) == (5000, 5e-4, 1e-3)
  # Sums over a batch there, means over its pairs here.
  weights = [c.sgct.weight, c.lwckd.layer0_weight, c.lwckd.layer1_weight, c.lwckd.final_weight]
  assert [weight * 5000 for weight in weights] == pytest.approx([100, 100, 10, 1])
  assert [c.graphsail.local_weight * 5000, c.graphsail.global_weight * 5000] == pytest.approx([1e4, 1e4])
  assert (c.graphsail.self_weight, c.replay_options.exponent) == (100, 3)
  assert not c.lsp.teacher_first and not c.graphsail.teacher_first
  assert (c.evaluation.map_denominator, c.sane.start_rank, c.sane.refresh_epochs) == ('truncated', 201, 1)


def test_minimum_above_maximum_is_lowered():
  config = config_lib.default_config()
  config.train.epochs, config.train.base_epochs = 2, 1
  resolved = config_lib.resolved(config)
  assert (resolved.train.min_epochs, resolved.train.base_min_epochs) == (2, 1)
