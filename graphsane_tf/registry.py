"""Methods by name: those of the package, and whatever a user's own file registers.

A file of the user's own, outside the package, adds a method with a decorator:

    from graphsane_tf import config_rules, negatives
    from graphsane_tf.negatives.base import NegativeSampler

    @negatives.REGISTRY.register('mypop', power=(0.5, config_rules.WEIGHT))
    class MyPopularity(NegativeSampler):
      ...

Its options become a section of the configuration, here `--config.mypop.power`; docs/extending.md has a whole file
for each kind of method.

`--plugin=path/to/file.py` executes it before the flags are read, and an installed package is found by its entry
point in the group `graphsane_tf.plugins`. Both are Python code that runs with the user's rights.
"""
import difflib
import hashlib
import importlib
import os
import pathlib
import re
from collections.abc import Mapping
from importlib import metadata
from typing import Any, Callable, Dict, Iterator, Optional, Tuple, TypeVar

from graphsane_tf import config_files, config_rules
from graphsane_tf.errors import UserError

ENTRY_POINTS = 'graphsane_tf.plugins'
# All that were made, by kind.
REGISTRIES: Dict[str, 'Registry'] = {}

Registered = TypeVar('Registered')


class Registry(Mapping):
  """Names of one kind of method. What belongs to the package is imported when it is first asked for."""

  def __init__(self, kind: str, package: Optional[Dict[str, str]] = None, section: str = ''):
    """Names the package's own.

    Args:
      kind: what is registered, for messages: 'sampler', say.
      package: name to 'module:attribute' of what the package brings.
      section: of the configuration, below which the options of methods are; '' is the whole of it.
    """
    self.kind = kind
    self._section = f'{section}.' if section else ''
    self._places: Dict[str, str] = dict(package or {})
    self._loaded: Dict[str, Any] = {}
    REGISTRIES[kind] = self

  def register(self, name: str, **options: Tuple[Any, Any]) -> Callable[[Registered], Registered]:
    """A decorator that adds what it decorates under a name.

    Args:
      name: what it is called in flags and configurations.
      **options: fields of its section in the configuration, `--config.NAME.FIELD`: the default and a
        `config_rules.Rule` each.

    Raises:
      UserError: if the name is taken, or what is registered is not complete.
    """
    def add(registered: Registered) -> Registered:
      called = getattr(registered, '__name__', str(registered))
      if not re.fullmatch(r'[A-Za-z]\w*', name):
        raise UserError(f'{name!r} is no name for a {self.kind}: give {called} one of letters, digits and _.')
      # The same file may be executed again, by a notebook or by a test.
      if name in self._places or name in self._loaded and _origin(self._loaded[name]) != _origin(registered):
        raise UserError(f'there is a {self.kind} called {name} already: choose another name for {called}.')
      lacking = sorted(getattr(registered, '__abstractmethods__', ()))
      if lacking:
        raise UserError(f'the {self.kind} {name} lacks {", ".join(lacking)}: {called} must define '
                        f'{"them" if lacking[1:] else "it"}.')
      self.forget(name)
      if options:
        config_rules.add_section(self._section + name, options)
      self._loaded[name] = registered
      return registered
    return add

  def forget(self, name: str) -> None:
    """Takes back what was registered from outside the package, if it was, with its options."""
    if name in self.own():
      del self._loaded[name]
      config_rules.remove_section(self._section + name)

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


def _origin(registered: Any) -> Tuple[Any, Any]:
  """Where something was defined."""
  return getattr(registered, '__module__', None), getattr(registered, '__qualname__', None)


def load_plugin(path) -> None:
  """Executes a Python file that registers methods.

  Args:
    path: the file.

  Raises:
    UserError: if it is not there, or fails.
  """
  place = hashlib.sha256(os.fsencode(pathlib.Path(path).resolve())).hexdigest()[:8]
  config_files.load_module(str(path), f'--plugin={path}', f'graphsane_tf_plugin_{pathlib.Path(path).stem}_{place}')


def load_entry_points() -> None:
  """Imports the installed packages that register methods."""
  for point in metadata.entry_points(group=ENTRY_POINTS):
    try:
      point.load()
    except Exception as error:  # pylint: disable=broad-except
      kind = '' if isinstance(error, UserError) else f'{type(error).__name__}: '
      raise UserError(f'the installed plugin {point.name} ({point.value}) fails: {kind}'
                      f'{" ".join(str(error).split()).rstrip(".")}.') from error
