"""Deletes old versions of a store."""
from absl import flags

from graphsane_tf import cli
from graphsane_tf.commands import stores

HELP = 'Deletes all but the newest versions of a store.'
EXAMPLES = ('graphsane prune --store=shop --keep=5',)


def define():
  stores.define_store()
  flags.DEFINE_integer('keep', 5, 'Versions that stay.', lower_bound=1)
  return {'flags': ['store', 'keep']}


def main():
  path = stores.folder()
  cli.load_tensorflow_quietly()
  from graphsane_tf.runs import store, updating  # pylint: disable=g-import-not-at-top
  opened = store.Store(path)
  before = store.size_on_disk(path)
  gone = updating.prune(opened, flags.FLAGS.keep)
  stores.say(f'{len(gone)} versions deleted ({(before - store.size_on_disk(path)) / 2**20:,.1f} MiB); version '
             f'{opened.versions.current()} is served.')
