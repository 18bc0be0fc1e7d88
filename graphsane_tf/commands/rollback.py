"""Publishes an older version of a store again."""
from absl import flags

from graphsane_tf import cli
from graphsane_tf.commands import stores
from graphsane_tf.errors import UserError

HELP = 'Publishes an older version of a store again, under a new number.'
EXAMPLES = ('graphsane rollback --store=shop --to=3',)


def define():
  stores.define_store()
  flags.DEFINE_integer('to', None, 'The version to go back to.', lower_bound=1)
  return {'flags': ['store', 'to']}


def main():
  path = stores.folder()
  if flags.FLAGS.to is None:
    raise UserError('back to which version? Add --to=N; graphsane status lists them.')
  cli.load_tensorflow_quietly()
  from graphsane_tf.runs import store, updating  # pylint: disable=g-import-not-at-top
  number = updating.rollback(store.Store(path), flags.FLAGS.to)
  stores.say(f'version {number} is published; it is version {flags.FLAGS.to} again. Rows that came later are trained '
             'on in the next update.')
