"""The flags of every tool that reads a data set, defined once."""
import dataclasses
from typing import Any, Dict, List

from absl import flags

from graphsane_tf.data import SOURCES
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError

_FILTERS = ('min_user_interactions', 'min_item_interactions', 'min_rating', 'duplicates')


def _options() -> Dict[str, dataclasses.Field]:
  """The options of all data sets by flag."""
  return {flag: field for name in reversed(list(SOURCES)) for flag, field in SOURCES[name].flags(name).items()}


def define_option(flag: str, flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Defines the flag of one option of a data set."""
  field = _options()[flag]
  default: Any = field.default
  text = field.metadata.get('text', '')
  to: Dict[str, Any] = {'flag_values': flag_values}
  if field.metadata.get('choices'):
    flags.DEFINE_enum(flag, default, list(field.metadata['choices']), text, **to)
  elif isinstance(default, bool):
    flags.DEFINE_bool(flag, default, text, **to)
  elif isinstance(default, int):
    flags.DEFINE_integer(flag, default, text, lower_bound=field.metadata.get('low'), **to)
  elif isinstance(default, float):
    flags.DEFINE_float(flag, default, text, lower_bound=field.metadata.get('low'), **to)
  else:
    flags.DEFINE_string(flag, default, text, **to)


def define(flag_values: flags.FlagValues = flags.FLAGS) -> List[str]:
  """Defines the data flags and returns their names; a second call defines nothing anew."""
  names = ['dataset', *_options(), *_FILTERS, 'data_dir', 'download']
  if 'dataset' in flag_values:
    return names
  to: Dict[str, Any] = {'flag_values': flag_values}
  flags.DEFINE_enum('dataset', 'drift', list(SOURCES), 'The data set.', **to)
  flags.DEFINE_string('data_dir', 'data', 'Folder of raw files and prepared copies.', **to)
  flags.DEFINE_bool('download', False, 'Fetch missing raw files where the owner allows it.', **to)
  for what in ('user', 'item'):
    flags.DEFINE_integer(f'min_{what}_interactions', None, f'Drop {what}s with fewer rows.',
                         lower_bound=1, **to)
  flags.DEFINE_float('min_rating', None, 'Keep rows with at least this rating.', **to)
  flags.DEFINE_enum('duplicates', None, ['first', 'last'],
                    'Which row of a repeated (user, item) pair stays, by time.', **to)
  for flag in _options():
    define_option(flag, flag_values)
  return names


def from_flags(flag_values: flags.FlagValues = flags.FLAGS) -> Dict[str, Any]:
  """Turns parsed flags into keyword arguments of `prepare.load`.

  Raises:
    UserError: if an option of another data set was given.
  """
  dataset = flag_values.dataset
  own = SOURCES[dataset].flags(dataset)
  for name in SOURCES:
    for flag, field in SOURCES[name].flags(name).items():
      if flag not in own and flag_values[flag].value != field.default:
        raise UserError(f'--{flag} goes with --dataset={name}, but the data set is {dataset}; leave one of them out.')
  spec = DataSpec(dataset, {name: flag_values[name].value for name in _FILTERS},
                  {field.name: flag_values[flag].value for flag, field in own.items()})
  return {'spec': spec, 'data_dir': flag_values.data_dir, 'download': flag_values.download}
