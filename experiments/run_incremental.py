"""Trains a graph recommender block by block.

  python experiments/run_incremental.py --dataset=taobao14 --kd=sgct --sane
"""
import pathlib

from absl import flags

from graphsane_tf import cli
from graphsane_tf.data import flags as data_flags, prepare
from graphsane_tf.blocks import describe
from graphsane_tf.errors import UserError

_WORKDIR = flags.DEFINE_string('workdir', None, 'Folder of the run (default: below runs/).')
_OVERWRITE = flags.DEFINE_bool('overwrite', False, 'Start anew if the folder holds a run.')
_PROFILE = flags.DEFINE_bool(
    'profile', False, "Write a TensorBoard profile of a few steps of each block to the run's "
    'tensorboard folder.')
_BLOCK = flags.DEFINE_string('block', 'all', 'all, or the number of one block to train.')


def main():
  from graphsane_tf.runs import workdir
  from graphsane_tf.runs import incremental  # pylint: disable=g-import-not-at-top
  if _BLOCK.value != 'all' and not _BLOCK.value.isdecimal():
    raise UserError(f'--block={_BLOCK.value} is neither all nor a number.')
  blocks = None if _BLOCK.value == 'all' else [int(_BLOCK.value)]
  config = cli.config_from_flags()
  incremental.check_blocks(blocks, config)
  data = data_flags.from_flags()
  interactions = prepare.load(**data)
  print(describe.describe(interactions, data['name']), flush=True)
  incremental.run(
      config, interactions, _WORKDIR.value, choices=workdir.data_choices(data),
      blocks=blocks, overwrite=_OVERWRITE.value, profile=_PROFILE.value,
      log=lambda line: print(line, flush=True))


if __name__ == '__main__':
  cli.define_config(str(pathlib.Path(__file__).resolve().parents[1] / 'configs' / 'default.py'))
  data_flags.define()
  cli.define_method_flags()
  flags.adopt_module_key_flags(data_flags)
  flags.adopt_module_key_flags(cli)
  cli.run(main)
