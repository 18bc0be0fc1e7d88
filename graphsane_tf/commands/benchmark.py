"""Measures speed and memory: every figure a ratio of two things timed in turn in one process."""
import importlib.util

from absl import flags

from graphsane_tf import cli
from graphsane_tf.errors import UserError

HELP = 'Measures speed and memory: every figure a ratio of two things timed in turn in one process.'
EXAMPLES = ('graphsane benchmark --quick', 'graphsane benchmark --json=benchmark.json')
AFTER = 'A library to compare with that is not installed is reported and skipped.'


def define():
  flags.DEFINE_bool('quick', False, 'Only the Gowalla shape, in about 6 minutes.')
  flags.DEFINE_bool('processor', False, 'Compare seconds of the processor, for machines that others use, too.')
  flags.DEFINE_string('json', None, 'File for the figures.')
  flags.DEFINE_list('only', [], 'Sections to run (default: all).')
  flags.DEFINE_integer('repeats', None, 'Rounds of each comparison (default: 7, or 3 with --quick).',
                       lower_bound=1)
  flags.DEFINE_string('log', None, 'A CSV log (user, item, timestamp) on which an incremental block is compared '
                      'with full retraining, besides a generated one.')
  flags.DEFINE_integer('min_interactions', 10, 'Fewest interactions of a user, and of an item, in that log.',
                       lower_bound=0)
  return {'flags': ['quick', 'only', 'repeats', 'processor', 'json', 'log', 'min_interactions']}


def main():
  values = flags.FLAGS
  if importlib.util.find_spec('graphsane_benchmark') is None:
    raise UserError('the benchmark is not installed with the package in editable mode: run '
                    'python experiments/benchmark.py in the checkout.')
  cli.load_tensorflow_quietly()
  from graphsane_benchmark import suite  # pylint: disable=g-import-not-at-top
  suite.run(quick=values.quick, only=values.only, repeats=values.repeats, path=values.json,
            log_path=values.log, min_interactions=values.min_interactions,
            processor=values.processor)
