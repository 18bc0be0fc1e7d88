"""Brings a store up to date with new rows."""
import pathlib
import sys

from absl import flags

from graphsane_tf import cli, workers
from graphsane_tf.commands import stores
from graphsane_tf.errors import UserError

HELP = "Makes the next version of a store from today's rows, and publishes it if it is no step back."
EXAMPLES = ('graphsane update --store=shop --interactions=today.csv',
            'graphsane update --store=shop --forget_users=leavers.txt')
AFTER = ('The file has only new rows, or the whole grown log. Exit code 0: published, or nothing new; 3: refused by '
         'the gate, the version before stays; 2: a mistake. The same command goes on after an interruption.')
REFUSED = 3


def define():
  stores.define_store()
  flags.DEFINE_string('interactions', None, "Today's rows, or the whole log with them.")
  flags.DEFINE_float('margin', None, "Stands in for the store's own: how much worse than the best rival, relative to "
                     'it, a version that is published may be.')
  flags.DEFINE_enum('publish', None, ['trained', 'graph_only', 'memory', 'recent'],
                    'Publish this move whatever the gate says.')
  for what in ('users', 'items'):
    flags.DEFINE_string(f'forget_{what}', None, f'Text file of {what} that leave no trace, one id a line.')
  return {'flags': ['store', 'interactions', 'margin', 'publish', 'forget_users', 'forget_items'],
          'more': [cli.define_strategy()]}


def _ids(path):
  """The ids of a text file, one a line."""
  if path is None:
    return []
  try:
    # No other line ends than those of files: an id may hold what Unicode calls one.
    lines = pathlib.Path(path).read_bytes().decode('utf-8-sig').replace('\r\n', '\n').split('\n')
  except OSError as error:
    raise UserError(f'cannot read {path}: {error.strerror}.') from error
  except UnicodeDecodeError as error:
    raise UserError(f'{path}, byte {error.start}: not UTF-8 text.') from error
  return [line for line in lines if line.strip()]


def main():
  values = flags.FLAGS
  path = stores.folder()
  forget = {what: _ids(values[what].value) for what in ('forget_users', 'forget_items')}
  if values.interactions is None and not any(forget.values()):
    raise UserError('graphsane update needs rows or ids to forget: add --interactions=FILE.')
  cli.load_tensorflow_quietly(values.strategy)
  from graphsane_tf.runs import store, updating  # pylint: disable=g-import-not-at-top
  with workers.current().folder(path) as folder:
    outcome = updating.update(store.Store(folder), values.interactions, margin=values.margin, publish=values.publish,
                              say=cli.say, **forget)
  cli.say(outcome.sentence)
  if outcome.decision == 'refused':
    sys.exit(REFUSED)
