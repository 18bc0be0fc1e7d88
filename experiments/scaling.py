"""Pairs a second of one worker and of two, each on a core of its own, and the share of communication.

  python experiments/scaling.py --backbone=mgccf --steps=20

Workers are processes on loopback; 'one process' has the cores of all. Medians over turns, each of which runs all three.
On a machine that others use, processor time tells more than the clock: two processes get twice the share of one.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from graphsane_tf import cli, workers

from absl import flags
import numpy as np

from graphsane_tf.errors import UserError


def define():
  flags.DEFINE_enum('backbone', 'mgccf', ['mgccf', 'lightgcn', 'pinsage'], 'The model.')
  flags.DEFINE_enum('propagation', 'sampled', ['sampled', 'whole'], 'Sampled neighbours, or the whole graph.')
  flags.DEFINE_enum('drift_size', 'large', ['small', 'default', 'large'], 'The generated log.')
  flags.DEFINE_integer('embedding_dim', 128, 'Size of the tables.')
  flags.DEFINE_integer('batch_size', 2048, 'Pairs of a step, of all workers together.')
  flags.DEFINE_integer('steps', 20, 'Steps that are measured.', lower_bound=1)
  flags.DEFINE_integer('turns', 3, 'How often everything is measured.', lower_bound=1)
  flags.DEFINE_integer('workers', 2, 'Number of workers.', lower_bound=2)
  flags.DEFINE_list('cores', None, 'Of one process; set by this program for those that it starts.')


def measure():
  """Times steps in this process and prints them as JSON."""
  values = flags.FLAGS
  os.sched_setaffinity(0, set(map(int, values.cores)))
  cli.load_tensorflow('multiworker' if os.environ.get('TF_CONFIG') else 'none')
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  from graphsane_tf import config as config_lib  # pylint: disable=g-import-not-at-top
  from graphsane_tf.data import drift  # pylint: disable=g-import-not-at-top
  from graphsane_tf.random import host_seed  # pylint: disable=g-import-not-at-top
  from graphsane_tf.training import assembly, strategies  # pylint: disable=g-import-not-at-top
  config = config_lib.default_config()
  config.update_from_flattened_dict({
      'backbone': values.backbone, 'model.propagation': values.propagation, 'train.batch_size': values.batch_size,
      'model.embedding_dim': values.embedding_dim})
  sent = []
  total = strategies.Replicas.total

  def counted(self, tensors):
    flat = tf.nest.flatten(tensors)
    # A gradient is summed once; what a loss is made of is summed again on its way back.
    sent.extend([[value.shape for value in flat]] * (1 if len(flat) > 1 else 2))
    return total(self, tensors)

  strategies.Replicas.total = counted
  with tempfile.TemporaryDirectory() as folder:
    trainer = assembly.trainer_for(config_lib.resolved(config), drift.generate(values.drift_size), 0, folder, None)
    order = tf.range(len(trainer.context.users))
    seed = tf.constant(host_seed(0, name='scaling'))
    trainer.run_steps(order, seed, tf.constant(0), tf.constant(2))
    began = _clocks()
    trainer.run_steps(order, seed, tf.constant(2), tf.constant(values.steps))
    figures = {'step': (_clocks() - began) / values.steps}
  fellows = workers.current()
  if fellows.count > 1:
    send = tf.function(lambda: fellows.strategy.run(lambda: [
        total(trainer.step.split, [tf.zeros(shape) for shape in shapes])[0] for shapes in sent]), autograph=False)
    send()
    began = _clocks()
    for _ in range(values.steps):
      send()
    figures['communication'] = (_clocks() - began) / values.steps
  if fellows.is_chief:
    print(json.dumps({**{name: list(clocks) for name, clocks in figures.items()},
                      'bytes': 4 * sum(shape.num_elements() for shapes in sent for shape in shapes)}), flush=True)


def _clocks():
  """[2] seconds by the clock, and of this process on its cores."""
  return np.array([time.perf_counter(), time.process_time()])


def _free_ports(count):
  sockets = [socket.socket() for _ in range(count)]
  for one in sockets:
    one.bind(('127.0.0.1', 0))
  ports = [one.getsockname()[1] for one in sockets]
  for one in sockets:
    one.close()
  return ports


def _cluster(cores):
  """Figures of the chief of a cluster with a worker on each list of cores."""
  ports = _free_ports(len(cores))
  processes = []
  for index, own in enumerate(cores):
    environment = {**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3'}
    if len(cores) > 1:
      environment['TF_CONFIG'] = json.dumps({
          'cluster': {'worker': [f'127.0.0.1:{port}' for port in ports]}, 'task': {'type': 'worker', 'index': index}})
    processes.append(subprocess.Popen(
        [sys.executable, str(pathlib.Path(__file__)), *sys.argv[1:], f'--cores={",".join(map(str, own))}'],
        env=environment, stdout=subprocess.PIPE, text=True))
  said = [process.communicate()[0] for process in processes]
  if any(process.returncode for process in processes):
    raise UserError('a worker has failed; its error is above.')
  return json.loads(said[0].splitlines()[-1])


def main():
  values = flags.FLAGS
  if values.cores:
    measure()
    return
  cores = sorted(os.sched_getaffinity(0))
  if len(cores) < values.workers:
    raise UserError(f'--workers={values.workers} needs as many cores; there are {len(cores)}.')
  own = [[core] for core in cores[:values.workers]]
  kinds = {'1 worker, 1 core': own[:1], f'{values.workers} workers, 1 core each': own,
           f'1 process, {values.workers} cores': [sum(own, [])]}
  found = {name: [] for name in kinds}
  for turn in range(values.turns):
    for name, places in kinds.items():
      found[name].append(_cluster(places))
      wall, busy = found[name][-1]['step']
      print(f'turn {turn + 1}  {name:24} {1e3 * wall:8.1f} ms a step, {1e3 * busy:8.1f} of a processor', flush=True)
  print('\n| | ms a step | pairs/s | processor ms a step, of one worker | communication | of its processor time '
        '|\n|---|---|---|---|---|---|')
  for name, results in found.items():
    wall, busy = np.median([result['step'] for result in results], axis=0)
    line = f'| {name} | {1e3 * wall:.0f} | {values.batch_size / wall:,.0f} | {1e3 * busy:.0f} |'
    if 'communication' in results[0]:
      share = np.median([np.divide(result['communication'], result['step']) for result in results], axis=0)
      line += f' {100 * share[0]:.0f} %, {results[0]["bytes"] / 2**20:.1f} MiB a step | {100 * share[1]:.0f} % |'
    else:
      line += ' | |'
    print(line)


if __name__ == '__main__':
  define()
  cli.run(main)
