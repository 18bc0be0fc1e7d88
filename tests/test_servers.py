"""Tables on parameter servers: two workers and two servers on loopback, as processes of their own."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.errors import UserError
from graphsane_tf.graph import views
from graphsane_tf.training import servers
from tests import test_multiworker

ROOT = pathlib.Path(__file__).resolve().parents[1]
_JOBS = {'chief': 1, 'worker': 2, 'ps': 2}


def _config(cluster, kind, index):
  return json.dumps({'cluster': cluster, 'task': {'type': kind, 'index': index}})


def _cluster(ports):
  ports = iter(ports)
  return {job: [f'127.0.0.1:{next(ports)}' for _ in range(count)] for job, count in _JOBS.items()}


def test_the_cluster_has_all_jobs():
  cluster = _cluster(range(1000, 1005))
  known = servers.cluster_of({'TF_CONFIG': _config(cluster, 'ps', 1)})
  assert (known.task_type, known.task_id, known.cluster_spec().num_tasks('worker')) == ('ps', 1, 2)
  for wrong in ('', '[]', '{', _config(cluster, 'ps', 2), _config({**cluster, 'ps': []}, 'worker', 0),
                _config({'worker': ['127.0.0.1:1000']}, 'worker', 0)):
    with pytest.raises(UserError, match='TF_CONFIG'):
      servers.cluster_of({'TF_CONFIG': wrong})


def test_a_table_on_servers_is_not_read_whole():
  """A view finds out whose rows it needs, and takes those alone."""

  class Sharded:
    """Like a `ShardedVariable`."""
    variables = ()

  assert views.Table(tf.zeros([2, 2])).at_hand and not views.Table(Sharded()).at_hand


@pytest.mark.slow
def test_training_with_tables_on_two_servers(tmp_path):
  cluster = _cluster(test_multiworker._ports(5))
  command = [sys.executable, str(ROOT / 'experiments' / 'parameter_servers.py'), '--drift_size=small',
             '--config=tiny', '--backbone=lightgcn', '--base_epochs=4', '--min_shard_kilobytes=4', '--output=out']

  def start(kind, index, out):
    return subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=subprocess.DEVNULL, text=True,
                            env={**os.environ, 'TF_CONFIG': _config(cluster, kind, index)})

  helpers = [start(kind, index, subprocess.DEVNULL) for kind in ('worker', 'ps') for index in range(2)]
  try:
    said, _ = start('chief', 0, subprocess.PIPE).communicate(timeout=3600)
  finally:
    for helper in helpers:
      helper.kill()
      helper.wait()
  assert '4 parts of variables on 2 servers' in said and '4 of 4 gradients are sparse rows' in said, said
  losses = [float(line.split('loss ')[1].split()[0]) for line in said.splitlines() if line.startswith('epoch')]
  assert len(losses) == 4 and losses[-1] < losses[0] - .02, losses
  reader = tf.train.load_checkpoint(str(tmp_path / 'out' / 'backbone'))
  shapes = reader.get_variable_to_shape_map()
  tables = [name for name in shapes if 'user_table' in name]
  assert [shapes[name] for name in tables] == [[228, 16]]
  assert np.isfinite(reader.get_tensor(tables[0])).all()
