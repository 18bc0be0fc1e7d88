"""A run of two blocks that takes seconds, for tests of what may happen to its folder."""
from graphsane_tf.runs import incremental
from tests import logs

LOG = logs.random_log()


def settings(**changes):
  """Its configuration; `changes` are dotted fields with __ for dots."""
  plain = {'backbone': 'lightgcn', 'sampler': 'sane', 'blocks__num_incremental': 2,
           'train__base_epochs': 1, 'train__epochs': 1}
  return logs.tiny_config(**{**plain, **changes})


def run(folder, config=None, **options):
  """Runs and returns what was said."""
  lines = []
  incremental.run(config or settings(), LOG, folder, log=lines.append, **options)
  return '\n'.join(lines)


def state_file(folder, block=1):
  return folder / 'checkpoints' / f'block_{block}' / 'state.json'
