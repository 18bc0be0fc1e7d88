"""The example of docs/extending.md, as it stands there."""
import pathlib
import re

import numpy as np
import pytest

from graphsane_tf import config as config_lib
from graphsane_tf import distillation
from graphsane_tf.training import incremental
from ml_collections import config_dict
from tests import logs
from tests.distillation import oracles

_GUIDE = pathlib.Path(__file__).parents[2] / 'docs' / 'extending.md'


@pytest.fixture(name='guide')
def _guide(monkeypatch):
  """Runs the guide's three pieces of code: the file, the configuration, the registry line."""
  chapter = _GUIDE.read_text().split('## Add your own distiller')[1].split('\n## ')[0]
  file, section, line = re.findall(r'```python\n(.*?)```', chapter, re.S)
  names = {'__name__': 'graphsane_tf.distillation.cosine'}
  exec(compile(file, 'cosine.py', 'exec'), names)  # pylint: disable=exec-used
  plain = config_lib.default_config

  def with_section():
    c = plain()
    exec(section, {'c': c, 'config_dict': config_dict})  # pylint: disable=exec-used
    return c

  for module in (config_lib, oracles, logs):
    monkeypatch.setattr(module, 'default_config', with_section)
  monkeypatch.setattr(distillation, 'REGISTRY', dict(distillation.REGISTRY))
  exec(line, {**names, 'REGISTRY': distillation.REGISTRY})  # pylint: disable=exec-used
  return distillation.REGISTRY['cosine']


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
