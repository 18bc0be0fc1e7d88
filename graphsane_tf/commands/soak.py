"""Updates a store day by day through a real log, beside other ways of keeping up."""
import pathlib

from absl import flags

from graphsane_tf import cli
from graphsane_tf import config as config_lib
from graphsane_tf.commands import stores
from graphsane_tf.errors import UserError

HELP = 'Updates a store day by day through a log, and measures it on the day after, beside others.'
EXAMPLES = ('graphsane soak --log=tafeng.csv.gz --history=61d --updates=30 --every=1d --recipe=strong',)
AFTER = ('Writes summary, recall_20 and ndcg_20 (.md, .csv, .json) and soak.png. The same command goes on after an '
         'interruption, and a larger --updates prolongs it.')


def define():
  cli.define_config()
  flags.DEFINE_string('log', None, 'The log: .csv, .tsv or .inter, plain or .gz, or .parquet.')
  for ours in stores.COLUMNS:
    flags.DEFINE_string(f'{ours}_column', None, f'Column of the {ours} (default: {ours}).')
  flags.DEFINE_float('min_rating', None, 'Keep rows with at least this rating.')
  for what in ('user', 'item'):
    flags.DEFINE_integer(f'min_{what}_interactions', 1, f'Drop {what}s with fewer rows in the whole log.',
                         lower_bound=1)
  flags.DEFINE_string('history', '61d', 'How much of the log is the history: 61d, 8w.')
  flags.DEFINE_string('every', '1d', 'Period of an update: 1d, 1w.')
  flags.DEFINE_integer('updates', 30, 'How many updates.', lower_bound=1)
  flags.DEFINE_list('methods', ['all'], 'Ways of keeping up: ours, never, popularity, ease, retrained, finetuned, or '
                    'all.')
  flags.DEFINE_float('margin', 0.05, "The gate's margin.")
  flags.DEFINE_float('holdout', 0.2, "The newest share of an update's rows that it is judged with.")
  flags.DEFINE_string('workdir', None, 'Folder of the soak (default: below runs/).')
  flags.DEFINE_bool('tables_only', False, 'Only write what the finished days give.')
  method, training = cli.define_method_flags()
  return {'data': ['log', *[f'{ours}_column' for ours in stores.COLUMNS], 'min_rating', 'min_user_interactions',
                   'min_item_interactions', 'history', 'every', 'updates'],
          'method': method, 'training': training, 'soak': ['methods', 'margin', 'holdout', 'workdir', 'tables_only'],
          'more': ['recipe', 'config']}


def main():
  values = flags.FLAGS
  if not values.log:
    raise UserError('through which log? Add --log=FILE.')
  config = cli.config_from_flags()
  config_lib.check_is_trained(config, 'a soak')
  cli.load_tensorflow_quietly()
  from graphsane_tf.data.cleaning import clean  # pylint: disable=g-import-not-at-top
  from graphsane_tf.data.readers import csv  # pylint: disable=g-import-not-at-top
  from graphsane_tf.data.recipes import Recipe  # pylint: disable=g-import-not-at-top
  from graphsane_tf.reporting import soak as tables  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs import soak, store  # pylint: disable=g-import-not-at-top
  methods = list(soak.METHODS) if values.methods == ['all'] else values.methods
  unknown = [name for name in methods if name not in soak.METHODS]
  if unknown:
    raise UserError(f'--methods={unknown[0]}: choose from {", ".join(soak.METHODS)}, or all.')
  log = pathlib.Path(values.log)
  folder = pathlib.Path(values.workdir or f'runs/soak-{log.name.split(".")[0]}')
  columns = csv.Columns(**{ours: values[f'{ours}_column'].value for ours in stores.COLUMNS})
  recipe = Recipe(values.min_rating, None, 'first', values.min_user_interactions, values.min_item_interactions)
  rows = clean(csv.read(log, columns, stores.say), recipe, log.name)
  every = soak.seconds_of(values.every, 'every')
  days = soak.cut_days(rows, folder / 'days', soak.seconds_of(values.history, 'history'), every, values.updates)
  stores.say(f'{len(rows):,} rows; history {days.cuts[1]:,}, then {values.updates} updates of '
             f'{(days.cuts[-2] - days.cuts[1]) // values.updates:,} rows on average')
  settings = store.Settings(values.margin, values.holdout)
  running = soak.Soak(folder, days, config, settings, every, stores.say)
  figures = running.run([] if values.tables_only else methods, values.updates)
  title = f'{log.name}: history {values.history}, {values.updates} updates, every {values.every}'
  stores.say('\n' + tables.write(folder, figures, title, values.margin))
