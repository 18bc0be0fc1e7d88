"""The example of docs/extending.md, as it stands there."""
import numpy as np
import pytest

from graphsane_tf import distillation
from graphsane_tf.runs import incremental
from tests import logs
from tests.distillation import oracles
from tests.guide import add_example


@pytest.fixture(name='guide')
def _guide(monkeypatch, tmp_path_factory):
  return add_example('Add your own distiller in one file', distillation, monkeypatch,
                     tmp_path_factory.mktemp('guide'))


def test_the_example_computes_what_the_guide_says(guide):
  case = oracles.Case(oracles.config(**{'cosine.weight': 2.}))
  changes = []
  for user, item in oracles.NEW:
    if user < 4 and item < 5:
      now, before = (rows['user'][user] @ rows['item'][item]
                     / np.linalg.norm(rows['user'][user]) / np.linalg.norm(rows['item'][item])
                     for rows in (case.rows, case.old_rows))
      changes.append((now - before) ** 2)
  assert case.losses(guide) == {'cosine': pytest.approx(2. * np.mean(changes), rel=1e-5)}


def test_the_example_trains(guide, tmp_path):
  config = logs.tiny_config(kd='cosine', backbone='lightgcn', blocks__num_incremental=2,
                            train__base_epochs=1, train__epochs=1)
  incremental.run(config, logs.random_log(), tmp_path, log=lambda _: None)
  assert '"cosine": ' in (tmp_path / 'metrics.jsonl').read_text()
