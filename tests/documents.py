"""The commands, flags and fields that README.md and the pages of docs name."""
import pathlib
import re
import shlex
from typing import Dict, List

from graphsane_tf.commands import COMMANDS

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = (ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', *sorted((ROOT / 'docs').glob('**/*.md')))


def commands(page: pathlib.Path) -> List[List[str]]:
  """The words of every command in a page's blocks of shell, in order."""
  blocks = re.findall(r'^```bash\n(.*?)^```', page.read_text('utf-8'), re.S | re.M)
  lines = [line for block in blocks for line in block.replace('\\\n', ' ').splitlines()]
  found = []
  for line in lines:
    words = shlex.split(line, comments=True)
    # A setting of the environment may stand before a command.
    while words and re.match(r'[A-Z_]+=', words[0]):
      words.pop(0)
    found += [words] if words else []
  return found


def recipe(target: str) -> List[List[str]]:
  """The commands of a target of the Makefile."""
  found = re.search(rf'^{target}:.*\n((?:\t.*\n)+)', (ROOT / 'Makefile').read_text('utf-8'), re.M)
  return [shlex.split(line.replace('$(BIN)/', '')) for line in found[1].splitlines()] if found else []


def scripts() -> Dict[str, str]:
  """The path of each script that is a command of graphsane, and which one."""
  found = {path: re.search(r"^  start\('(\w+)'\)", path.read_text('utf-8'), re.M)
           for path in (ROOT / 'experiments').glob('*.py')}
  return {f'experiments/{path.name}': match[1] for path, match in found.items() if match}


def as_graphsane(words: List[str]) -> List[str]:
  """`graphsane run ...` for `python experiments/run_incremental.py ...`; [] for what is no command of graphsane."""
  if words[0] == 'graphsane' and words[1] in COMMANDS:
    return words[1:]
  if words[0] == 'python' and words[1] in scripts():
    return [scripts()[words[1]], *words[2:]]
  return []


def without_blocks(page: pathlib.Path) -> str:
  """A page's text without its blocks of code."""
  return re.sub(r'^```.*?^```', '', page.read_text('utf-8'), flags=re.S | re.M)
