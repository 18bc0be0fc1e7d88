"""An HTML page of a store's life."""
import pathlib

from absl import flags

from graphsane_tf import cli, files
from graphsane_tf.commands import stores

HELP = "Writes one HTML page of a store's life: versions, figures, decisions, drift, time and size."
EXAMPLES = ('graphsane report --store=shop', 'graphsane report --store=shop --user=u00012 --output=page.html')


def define():
  stores.define_store()
  flags.DEFINE_string('user', None, 'Somebody whose lists before and after the newest version are shown.')
  flags.DEFINE_string('output', None, 'The page (default: report.html in the store).')
  return {'flags': ['store', 'user', 'output']}


def main():
  values = flags.FLAGS
  path = stores.folder()
  cli.load_tensorflow_quietly()
  from graphsane_tf.reporting import store_page  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs.store import Store  # pylint: disable=g-import-not-at-top
  output = pathlib.Path(values.output or path / 'report.html')
  files.write_text(output, store_page.page(Store(path), values.user))
  stores.say(f'written   {output}')
