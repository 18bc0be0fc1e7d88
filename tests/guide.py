"""The complete examples of docs/extending.md, added to the package as the text says."""
import importlib.util
import pathlib
import re
import textwrap

_GUIDE = pathlib.Path(__file__).resolve().parents[1] / 'docs' / 'extending.md'


def chapter_code(title: str, folder: pathlib.Path):
  """Turns a chapter's three pieces of code (file, configuration, registry line) into a module.

  Args:
    title: heading of the chapter.
    folder: where the module's file is written.

  Returns:
    fill(c), which adds the section to a configuration, and register(REGISTRY).
  """
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
