"""The sampler of docs/extending.md is extracted, passes the behaviour checks and trains."""
import pathlib
import re
import types

from ml_collections import config_dict
import numpy as np
import pytest

from graphsane_tf import config as config_lib
from graphsane_tf import negatives
from graphsane_tf.training import incremental
from tests import logs
from tests.negatives import checks
from tests.negatives.problems import small

DOCS = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'extending.md'


@pytest.fixture(name='popular')
def _popular(monkeypatch):
  """Adds the example as its text says: a file, a section of the configuration, a registry line."""
  section = DOCS.read_text().split('## Add your own sampler in one file')[1].split('\n## ')[0]
  source, fields, line = re.findall(r'```python\n(.*?)```', section, re.DOTALL)
  module = types.ModuleType('popular')
  exec(compile(source, 'popular.py', 'exec'), module.__dict__)  # pylint: disable=exec-used
  plain = config_lib.default_config

  def extended():
    c = plain()
    exec(fields, {'c': c, 'config_dict': config_dict})  # pylint: disable=exec-used
    return c

  monkeypatch.setattr(config_lib, 'default_config', extended)
  monkeypatch.setattr(logs, 'default_config', extended)
  monkeypatch.setattr(negatives, 'REGISTRY', dict(negatives.REGISTRY))
  exec(line, {'REGISTRY': negatives.REGISTRY, **module.__dict__})  # pylint: disable=exec-used
  return negatives.REGISTRY['popular']


def test_behaviour(popular, tmp_path):
  problem = small()
  checks.check_draws(popular, problem)
  checks.check_loss(popular, problem)
  for case in problem.cases:
    checks.check_distribution(popular, problem, case)
  checks.check_reproducible(popular, problem)
  checks.check_checkpoint(popular, problem, tmp_path)
  checks.check_memory(popular, problem)


def test_trains(popular, tmp_path):
  del popular
  config = logs.tiny_config(sampler='popular', blocks__num_incremental=2)
  results = incremental.run(config, logs.random_log(), tmp_path / 'run', log=lambda line: None)
  assert np.isfinite(results['average']['recall@20'])
  assert '"popular"' in (tmp_path / 'run' / 'metrics.jsonl').read_text()
