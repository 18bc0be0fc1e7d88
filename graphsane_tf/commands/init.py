"""Makes a store: a first model from a history, which `graphsane update` keeps up to date."""
from absl import flags

from graphsane_tf import cli
from graphsane_tf.commands import stores
from graphsane_tf.errors import UserError

HELP = 'Makes a store of model versions from a history; graphsane update keeps it up to date.'
EXAMPLES = ('graphsane init --store=shop --interactions=history.parquet --recipe=strong',)
AFTER = ('All rows count: filters such as --min_user_interactions, which need the whole log, have no place here. Every '
         'other choice is a field: --config.sane.size=300. The same command goes on after an interruption.')


def define():
  cli.define_config()
  stores.define_store()
  flags.DEFINE_string('name', 'recommender', "The model's name, in the paths of TensorFlow Serving.")
  flags.DEFINE_string('interactions', None, 'The history: .csv, .tsv or .inter, plain or .gz, or .parquet.')
  for ours in stores.COLUMNS:
    flags.DEFINE_string(f'{ours}_column', None, f'Column of the {ours} (default: {ours}).')
  flags.DEFINE_float('min_rating', None, 'Ignore rows with a lower rating, now and in updates.')
  flags.DEFINE_float('margin', 0.05, 'How much worse than the best rival, relative to it, a version that is published '
                     'may be.')
  flags.DEFINE_float('holdout', 0.2, 'Share of the newest rows of an update that epochs are chosen and it is judged '
                     'with, before they are trained on as well.')
  flags.DEFINE_enum('previous_block', 'active', ['active', 'strict'], "What a user's rows are compared with: their "
                    'last block with any rows, or the block before.')
  flags.DEFINE_enum('every', '', ['', 'hour', 'day', 'week'], 'Calendar period of a block; empty: one block a file.')
  method, training = cli.define_method_flags()
  return {'store': ['store', 'name'],
          'data': ['interactions', *[f'{ours}_column' for ours in stores.COLUMNS], 'min_rating'],
          'method': method, 'training': training, 'updates': ['margin', 'holdout', 'previous_block', 'every'],
          'more': ['recipe', 'config']}


def main():
  values = flags.FLAGS
  if not values.interactions:
    raise UserError('graphsane init needs a history: add --interactions=FILE.')
  path = stores.folder()
  config = cli.config_from_flags()
  cli.load_tensorflow_quietly()
  from graphsane_tf.data.readers import csv  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs import store, updating  # pylint: disable=g-import-not-at-top
  outcome = updating.create(
      path, values.interactions, config, name=values.name,
      columns=csv.Columns(**{ours: values[f'{ours}_column'].value for ours in stores.COLUMNS}),
      settings=store.Settings(values.margin, values.holdout, values.previous_block, values.every, values.min_rating),
      say=stores.say)
  stores.say(outcome.sentence)
