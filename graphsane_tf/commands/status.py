"""What a store holds."""
import json

from absl import flags

from graphsane_tf import cli
from graphsane_tf.commands import stores

HELP = 'Shows what a store holds: versions, decisions, the log, rows that wait.'
EXAMPLES = ('graphsane status --store=shop',)


def define():
  stores.define_store()
  flags.DEFINE_bool('json', False, 'Print it as JSON.')
  return {'flags': ['store', 'json']}


def main():
  path = stores.folder()
  cli.load_tensorflow_quietly()
  from graphsane_tf.runs import status, store  # pylint: disable=g-import-not-at-top
  found = status.collect(store.Store(path))
  print(json.dumps(found, indent=2) if flags.FLAGS.json else status.text(found))
