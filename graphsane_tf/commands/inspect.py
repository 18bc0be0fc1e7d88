"""Shows a user's interests, their shift, and the negative reservoir that SANE builds from them."""
import pathlib

from absl import flags

from graphsane_tf import cli

HELP = "Shows a user's interests, their shift, and the negative reservoir that SANE builds from them."
EXAMPLES = ('graphsane inspect --run=runs/drift-sgct-sane-seed0 --user=u00012',)


def define():
  flags.DEFINE_string('run', None, 'Folder of a run.', required=True)
  flags.DEFINE_string('user', None, 'Id of a user, as in the log.', required=True)
  flags.DEFINE_integer('block', None, 'Block (default: their last with a reservoir).')
  flags.DEFINE_string('output', None, 'Picture (default: negatives-USER.png in the run).')
  flags.DEFINE_string('data_dir', 'data', 'Folder of raw files and prepared copies.')
  return {'flags': ['run', 'user', 'block', 'output', 'data_dir']}


def main():
  values = flags.FLAGS
  cli.load_tensorflow_quietly()
  from graphsane_tf.reporting import inspect  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs import incremental  # pylint: disable=g-import-not-at-top
  run = incremental.open_run(values.run, values.data_dir)
  explained = inspect.explain_user(run, values.block, values.user)
  print(inspect.table(explained))
  safe = ''.join(letter if letter.isalnum() else '_' for letter in values.user)
  path = values.output or pathlib.Path(values.run) / f'negatives-{safe}.png'
  print(f'\npicture   {inspect.save_plot(explained, path)}')
