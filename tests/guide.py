"""The files and the commands of docs/extending.md."""
import pathlib
import re
from typing import Dict, List

ROOT = pathlib.Path(__file__).resolve().parents[1]
_GUIDE = ROOT / 'docs' / 'extending.md'


def files() -> Dict[str, str]:
  """Name to text of every file that the guide has."""
  chapters = re.split(r'^## ', _GUIDE.read_text('utf-8'), flags=re.M)
  named = {chapter: re.match(r'.*: `(\w+\.py)`\n', chapter) for chapter in chapters}
  return {name[1]: re.search(r'```python\n(.*?)```', chapter, re.S)[1] for chapter, name in named.items() if name}


def write(folder: pathlib.Path) -> List[pathlib.Path]:
  """Writes the files into a folder."""
  for name, text in files().items():
    (folder / name).write_text(text, 'utf-8')
  return [folder / name for name in files()]


def commands() -> List[List[str]]:
  """The words of every command."""
  blocks = re.findall(r'```bash\n(.*?)```', _GUIDE.read_text('utf-8'), re.S)
  return [line.split() for block in blocks for line in block.splitlines()]
