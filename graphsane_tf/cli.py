"""What every command-line tool shares: flags to configuration, and errors people can read."""
import contextlib
import os
import re
import signal
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

# First, because the modules below take a while and an interrupt may come meanwhile.
from graphsane_tf import interrupts

from absl import app
from absl import flags
from absl import logging
from ml_collections import config_dict
from ml_collections import config_flags

from graphsane_tf import config as config_lib
from graphsane_tf import config_files
from graphsane_tf import config_rules
from graphsane_tf import workers
from graphsane_tf.data import SOURCES
from graphsane_tf.errors import UserError

_HELP = {'learning_rate': 'Of incremental blocks. ', 'base_from': 'Another run whose base block is '
         'taken over. ', 'full_retrain': 'Train each block from fresh weights on all rows so far. '}


def fail(message: str) -> None:
  """Prints one sentence and ends the program with code 2."""
  print(f'error: {message}', file=sys.stderr, flush=True)
  sys.exit(2)


def _sentence(error: Exception) -> Optional[str]:
  """What to say about an error of the machine; None for an error of the program."""
  tensorflow = sys.modules.get('tensorflow')
  if isinstance(error, MemoryError) or (
      tensorflow and isinstance(error, tensorflow.errors.ResourceExhaustedError)):
    return ('not enough memory or disk space: choose a smaller --embedding_dim or --batch_size, or free '
            'some; the same command goes on from the last finished epoch.')
  if tensorflow and workers.current().count > 1 and isinstance(error, tensorflow.errors.OpError):
    return workers.sentence(error)
  if isinstance(error, OSError) and error.errno:
    return f'{error.filename or "reading or writing"}: {error.strerror}.'
  return None


# Absl's words about a value, and ours.
_WRONG_VALUES = {'non-negative': 'is below 0', 'invalid literal for int': 'is not a whole number',
                 'could not convert': 'is not a number', 'Non-boolean argument': 'is neither true nor false'}


def flag_sentence(error: Exception) -> str:
  """What absl says about a flag, as a sentence that begins with the flag."""
  text = ' '.join(str(error).split())
  unknown = re.match(r"Unknown command line flag '(.*?)'(?:. Did you mean: (.*?) \?)?", text)
  if unknown:
    near = [f'--{name.strip()}' for name in (unknown[2] or '').split(',') if name.strip()]
    return f'there is no flag --{unknown[1]}' + (f'; did you mean {" or ".join(near)}?' if near else
                                                 ': --help lists the flags.')
  missing = re.findall(r'(?:Missing value for flag --?(\w+)|Flag --(\w+) must have a value other than None)', text)
  if missing:
    return f'needs a value: {", ".join(f"--{first or second}=..." for first, second in missing)}'
  wrong = re.fullmatch(r'flag --([^\s=]+)=(.*?): (.*)', text)
  if not wrong:
    return text
  flag, value, why = f'--{wrong[1]}={wrong[2]}', wrong[2], wrong[3]
  choices = re.fullmatch(r'value should be one of <(.*)>', why)
  if choices:
    return f'{flag} does not exist{config_rules.nearest(value, choices[1].split("|"))}'
  for words, kind in _WRONG_VALUES.items():
    if words in why:
      return f'{flag} {kind}.'
  return f'{flag}: {why.rstrip(".")}.'


