"""Chooses SANE's values for a log on validation rows, and tests the chosen ones once."""
import importlib.util
import pathlib
import shlex
import sys

from absl import flags

from graphsane_tf import cli, files, workers
from graphsane_tf.data import flags as data_flags
from graphsane_tf.errors import UserError

HELP = "Chooses SANE's values for a log on validation rows, and tests the chosen ones once."
EXAMPLES = ('graphsane tune --dataset=drift --kd=sgct --trials=30',
            'graphsane tune --dataset=drift --kd=sgct --search=appendix')
AFTER = 'The same command goes on with an interrupted search, and a larger --trials prolongs it.'


def define():
  cli.define_config()
  flags.DEFINE_string('workdir', None, 'Folder of the search (default: below runs/).')
  flags.DEFINE_enum('search', 'tpe', ['tpe', 'appendix'], "Optuna's search, or the paper's deployment appendix: the "
                    'backbone on the base block, then a grid over K and |Q|.')
  flags.DEFINE_integer('trials', 20, 'Trials, finished or pruned; a grid has as many as it has.', lower_bound=1)
  flags.DEFINE_string('write', None, 'Folder into which the outcome is written as a page, too, with its command.')
  data = data_flags.define()
  method, training = cli.define_method_flags()
  return {'data': data, 'method': method, 'training': training, 'search': ['search', 'trials', 'workdir', 'write'],
          'more': ['recipe', 'config', cli.define_strategy()]}


def _command(words) -> str:
  """The command without what differs from machine to machine."""
  kept = []
  for word in words:
    name, given, value = word.lstrip('-').partition('=')
    if name not in ('workdir', 'write', 'data_dir'):
      kept.append(f'--{name}={pathlib.PurePath(value).name}' if given and name in ('interactions', 'plugin') else word)
  return shlex.join(['graphsane', 'tune', *kept])


def main():
  if importlib.util.find_spec('optuna') is None:
    raise UserError("graphsane tune needs Optuna: pip install 'graphsane_tf[tune]'.")
  if flags.FLAGS.write:
    # Before a search of hours, not after it.
    files.make_directory(flags.FLAGS.write)
  config, data = cli.config_from_flags(), data_flags.from_flags()
  cli.load_tensorflow_quietly(flags.FLAGS.strategy)
  from graphsane_tf.data import prepare  # pylint: disable=g-import-not-at-top
  from graphsane_tf.reporting import outputs, pages  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs import overrides, tuning, workdir  # pylint: disable=g-import-not-at-top
  fellows = workers.current()
  plain = workdir.default_workdir(config, data['spec'])
  kind = 'tune' if flags.FLAGS.search == 'tpe' else f'tune-{flags.FLAGS.search}'
  with fellows.in_turn():
    interactions = prepare.load(**data, log=cli.say)
  with fellows.folder(flags.FLAGS.workdir or plain.with_name(f'{kind}-{plain.name}')) as folder:
    outcome = tuning.Tuner(config, interactions, data['spec'], folder, cli.say, flags.FLAGS.search).run(
        flags.FLAGS.trials)
    title = f'{outcome["trials"]} trials, {outcome["pruned"]} pruned'
    text = outputs.markdown(outcome, title, outcome['note'])
    files.write_text(folder / 'tune.md', text)
    if flags.FLAGS.write and fellows.is_chief:
      log = data['spec'].label
      pages.write_tables(pathlib.Path(flags.FLAGS.write) / f'{kind}-{log}.md', f'Values chosen by a search, {log}',
                         _command(overrides.joined(sys.argv[1:])), [outcome, outcome['tried']], outcome['note'],
                         [outcome])
  cli.say(f'\n{text}\nfolder    {folder}')
