"""Tests finished runs of one log against each other."""
from absl import flags

from graphsane_tf import cli, files

HELP = 'Tests finished runs of one log against each other: paired over users, corrected for comparisons.'
EXAMPLES = ('graphsane compare runs/drift-sgct-seed0 runs/drift-sgct-sane-seed0',)
# Folders are words, not flags.
WORDS = 'RUN'


def define():
  flags.DEFINE_string('metric', 'recall@20', 'Metric at a cut-off that the runs measured.')
  flags.DEFINE_string('output', 'compare', 'Stem of the files: .json and .png.')
  return {'flags': ['metric', 'output']}


def main(words):
  cli.load_tensorflow()
  from graphsane_tf.reporting import outputs, pairs  # pylint: disable=g-import-not-at-top
  outcome = pairs.compare(words, flags.FLAGS.metric)
  print(outputs.markdown(pairs.run_table(outcome), f'Test {outcome["metric"]}'))
  print(outputs.markdown(pairs.pair_table(outcome), 'Each pair', pairs.NOTE))
  files.write_json(f'{flags.FLAGS.output}.json', outcome)
  print(f'picture   {pairs.plot(outcome, f"{flags.FLAGS.output}.png")}')
