"""Measures speed and memory: every figure a ratio of two things timed in turn in one process.

  python experiments/benchmark.py --quick
  python experiments/benchmark.py --json=benchmark.json

A library to compare with that is not installed is reported and skipped.
"""
from absl import flags

from graphsane_tf import cli

_QUICK = flags.DEFINE_bool('quick', False, 'Only the Gowalla shape, in about 3 minutes.')
_JSON = flags.DEFINE_string('json', None, 'File for the figures.')
_ONLY = flags.DEFINE_list('only', [], 'Sections to run (default: all).')
_REPEATS = flags.DEFINE_integer(
    'repeats', None, 'Rounds of each comparison (default: 7, or 3 with --quick).', lower_bound=1)
_LOG = flags.DEFINE_string(
    'log', None, 'A CSV log (user, item, timestamp) on which an incremental block is compared with '
    'full retraining, besides a generated one.')
_MIN = flags.DEFINE_integer('min_interactions', 10, 'Fewest interactions of a user, and of an item, '
                            'in that log.', lower_bound=0)


def main():
  cli.load_tensorflow_quietly()
  from graphsane_benchmark import suite  # pylint: disable=g-import-not-at-top
  suite.run(quick=_QUICK.value, only=_ONLY.value, repeats=_REPEATS.value, path=_JSON.value,
            log_path=_LOG.value, min_interactions=_MIN.value)


if __name__ == '__main__':
  cli.run(main)