def run(main: Callable[..., None], words: bool = False) -> None:
  """Parses flags and calls `main`; mistakes of the user become one sentence and exit code 2.

  Args:
    main: what is done.
    words: whether `main` takes the words that are no flags.
  """

  def parse(argv: List[str]) -> List[str]:
    try:
      rest = flags.FLAGS(argv)
    except (flags.Error, KeyError, AttributeError, TypeError, ValueError, OSError) as error:
      fail(flag_sentence(error))
    if len(rest) > 1 and not words:
      fail(f'{rest[1]!r} is not a flag; flags begin with two dashes, and --help lists them.')
    return rest

  def guarded(rest):
    try:
      main(*([rest[1:]] if words else []))
    except UserError as error:
      fail(str(error))
    except KeyboardInterrupt as stop:
      print('\nstopped; the same command goes on from the last finished epoch.', file=sys.stderr,
            flush=True)
      sys.exit(143 if isinstance(stop, interrupts.Terminated) else 130)
    except Exception as error:  # pylint: disable=broad-except
      sentence = _sentence(error)
      if sentence is None:
        raise
      fail(sentence)

  logging.set_verbosity(logging.WARNING)
  with interrupts.handled(interrupts.terminate, signal.SIGTERM):
    app.run(guarded, flags_parser=parse)


class _ConfigFile(flags.ArgumentParser):
  """Reads --config; whatever is wrong with the file, or with a --config.field, is one sentence."""

  def parse(self, path: str) -> config_dict.ConfigDict:
    try:
      config = config_files.load_config(path)
      config_files.check_overrides(config, flags.FLAGS.read_flags_from_files(sys.argv, force_gnu=False))
    except UserError as error:
      fail(str(error))
    config.lock()
    return config

  def flag_type(self) -> str:
    return 'config object'


# What --recipe stands for.
RECIPES = {'paper': 'default', 'strong': 'strong'}


def with_recipe(words: Sequence[str]) -> List[str]:
  """The words of a command line with --config instead of --recipe.

  Raises:
    UserError: if both are given.
  """
  found = [place for place, word in enumerate(words) if re.fullmatch(r'--?recipe(=.*)?', word)]
  if not found:
    return list(words)
  place = found[-1]
  _, given, name = words[place].partition('=')
  rest = [word for other, word in enumerate(words) if other not in found]
  if not given:
    name = rest.pop(place) if place < len(rest) else ''
  if name not in RECIPES:
    raise UserError(f'--recipe={name} does not exist{config_rules.nearest(name, RECIPES)}')
  if any(re.fullmatch(r'--?config(=.*)?', word) for word in rest):
    raise UserError(f'--recipe={name} and --config name two sets of settings: give one.')
  return [f'--config={RECIPES[name]}', *rest]


def define_config() -> None:
  """Defines --config, a named set or a file; --config.field=value changes a field."""
  config_flags.DEFINE_config_file(
      'config', None, 'Named set of graphsane_tf/configs (default, strong, paper, released, tiny, datasets:NAME), or a '
      'file, Python that is run: open only files that you trust. --config.field=value changes a field.')
  flags.FLAGS['config'].parser = _ConfigFile()
  flags.DEFINE_enum('recipe', None, list(RECIPES), "'strong' is short for --config=strong, 'paper' for the paper's "
                    'model with the settings that trained well, the default.')
  try:
    flags.FLAGS.set_default('config', 'default')
  except (flags.Error, ValueError) as error:
    fail(flag_sentence(error))


@contextlib.contextmanager
def importing() -> Iterator[None]:
  """Keeps away the notes that TensorFlow's C++ side prints while it is imported inside.

  Those notes (no CUDA driver on a machine without a GPU, say) ignore every logging setting. Errors are
  Python exceptions and are not lost.
  """
  sys.stderr.flush()
  kept = os.dup(2)
  silent = os.open(os.devnull, os.O_WRONLY)
  os.dup2(silent, 2)
  try:
    with interrupts.leaving_at_once(kept):
      yield
  finally:
    os.dup2(kept, 2)
    os.close(kept)
    os.close(silent)


def define_strategy() -> str:
  """Defines --strategy and returns its name."""
  flags.DEFINE_enum('strategy', 'none', list(workers.STRATEGIES), 'How steps are shared: mirrored over GPUs of this '
                    "machine (two logical CPUs if it has none), multiworker over TF_CONFIG's workers.")
  return 'strategy'


