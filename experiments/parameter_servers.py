"""Trains a base block whose tables lie on parameter servers, by TensorFlow's ParameterServerStrategy.

  TF_CONFIG='{"cluster": {"chief": ["127.0.0.1:3000"], "worker": ["127.0.0.1:3001", "127.0.0.1:3002"],
              "ps": ["127.0.0.1:3003", "127.0.0.1:3004"]}, "task": {"type": "chief", "index": 0}}' \
      python experiments/parameter_servers.py --dataset=drift --backbone=lightgcn --output=runs/servers

Each task of the cluster runs the same command with its own task. docs/distributed.md has the limits.
"""
import os
import pathlib
import sys

from graphsane_tf import cli

from absl import flags

from graphsane_tf.data import flags as data_flags
from graphsane_tf.errors import UserError


def define():
  cli.define_config()
  data_flags.define()
  cli.define_method_flags()
  flags.DEFINE_string('output', 'runs/servers', 'Folder of the checkpoint.')
  flags.DEFINE_integer('min_shard_kilobytes', 256, 'Tables are cut into parts of at least this size.', lower_bound=1)


def main():
  values = flags.FLAGS
  config = cli.config_from_flags()
  with cli.importing():
    from graphsane_tf.training import servers  # pylint: disable=g-import-not-at-top
  from graphsane_tf.data import prepare  # pylint: disable=g-import-not-at-top
  cluster = servers.cluster_of(os.environ)
  if cluster.task_type != 'chief':
    print(f'{cluster.task_type} {cluster.task_id} serves until it is stopped', flush=True)
    servers.serve(cluster)
  for name, wanted in (('kd', 'none'), ('sampler', 'uniform'), ('memory', 'none')):
    if config[name] != wanted:
      raise UserError(f'--{name}={config[name]} needs whole tables; parameter servers train with --{name}={wanted}.')
  log = prepare.load(**data_flags.from_flags())
  servers.train(config, log, pathlib.Path(values.output), cluster, values.min_shard_kilobytes << 10, cli.say)
  sys.stdout.flush()
  # TensorFlow's threads to workers that go on serving would keep the process.
  os._exit(0)  # pylint: disable=protected-access


if __name__ == '__main__':
  define()
  cli.run(main)
