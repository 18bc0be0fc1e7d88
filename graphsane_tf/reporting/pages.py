"""Tables as pages of a documentation: with the command and the code that made them, and read back for a summary."""
import collections
import pathlib
import re
from typing import Any, Dict, List, Sequence, Tuple

from graphsane_tf import files
from graphsane_tf.errors import UserError
from graphsane_tf.reporting import figures, machine, outputs
from graphsane_tf.reporting.comparison import FinishedGrid
from graphsane_tf.reporting.tables import Shown

# Of a page's picture, in pixels.
_PICTURE_WIDTH = 520
# What a reader needs to know of a machine.
_MACHINE = ('cores', 'memory', 'processor', 'python', 'tensorflow')


def write(folder, shown: Shown, done: FinishedGrid, command: str) -> pathlib.Path:
  """Writes a table as <stem>.md, and its pictures as <stem>.svg, <stem>-2.svg, ... where the paper has a figure.

  Args:
    folder: of the pages.
    shown: the table.
    done: the grid that it was built from, whose results tell version and commit.
    command: what makes it.
  """
  datasets = [shown.dataset] if shown.dataset else done.datasets
  cells = {cell for dataset in datasets for row in shown.source.rows for cell in done.of(dataset, row).values()}
  pictures = shown.source.pictures(figures.Figures(), shown) if shown.source.figure else []
  return write_tables(pathlib.Path(folder) / f'{shown.stem}.md', shown.title, command, [shown.table], shown.note,
                      [done.results(cell) for cell in cells], pictures)


def write_tables(path: pathlib.Path, title: str, command: str, tables: Sequence[Dict[str, Any]], note: str,
                 results: Sequence[Dict[str, Any]], pictures: Sequence[Tuple[str, str]] = ()) -> pathlib.Path:
  """Writes a page of tables.

  Args:
    path: of the page.
    title: its heading.
    command: what makes it.
    tables: 'heads' and 'cells' of each.
    note: below them.
    results: of the runs behind them, which tell version and commit.
    pictures: SVG and caption of each, above the tables; files beside the page.
  """
  files.make_directory(path.parent)
  lines = [f'# {title}', '', '```bash', command, '```', '']
  for number, (svg, caption) in enumerate(pictures, start=1):
    place = path.with_name(f'{path.stem}{f"-{number}" if number > 1 else ""}.svg')
    files.write_text(place, svg.replace('<svg', f'<svg width="{_PICTURE_WIDTH}"', 1) + '\n')
    lines += [f'![{caption}]({place.name})', '']
  for table in tables:
    lines += [*_table(table), '']
  files.write_text(path, '\n'.join([*lines, note, '', made(results)]) + '\n')
  return path


def _table(table: Dict[str, Any]) -> List[str]:
  """The lines of a table in Markdown."""
  return outputs.markdown(table, '').splitlines()[2:]


def made(results: Sequence[Dict[str, Any]]) -> str:
  """By which code runs were made, from their results, and on which machine this is written."""
  counts = collections.Counter((entry.get('version') or 'unknown', entry.get('commit') or 'unknown')
                               for entry in results)
  code = ', '.join(f'version {version}, commit {commit} ({count} {"run" if count == 1 else "runs"})'
                   for (version, commit), count in sorted(counts.items()))
  facts = machine.describe()
  return (f'Made by {code or "no run"}. Written on a machine with '
          f'{", ".join(f"{name} {facts[name]}" for name in _MACHINE if name in facts)}; seconds are those of the '
          'machines that ran, with whatever else ran there.')


def read(path) -> Dict[str, Any]:
  """Heads and cells of a page's first table, as text.

  Raises:
    UserError: if it has none, or a line with too few cells.
  """
  path = pathlib.Path(path)
  found = re.search(r'^\|.*\n\|[-:| ]+\|\n(?:\|.*\n?)*', path.read_text('utf-8'), re.M)
  if not found:
    raise UserError(f'{path} has no table.')
  heads, _, *cells = [[cell.strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
                      for line in found[0].strip().splitlines()]
  if any(len(row) != len(heads) for row in cells):
    raise UserError(f'{path} has a line with fewer or more cells than heads.')
  return {'heads': heads, 'cells': cells}


def fill(path, name: str, text: str) -> None:
  """Puts text into a page, between `<!-- name: ... -->` and `<!-- end of name -->`.

  Raises:
    UserError: if the page does not have these two lines, once each.
  """
  path = pathlib.Path(path)
  before = path.read_text('utf-8')
  after, count = re.subn(rf'(<!-- {name}: .*? -->\n).*?(<!-- end of {name} -->)',
                         lambda found: f'{found[1]}\n{text.strip()}\n\n{found[2]}', before, flags=re.S)
  if count != 1:
    raise UserError(f'{path} has {count} places for {name}: it needs one, from <!-- {name}: what it is --> to '
                    f'<!-- end of {name} -->.')
  files.write_text(path, after)
