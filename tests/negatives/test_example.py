"""The sampler of docs/extending.md is extracted, passes the behaviour checks and trains."""
import numpy as np
import pytest

from graphsane_tf import negatives
from graphsane_tf.runs import incremental
from tests import logs
from tests.guide import add_example
from tests.negatives import checks
from tests.negatives.problems import small


@pytest.fixture(name='popular')
def _popular(monkeypatch, tmp_path_factory):
  return add_example('Add your own sampler in one file', negatives, monkeypatch,
                     tmp_path_factory.mktemp('guide'))


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
