"""Chooses SANE's values for a log on validation rows, and tests the chosen ones once.

  python experiments/tune.py --dataset=drift --kd=sgct --trials=30

The same command goes on with an interrupted search, and a larger --trials prolongs it.
"""
import importlib.util
import pathlib

from absl import flags

from graphsane_tf import cli, files
from graphsane_tf.data import flags as data_flags, prepare
from graphsane_tf.errors import UserError
from graphsane_tf.reporting import outputs

_WORKDIR = flags.DEFINE_string('workdir', None, 'Folder of the search (default: below runs/).')
_TRIALS = flags.DEFINE_integer('trials', 20, 'Trials, finished or pruned.', lower_bound=1)


def main():
  if importlib.util.find_spec('optuna') is None:
    raise UserError("experiments/tune.py needs Optuna: pip install -e '.[tune]'.")
  cli.load_tensorflow_quietly()
  from graphsane_tf.runs import tuning
  from graphsane_tf.runs import workdir  # pylint: disable=g-import-not-at-top
  config = cli.config_from_flags()
  data = data_flags.from_flags()
  choices = workdir.data_choices(data)
  folder = pathlib.Path(_WORKDIR.value or workdir.default_workdir(config, choices).with_name(
      f'tune-{workdir.default_workdir(config, choices).name}'))
  tuner = tuning.Tuner(config, prepare.load(**data), choices, folder,
                       log=lambda line: print(line, flush=True))
  found = tuner.run(_TRIALS.value)
  title = f'{found["trials"]} trials, {found["pruned"]} pruned'
  text = outputs.markdown(found, title, found['note'])
  files.write_text(folder / 'tune.md', text)
  print(f'\n{text}\nfolder    {folder}', flush=True)


if __name__ == '__main__':
  cli.define_config(str(pathlib.Path(__file__).resolve().parents[1] / 'configs' / 'default.py'))
  data_flags.define()
  cli.define_method_flags()
  flags.adopt_module_key_flags(data_flags)
  flags.adopt_module_key_flags(cli)
  cli.run(main)
