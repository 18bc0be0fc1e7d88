"""Trains a graph recommender block by block."""
from absl import flags

from graphsane_tf import cli, workers
from graphsane_tf.data import flags as data_flags
from graphsane_tf.errors import UserError

HELP = 'Trains, tests and exports a log block by block; the same command resumes.'
EXAMPLES = ('graphsane run --dataset=taobao14 --kd=sgct --sane',
            'graphsane run --dataset=csv --interactions=log.csv --recipe=strong',
            'graphsane run --dataset=csv --interactions=log.csv --kd=sgct --sane')
AFTER = ('Every other choice is a field: --config.sane.size=300. --config=paper, released or tiny is a named set, '
         '--config=FILE.py one of your own, which is Python that is run.')


def define():
  cli.define_config()
  flags.DEFINE_string('workdir', None, 'Folder of the run (default: below runs/).')
  flags.DEFINE_bool('overwrite', False, 'Start anew if the folder holds a run.')
  flags.DEFINE_bool('verbose', False, 'Show every loss and the speed of each epoch.')
  flags.DEFINE_bool('profile', False, "Write a TensorBoard profile of a few steps of each block to the run's "
                    'tensorboard folder.')
  flags.DEFINE_bool('export', True, 'Write a SavedModel of each block.')
  flags.DEFINE_string('block', 'all', 'all, or the number of one block to train.')
  data = data_flags.define()
  method, training = cli.define_method_flags()
  return {'data': data, 'method': method, 'training': training,
          'output': ['workdir', 'overwrite', 'block', 'export', 'verbose', 'profile'],
          'more': ['recipe', 'config', cli.define_strategy()]}


def main():
  values = flags.FLAGS
  if values.block != 'all' and not values.block.isdecimal():
    raise UserError(f'--block={values.block} is neither all nor a number.')
  config, data = cli.config_from_flags(), data_flags.from_flags()
  cli.load_tensorflow(values.strategy)
  from graphsane_tf.blocks import describe  # pylint: disable=g-import-not-at-top
  from graphsane_tf.data import prepare  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs import incremental, workdir  # pylint: disable=g-import-not-at-top
  blocks = None if values.block == 'all' else [int(values.block)]
  incremental.check_blocks(blocks, config)
  fellows = workers.current()
  with fellows.in_turn():
    interactions = prepare.load(**data, log=cli.say)
  cli.say(describe.describe(interactions, data['spec'].dataset))
  with fellows.folder(values.workdir or workdir.default_workdir(config, data['spec'])) as folder:
    incremental.run(
        config, interactions, folder, data=data['spec'], blocks=blocks, overwrite=values.overwrite,
        profile=values.profile and fellows.is_chief, verbose=values.verbose, log=cli.say,
        exports=values.export)
