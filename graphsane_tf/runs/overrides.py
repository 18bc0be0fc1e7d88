"""What a row of a table changes of the configuration: as flags, as a folder's name, and nothing twice.

Overrides are dicts from the dotted name of a field to its value, {'kd': 'sgct', 'sane.size': 50}.
"""
import hashlib
import re
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from absl import flags
from ml_collections import config_dict, config_flags

from graphsane_tf import config_files
from graphsane_tf.config import SHORT_FLAGS, default_config, resolved
from graphsane_tf.errors import UserError
from graphsane_tf.runs.workdir import flatten

# Two spellings of the same choice.
_SAME = {'--sane': '--sampler=sane'}
# Fields whose value alone says enough in the name of a folder, with what stands before it.
_NAMED_BY_VALUE = {'kd': '', 'sampler': '', 'replay': 'replay_'}
# Sections whose fields stand there without the section; where two have the same field, the first.
_UNNAMED_SECTIONS = ('sane', 'clustering')
_LONGEST_NAME = 120


def text(value: Any) -> str:
  """A value as a flag takes it: 0.0 is '0', (10, 5) is '(10,5)'."""
  if isinstance(value, (tuple, list)):
    return f'({",".join(map(text, value))})'
  return repr(value).removesuffix('.0') if isinstance(value, float) else str(value)


def as_flags(overrides: Mapping[str, Any]) -> List[str]:
  return [f'--config.{name}={text(value)}' for name, value in overrides.items()]


def setting(flag: str) -> Tuple[str, str]:
  """What a flag sets, 'config.FIELD' or another flag's name, and to which text."""
  name, given, value = _SAME.get(flag, flag).lstrip('-').partition('=')
  if name in SHORT_FLAGS:
    name = f'config.{SHORT_FLAGS[name]}'
  return name, value if given else 'True'


def settings(given: Sequence[str]) -> Dict[str, str]:
  """What flags mean together: a later one counts, and spelling does not."""
  return dict(map(setting, given))


def joined(given: Sequence[str]) -> List[str]:
  """Flags as one word each: '--epochs', '3' become '--epochs=3'."""
  words: List[str] = []
  for word in given:
    if words and not re.match(r'--?[a-zA-Z]', word):
      words[-1] += f'={word}'
    else:
      words.append(word)
  return words


class Start:
  """The configuration that overrides change: the default, or what the flags of every run make of it."""

  def __init__(self, extra: Sequence[str] = ()):
    """Reads the flags.

    Args:
      extra: flags of every run; those that say nothing about the configuration do not matter.

    Raises:
      UserError: if they set what the configuration does not have.
    """
    long: List[str] = []
    short: List[str] = []
    for flag in extra:
      name, value = setting(flag)
      if re.match(r'config(\.|$)', name):
        (long if flag.lstrip('-').startswith('config') else short).append(f'--{name}={value}')
    # On the command line a short flag counts before a long one, wherever it stands.
    arguments = ['', *long, *short]
    values = flags.FlagValues()
    options = {'flag_values': values, 'sys_argv': arguments}
    try:
      named = [flag.partition('=')[2] for flag in long if flag.startswith('--config=')]
      arguments[:] = [flag for flag in arguments if not flag.startswith('--config=')]
      start = config_files.load_config(named[-1]) if named else default_config()
      config_flags.DEFINE_config_dict('config', start, **options)
      values(arguments)
      self._config = values.config.to_dict()
    except UserError as error:
      raise UserError(f'{" ".join(extra)}: {error}') from error
    except (KeyError, AttributeError) as error:
      field = str(error.args[0]).strip('"\'').split("'")[0]
      raise UserError(f'{" ".join(extra)}: the configuration has no field {field!r}; graphsane_tf/config.py '
                      'lists them.') from error
    except (flags.Error, TypeError, ValueError, OSError) as error:
      raise UserError(f'{" ".join(extra)}: {" ".join(str(error).split())}.') from error
    # Choices of methods first, as people say it: sgct-sane-size=50.
    self._fields = list(dict.fromkeys([*SHORT_FLAGS.values(), *flatten(self._config)]))
    self._made: Dict[Tuple[Tuple[str, str], ...], Dict[str, Any]] = {}

  def _with(self, overrides: Mapping[str, Any]) -> Dict[str, Any]:
    """Every field of the configuration that the overrides make."""
    key = tuple((name, repr(value)) for name, value in overrides.items())
    if key not in self._made:
      config = config_dict.ConfigDict(self._config, type_safe=False)
      config.update_from_flattened_dict(dict(overrides))
      self._made[key] = flatten(resolved(config).to_dict())
    return self._made[key]

  def needed(self, overrides: Mapping[str, Any]) -> Dict[str, Any]:
    """The overrides that make a difference, in an order that does not depend on theirs.

    Raises:
      UserError: if one of them is no field, or they contradict each other.
    """
    for name in overrides:
      if name not in self._fields:
        raise UserError(f'the configuration has no field {name}; graphsane_tf/config.py lists them.')
    left = {name: overrides[name] for name in self._fields if name in overrides}
    whole = self._with(left)
    for name in list(left):
      fewer = {other: value for other, value in left.items() if other != name}
      try:
        if self._with(fewer) == whole:
          left = fewer
      except UserError:
        # Without this one the others contradict each other.
        continue
    return left

  def folder_name(self, overrides: Mapping[str, Any]) -> str:
    """Short name of a run with these overrides; what makes no difference is not in it."""
    parts = []
    for name, value in self.needed(overrides).items():
      last = name.split('.')[-1]
      owner = next((section for section in _UNNAMED_SECTIONS if f'{section}.{last}' in self._fields), '')
      if name in _NAMED_BY_VALUE:
        parts.append(f'{_NAMED_BY_VALUE[name]}{value}')
      elif value is True and '.' not in name:
        parts.append(name)
      else:
        parts.append(f'{last if name == f"{owner}.{last}" else name}={text(value)}')
    whole = '-'.join(parts)
    if len(whole) > _LONGEST_NAME:
      whole = f'{whole[:_LONGEST_NAME - 9]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}'
    return re.sub(r'[^\w.,=+-]', '_', whole) or 'fine_tune'