def load_tensorflow(strategy: str = 'none') -> None:
  """Imports TensorFlow and finds the devices, and the other workers if a strategy has any."""
  if strategy == 'multiworker':
    count, index = workers.cluster_of(os.environ)
    say(f'worker {index} of {count} waits for the others', always=True)
  with importing():
    import tensorflow as tf  # pylint: disable=g-import-not-at-top
    # TensorFlow waits for other workers where no handler of Python's would be run.
    with interrupts.handled(signal.SIG_DFL, signal.SIGINT, signal.SIGTERM):
      workers.start(strategy)
    tf.config.list_logical_devices()


def say(line: str, always: bool = False) -> None:
  """Prints a line; workers other than the chief are silent but for what concerns them."""
  if always or workers.current().is_chief:
    print(line, flush=True)


def load_tensorflow_quietly(strategy: str = 'none') -> None:
  """`load_tensorflow` for tools that open many models in turn: each traces its functions once anew.

  TensorFlow takes that for careless retracing and warns; errors are still shown.
  """
  load_tensorflow(strategy)
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  tf.get_logger().setLevel('ERROR')


def define_method_flags() -> Tuple[List[str], List[str]]:
  """Defines the flags that choose methods and their most changed settings; returns the names of both kinds.

  Nothing here imports TensorFlow: registries name methods without loading them.
  """
  plain = config_rules.flatten(config_lib.default_config().to_dict())
  for name, field in config_lib.SHORT_FLAGS.items():
    rule = config_rules.RULES[field]
    text = f'{_HELP.get(name, "")}Sets config.{field} (default: {plain[field]!r}).'
    bounds: Dict[str, Any] = {'lower_bound': rule.low, 'upper_bound': rule.high}
    if rule.allowed():
      flags.DEFINE_enum(name, None, list(rule.allowed()), text)
    elif rule.kind is bool:
      flags.DEFINE_bool(name, None, text)
    elif rule.kind is int:
      flags.DEFINE_integer(name, None, text, **bounds)
    elif rule.kind is float:
      flags.DEFINE_float(name, None, text, **bounds)
    else:
      flags.DEFINE_string(name, None, text)
  flags.DEFINE_bool('sane', False, 'Short for --sampler=sane.')
  training = [name for name, field in config_lib.SHORT_FLAGS.items()
              if field.startswith(('train.', 'model.')) or name in ('seed', 'base_from', 'full_retrain')]
  return ['sane', *[name for name in config_lib.SHORT_FLAGS if name not in training]], training


def config_from_flags(log: Callable[[str], None] = print) -> config_dict.ConfigDict:
  """The configuration of --config with the method flags that were given, each field checked."""
  values = flags.FLAGS
  config = values.config
  given = {name: values[name].value for name in config_lib.SHORT_FLAGS if values[name].value is not None}
  if values.sane:
    if given.get('sampler', 'sane') != 'sane':
      raise UserError(f'--sane and --sampler={given["sampler"]} name different samplers: give one.')
    given['sane'] = 'sane'
  config_flag: Any = values['config']
  long = config_flag.override_values
  for name, value in given.items():
    field = config_lib.SHORT_FLAGS.get(name, 'sampler')
    if field in long and long[field] != value:
      short = '--sane' if name == 'sane' else f'--{name}={value}'
      raise UserError(f'{short} and --config.{field}={long[field]} disagree: give one.')
    config.update_from_flattened_dict({field: value})
  config_lib.resolved(config)
  named = {f'--{name}': config_lib.SHORT_FLAGS.get(name, 'sampler') for name in ['sane', *given] if name in given}
  named.update({f'--config.{field}': field for field in long})
  # Samplers import TensorFlow, which is not there yet: many mistakes can be told before.
  with importing() if named else contextlib.nullcontext():
    reasons = {flag: without_effect(config, field) for flag, field in named.items()}
  for flag, reason in reasons.items():
    if reason:
      log(f'note: {flag} has no effect with {reason}.')
  return config


