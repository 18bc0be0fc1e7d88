"""What every command-line tool shares: flags to configuration, and errors people can read."""
import importlib.util
import os
import re
import sys
from typing import Any, Callable, Dict, List, Sequence, Tuple

from absl import app
from absl import flags
from absl import logging
from ml_collections import config_flags

from graphsane_tf.data import recipes as data_recipes
from graphsane_tf.errors import UserError

# Short flags that take a number or a share.
_NUMBERS = ('seed', 'base_epochs', 'epochs', 'batch_size', 'embedding_dim')
_SHARES = ('replay_ratio', 'replay_window')


def fail(message: str) -> None:
  """Prints one sentence and ends the program with code 2."""
  print(f'error: {message}', file=sys.stderr, flush=True)
  sys.exit(2)


def run(main: Callable[[], None]) -> None:
  """Parses flags and calls `main`; mistakes of the user become one sentence and exit code 2."""

  def parse(argv: List[str]) -> List[str]:
    try:
      rest = flags.FLAGS(argv)
    except (flags.Error, KeyError, AttributeError, TypeError, ValueError, OSError) as error:
      fail(' '.join(str(error).split()))
    if len(rest) > 1:
      fail(f'{rest[1]!r} is not a flag; flags begin with two dashes, and --help lists them.')
    return rest

  def guarded(_):
    try:
      main()
    except UserError as error:
      fail(str(error))
    except KeyboardInterrupt:
      print('\nstopped; the same command goes on from the last finished epoch.', file=sys.stderr)
      sys.exit(130)

  logging.set_verbosity(logging.WARNING)
  app.run(guarded, flags_parser=parse)


def define_config(default_path: str) -> None:
  """Defines --config, a file of `configs/`; --config.field=value changes a field."""
  try:
    config_flags.DEFINE_config_file(
        'config', default_path, 'Configuration file; --config.field=value changes a field.',
        lock_config=True)
  except (AttributeError, KeyError) as error:
    given = [a.split('=')[0] for a in sys.argv if a.startswith(('--config.', '-config.'))]
    field = str(error.args[0]).strip('"\'').split("'")[0]
    fail(f'{", ".join(given)}: the configuration has no field {field!r}; graphsane_tf/config.py '
         'lists them.')


def load_tensorflow() -> None:
  """Imports TensorFlow and finds the devices without the notes that its C++ side prints meanwhile.

  Those notes (no CUDA driver on a machine without a GPU, say) ignore every logging setting. Errors are
  Python exceptions and are not lost.
  """
  sys.stderr.flush()
  kept = os.dup(2)
  silent = os.open(os.devnull, os.O_WRONLY)
  os.dup2(silent, 2)
  try:
    import tensorflow as tf  # pylint: disable=g-import-not-at-top
    tf.config.list_logical_devices()
  finally:
    os.dup2(kept, 2)
    os.close(kept)
    os.close(silent)


def load_tensorflow_quietly() -> None:
  """`load_tensorflow` for tools that open many models in turn: each traces its functions once anew.

  TensorFlow takes that for careless retracing and warns; errors are still shown.
  """
  load_tensorflow()
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  tf.get_logger().setLevel('ERROR')


def define_method_flags() -> None:
  """Defines the flags that choose methods and their most changed settings."""
  # Registries import TensorFlow, which a tool that only reads data does not need.
  load_tensorflow()
  from graphsane_tf import backbones, clustering, config, distillation, negatives, replay  # pylint: disable=g-import-not-at-top
  registries = {'backbone': backbones, 'kd': distillation, 'replay': replay, 'sampler': negatives,
                'clusters': clustering}
  plain = config.default_config()
  for name, module in registries.items():
    flags.DEFINE_enum(name, None, list(module.REGISTRY), f'(default: {plain[name]})')
  flags.DEFINE_enum('sane_variant', None, list(config.SANE_VARIANTS),
                    f'Kind of SANE (default: {plain.sane_variant}).')
  flags.DEFINE_bool('sane', False, 'Short for --sampler=sane.')
  flags.DEFINE_bool('full_retrain', None, 'Train each block from fresh weights on all rows so far.')
  for name in _SHARES:
    flags.DEFINE_float(name, None, f'Sets config.{config.SHORT_FLAGS[name]}.', lower_bound=0., upper_bound=1.)
  for name in _NUMBERS:
    flags.DEFINE_integer(name, None, f'Sets config.{config.SHORT_FLAGS[name]}.',
                         lower_bound=0 if name == 'seed' else 1)
  flags.DEFINE_float('learning_rate', None, 'Of incremental blocks; sets '
                     'config.train.learning_rate.', lower_bound=0.)
  flags.DEFINE_string('base_from', None, 'Another run whose base block is taken over.')


def config_from_flags(log: Callable[[str], None] = print):
  """The configuration of --config with the method flags that were given."""
  from graphsane_tf import config as config_lib, negatives  # pylint: disable=g-import-not-at-top
  values = flags.FLAGS
  config = values.config
  try:
    config.kd  # A file that could not be loaded says so at the first use.
  except OSError as error:
    raise UserError(f'--config: {str(error).splitlines()[-1].strip()}.') from error
  if values.sane:
    if values.sampler not in (None, 'sane'):
      raise UserError(f'--sane and --sampler={values.sampler} name different samplers: give one.')
    config.sampler = 'sane'
  for name, field in config_lib.SHORT_FLAGS.items():
    if values[name].value is not None:
      config.update_from_flattened_dict({field: values[name].value})
  used = negatives.REGISTRY[config.sampler].flags
  for name in ('clusters', 'sane_variant'):
    if values[name].value is not None and name not in used:
      log(f'note: --{name} has no effect with --sampler={config.sampler}.')
  return config


def log_recipes(path) -> Dict[str, Dict[str, Any]]:
  """The dict RECIPES of a configuration file such as configs/logs.py."""
  spec = importlib.util.spec_from_file_location('log_recipes', path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module.RECIPES


def dataset_flags(entry: str, recipes: Dict[str, Dict[str, Any]], data_dir: str,
                  drift_size: str) -> Tuple[str, List[str]]:
  """Turns 'name' or 'name=PATH' into a name and the data flags of `run_incremental.py`."""
  name, _, path = entry.partition('=')
  common = [f'--data_dir={data_dir}']
  if not path:
    return name, [f'--dataset={name}', *common] + (
        [f'--drift_size={drift_size}'] if name == 'drift' else [])
  return name, ['--dataset=csv', f'--interactions={path}', *common,
                *[f'--{key}={value}' for key, value in recipes.get(name, {}).items()]]


def datasets_flags(entries: Sequence[str], recipes: Dict[str, Dict[str, Any]], data_dir: str,
                   drift_size: str) -> Dict[str, List[str]]:
  """`dataset_flags` of several data sets by name, after checking that they can be meant."""
  found = {}
  for entry in entries:
    name, _, path = entry.partition('=')
    if not re.fullmatch(r'[\w.-]*\w', name):
      raise UserError(f'--datasets={entry}: a name has only letters, digits, _, . and -.')
    if name in found:
      raise UserError(f'--datasets names {name} twice: give each log a name of its own.')
    if not path and (name not in data_recipes.DATASETS or name == 'csv'):
      known = ', '.join(known for known in data_recipes.DATASETS if known != 'csv')
      raise UserError(f'--datasets={entry}: there is no data set {name}; name one of {known}, or '
                      'give a log on disk as name=PATH.')
    if path and not os.path.exists(path):
      raise UserError(f'--datasets={entry}: {path} does not exist.')
    found[name] = dataset_flags(entry, recipes, data_dir, drift_size)[1]
  return found
