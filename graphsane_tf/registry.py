"""Methods by name: those of the package, and whatever a user's own file registers.

A file of the user's own, outside the package, adds a method with a decorator:

    from graphsane_tf import negatives
    from graphsane_tf.negatives.base import NegativeSampler

    @negatives.REGISTRY.register('mypop', power=(0.5, config_rules.WEIGHT))
    class MyPopularity(NegativeSampler):
      ...

Its options become a section of the configuration, here `--config.mypop.power`.

`--plugin=path/to/file.py` executes it before the flags are read, and an installed package is found by its entry
point in the group `graphsane_tf.plugins`. Both are Python code that runs with the user's rights.
"""
import difflib
import importlib
import importlib.util
import pathlib
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any, Callable, Dict, Iterator, Optional, Tuple, TypeVar

from graphsane_tf import config_rules
from graphsane_tf.errors import UserError

ENTRY_POINTS = 'graphsane_tf.plugins'

Registered = TypeVar('Registered')


class Registry(Mapping):
  """Names of one kind of method. What belongs to the package is imported when it is first asked for."""

  def __init__(self, kind: str, package: Optional[Dict[str, str]] = None):
    """Names the package's own.

    Args:
      kind: what is registered, for messages: 'sampler', say.
      package: name to 'module:attribute' of what the package brings.
    """
    self.kind = kind
    self._places: Dict[str, str] = dict(package or {})
    self._loaded: Dict[str, Any] = {}

  def register(self, name: str, **options: Tuple[Any, Any]) -> Callable[[Registered], Registered]:
    """A decorator that adds what it decorates under a name.

    Args:
      name: what it is called in flags and configurations.
      **options: fields of its section in the configuration, `--config.NAME.FIELD`: the default and a
        `config_rules.Rule` each.
    """
    def add(registered: Registered) -> Registered:
      known = self._loaded.get(name)
      # The same file may be executed again, by a notebook or by a test.
      if name in self._places or known is not None and (
          getattr(known, '__qualname__', None) != getattr(registered, '__qualname__', None)):
        raise UserError(f'there is a {self.kind} called {name} already: choose another name for '
                        f'{getattr(registered, "__name__", registered)}.')
      self._loaded[name] = registered
      if options:
        config_rules.add_section(name, options)
      return registered
    return add

  def __getitem__(self, name: str) -> Any:
    if name not in self._loaded:
      if name not in self._places:
        near = difflib.get_close_matches(str(name), list(self), 1)
        raise UserError(f'there is no {self.kind} called {name!r}{f"; did you mean {near[0]}?" if near else ":"} '
                        f'choose from {", ".join(self)}.')
      module, _, attribute = self._places[name].partition(':')
      self._loaded[name] = getattr(importlib.import_module(module), attribute)
    return self._loaded[name]

  def __contains__(self, name: object) -> bool:
    return name in self._places or name in self._loaded

  def __iter__(self) -> Iterator[str]:
    return iter(dict.fromkeys([*self._places, *self._loaded]))

  def __len__(self) -> int:
    return len(list(iter(self)))

  def own(self) -> Dict[str, Any]:
    """What was registered from outside the package, by name."""
    return {name: value for name, value in self._loaded.items() if name not in self._places}


def load_plugin(path) -> None:
  """Executes a Python file that registers methods.

  Args:
    path: the file.

  Raises:
    UserError: if it is not there, or fails.
  """
  path = pathlib.Path(path)
  name = f'graphsane_tf_plugin_{path.stem}'
  spec = importlib.util.spec_from_file_location(name, path)
  if path.suffix != '.py' or not path.is_file() or spec is None or spec.loader is None:
    raise UserError(f'--plugin={path} is not a Python file: give the path of a file that ends in .py.')
  module = importlib.util.module_from_spec(spec)
  # Known to `sys.modules`, as dataclasses and Keras ask for.
  sys.modules[name] = module
  try:
    spec.loader.exec_module(module)
  except UserError:
    raise
  except Exception as error:
    line = _line_in(path, error)
    raise UserError(f'--plugin={path}{line} fails: {type(error).__name__}: '
                    f'{" ".join(str(error).split())}.') from error


def load_entry_points() -> None:
  """Imports the installed packages that register methods."""
  for point in metadata.entry_points(group=ENTRY_POINTS):
    try:
      point.load()
    except UserError:
      raise
    except Exception as error:
      raise UserError(f'the installed plugin {point.name} ({point.value}) fails: {type(error).__name__}: '
                      f'{" ".join(str(error).split())}.') from error


def _line_in(path: pathlib.Path, error: BaseException) -> str:
  """', line n' of the last frame in a file, or of the syntax error in it."""
  if isinstance(error, SyntaxError):
    return f', line {error.lineno}'
  trace, line = error.__traceback__, ''
  while trace is not None:
    if trace.tb_frame.f_code.co_filename == str(path.absolute()):
      line = f', line {trace.tb_lineno}'
    trace = trace.tb_next
  return line