def without_effect(config: config_dict.ConfigDict, field: str) -> Optional[str]:
  """The choice beside which a field means nothing, such as '--kd=none' for 'sgct.weight'; None if there is none."""
  from graphsane_tf import distillation, negatives  # pylint: disable=g-import-not-at-top
  section = field.partition('.')[0]
  if config.peer != 'none':
    return None if section in ('peer', 'blocks', 'evaluation', 'seed') else f'--peer={config.peer}'
  kd, sampler = f'--kd={config.kd}', f'--sampler={config.sampler}'
  # Sections and fields.
  idle = {**{name: kd for name in distillation.REGISTRY if name != config.kd},
          **{name: sampler for name in negatives.REGISTRY if name != config.sampler}}
  if config.kd not in ('sgct', 'lwckd'):
    idle['personal'] = kd
  if 'clusters' not in negatives.REGISTRY[config.sampler].flags:
    idle.update(dict.fromkeys(('clusters', 'clustering', 'sane_variant'), sampler))
  if config.sampler == 'uniform':
    idle.update(dict.fromkeys(('train.num_sampler_negatives', 'train.ranking'), sampler))
  for name in ('replay', 'memory'):
    if config[name] == 'none':
      idle[f'{name}_options'] = f'--{name}=none'
  if config.full_retrain:
    idle.update(dict.fromkeys([f'train.{name}' for name in (
        'learning_rate', 'epochs', 'min_epochs', 'epoch_zero', 'new_row_moments')], '--full_retrain'))
  if config.train.loss == 'bpr':
    idle['train.softmax_temperature'] = '--config.train.loss=bpr'
  if config.blocks.validation != 'share':
    idle['blocks.validation_share'] = f'--config.blocks.validation={config.blocks.validation}'
  return idle.get(section) or idle.get(field)


def log_recipes(path) -> Dict[str, Dict[str, Any]]:
  """The dict RECIPES of a configuration file such as configs/logs.py."""
  recipes = getattr(config_files.load_module(str(path), str(path)), 'RECIPES', None)
  if not isinstance(recipes, dict):
    raise UserError(f'{path} has no dict RECIPES of data flags by the name of a log.')
  return recipes


def datasets_flags(entries: Sequence[str], recipes: Dict[str, Dict[str, Any]], data_dir: str,
                   options: Dict[str, Any]) -> Dict[str, List[str]]:
  """Turns 'name' or 'name=PATH' into the data flags of `graphsane run`, by name.

  Args:
    entries: values of --datasets.
    recipes: data flags by the name of a log on disk.
    data_dir: folder of raw files and prepared copies.
    options: flags of data sets and their values; each goes to the data sets that have it.
  """
  flags_by_name: Dict[str, List[str]] = {}
  named = [name for name in SOURCES if not SOURCES[name].paths()]
  for entry in entries:
    name, _, path = entry.partition('=')
    if not re.fullmatch(r'[\w.-]*\w', name):
      raise UserError(f'--datasets={entry}: a name has only letters, digits, _, . and -.')
    if name in flags_by_name:
      raise UserError(f'--datasets names {name} twice: give each log a name of its own.')
    if not path and name not in named:
      near = config_rules.nearest(name, named).rstrip('.')
      raise UserError(f'--datasets={entry}: there is no data set {name}{near}, or give a log on disk as name=PATH.')
    if path and not os.path.exists(path):
      raise UserError(f'--datasets={entry}: {path} does not exist.')
    if path:
      source, more = ['--dataset=csv', f'--interactions={path}'], recipes.get(name, {})
    else:
      own = SOURCES[name].flags(name)
      source, more = [f'--dataset={name}'], {flag: value for flag, value in options.items() if flag in own}
    flags_by_name[name] = [*source, f'--data_dir={data_dir}', *[f'--{flag}={value}' for flag, value in more.items()]]
  return flags_by_name
