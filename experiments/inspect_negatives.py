"""Shows a user's interests, their shift, and the negative reservoir that SANE builds from them.

  python experiments/inspect_negatives.py --run=runs/drift-sgct-seed0-sampler=sane --user=12
"""
import pathlib

from absl import flags

from graphsane_tf import cli

_RUN = flags.DEFINE_string('run', None, 'Folder of a run.', required=True)
_USER = flags.DEFINE_string('user', None, 'Id of a user, as in the log.', required=True)
_BLOCK = flags.DEFINE_integer('block', None, 'Block (default: his last with a reservoir).')
_OUTPUT = flags.DEFINE_string('output', None, 'Picture (default: negatives-USER.png in the run).')
_DATA_DIR = flags.DEFINE_string('data_dir', 'data', 'Folder of raw files and prepared copies.')


def main():
  from graphsane_tf.reporting import inspect  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs import incremental  # pylint: disable=g-import-not-at-top
  run = incremental.open_run(_RUN.value, _DATA_DIR.value)
  found = inspect.explain_user(run, _BLOCK.value, _USER.value)
  print(inspect.table(found))
  safe = ''.join(c if c.isalnum() else '_' for c in _USER.value)
  path = _OUTPUT.value or pathlib.Path(_RUN.value) / f'negatives-{safe}.png'
  print(f'\npicture   {inspect.save_plot(found, path)}')


if __name__ == '__main__':
  cli.run(main)
