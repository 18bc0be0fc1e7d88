"""Runs configuration files; what is wrong with them becomes one sentence with the file and the line."""
import importlib.machinery
import importlib.util
import inspect
import os
import pathlib
import re
import sys
import traceback
import types
from typing import Any, Callable, Dict, Optional, Sequence

from ml_collections import config_dict

from graphsane_tf import config as config_lib
from graphsane_tf import config_rules
from graphsane_tf import configs
from graphsane_tf.errors import UserError


def _call(function: Callable[..., Any], *arguments: Any, file: str, line: Optional[int] = 0,
          whole: bool = False) -> Any:
  """function(*arguments), whose exceptions become a `UserError` that names the file and the line.

  Args:
    function: part of the file, or what runs it.
    *arguments: its arguments.
    file: the file.
    line: the line to name if the exception did not come through the file; 0 names none.
    whole: whether the sentence of a `UserError` is whole without the file and the line.
  """
  try:
    return function(*arguments)
  # A file may raise anything, and one that ends the program would end it without a word.
  except (Exception, SystemExit) as error:  # pylint: disable=broad-except
    if whole and isinstance(error, UserError):
      raise
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == file), line)
    text = str(error)
    if isinstance(error, SyntaxError):
      text = error.msg
      line = error.lineno if error.filename == file else line
    place = f'{file}, line {line}' if line else file
    kind = '' if isinstance(error, UserError) else f'{type(error).__name__}: '
    raise UserError(f'{place}: {kind}{" ".join(text.split()).rstrip(".")}.') from error


class _Source(importlib.machinery.SourceFileLoader):
  """Without a cache of compiled code, which misses a file that is changed twice within a second."""

  def get_code(self, fullname):
    return self.source_to_code(self.get_data(self.path), self.path)


def load_module(file: str, flag: str, name: str = 'config_file') -> types.ModuleType:
  """Runs a Python file; what is wrong with it is a `UserError`.

  Args:
    file: its path.
    flag: how it was given, for the sentence if it is not there.
    name: of the module.
  """
  if not os.path.isfile(file):
    what = 'is not a file' if os.path.exists(file) else 'does not exist'
    raise UserError(f'{flag} {what}; give the path of a Python file.')
  loader = _Source(name, file)
  spec = importlib.util.spec_from_loader(loader.name, loader)
  assert spec is not None  # It has a loader.
  module = importlib.util.module_from_spec(spec)
  # Dataclasses look their module up by name.
  sys.modules[loader.name] = module
  _call(loader.exec_module, module, file=file)
  return module


def load_config(path: str) -> config_dict.ConfigDict:
  """The configuration that get_config() of a file returns.

  Args:
    path: the file or the name of a set in `graphsane_tf/configs`; with :argument for a get_config(argument).

  Raises:
    UserError: if that fails, or if the result has not the fields of a configuration.
  """
  file, *argument = path.split(':', 1)
  sets = {named.stem: named for named in sorted(pathlib.Path(configs.__file__).parent.glob('[a-z]*.py'))
          if 'def get_config(' in named.read_text('utf-8')}
  if file in sets:
    file = str(sets[file])
  elif re.fullmatch(r'\w+', file) and not os.path.exists(file):
    near = config_rules.nearest(file, sets).rstrip('.')
    raise UserError(f'--config={path} does not exist{near}, or give the path of a Python file.')
  module = load_module(file, f'--config={path}')
  function = getattr(module, 'get_config', None)
  if not callable(function):
    raise UserError(f'{file} has no function get_config(); copy configs/default.py and change it.')
  code = getattr(inspect.unwrap(function), '__code__', None)
  line = code.co_firstlineno if code else 0
  config = _call(function, *argument, file=file, line=line, whole=True)
  if not isinstance(config, config_dict.ConfigDict) or isinstance(
      config, config_dict.FrozenConfigDict):
    raise UserError(f'{file}, line {line}: get_config() returned a {type(config).__name__}; it must '
                    'return graphsane_tf.config.default_config() with changes.')
  try:
    config_rules.check_names(_fields(config), _fields(config_lib.default_config()))
  except UserError as error:
    raise UserError(f'{file}, line {line}: {error}') from error
  return config


def _fields(config: config_dict.ConfigDict) -> Dict[str, Any]:
  return config_rules.flatten(config.to_dict())


def check_overrides(config: config_dict.ConfigDict, arguments: Sequence[str]) -> None:
  """Raises a `UserError` for a --config.field among the arguments that the configuration has not."""
  fields = _fields(config)
  for argument in arguments:
    flag = argument.partition('=')[0]
    name = re.match(r'--?(?:no)?config\.(.*)', flag)
    if name and name[1] not in fields:
      inside = [field for field in fields if field.startswith(f'{name[1]}.')]
      raise UserError(
          f'{flag} is a section: set its fields, such as --config.{inside[0]}, one by one.' if inside
          else f'{flag}: the configuration has no field {name[1]!r}'
          f'{config_rules.suggestion(name[1], fields)}')
