"""The complete examples of docs/extending.md, added to the package as the text says."""
import importlib.util
import pathlib
import re
import textwrap

from graphsane_tf import config as config_lib
from tests import logs
from tests.distillation import oracles

_GUIDE = pathlib.Path(__file__).resolve().parents[1] / 'docs' / 'extending.md'


def add_example(title: str, package, monkeypatch, folder: pathlib.Path):
  """Adds a chapter's example: its file, its section of the configuration and its registry line.

  Args:
    title: heading of the chapter.
    package: what has the registry.
    monkeypatch: pytest's, which takes everything back.
    folder: where the example's file is written.

  Returns:
    The class that was registered.
  """
  fill, register = _functions(title, folder)
  plain = config_lib.default_config

  def with_section():
    c = plain()
    fill(c)
    return c

  for module in (config_lib, oracles, logs):
    monkeypatch.setattr(module, 'default_config', with_section)
  monkeypatch.setattr(package, 'REGISTRY', dict(package.REGISTRY))
  register(package.REGISTRY)
  return list(package.REGISTRY.values())[-1]


def _functions(title: str, folder: pathlib.Path):
  """fill(c) and register(REGISTRY), with a chapter's three pieces of code as one module."""
  chapter = _GUIDE.read_text().split(f'## {title}\n')[1].split('\n## ')[0]
  file, section, line = re.findall(r'```python\n(.*?)```', chapter, re.DOTALL)
  functions = (('fill', 'c', section), ('register', 'REGISTRY', line))
  source = '\n'.join([file, 'from ml_collections import config_dict', *(
      f'\ndef {name}({argument}):\n{textwrap.indent(body, "  ")}'
      for name, argument, body in functions)])
  path = folder / 'example_of_the_guide.py'
  path.write_text(source)
  spec = importlib.util.spec_from_file_location(path.stem, path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module.fill, module.register
