"""Tables as Markdown, CSV and JSON files."""
import csv
import io
import pathlib
from typing import Any, Dict, Optional

from graphsane_tf import files


def text(head: str, value: Any) -> str:
  """A cell for people: four digits for metrics, fewer where they mean nothing; '' for None."""
  if value is None:
    return ''
  if not isinstance(value, float):
    return str(value)
  if head in ('p', 'p (Holm)', 'value'):
    return f'{value:.4g}' if head == 'value' else f'{value:.2g}'
  if '%' in head:
    return f'{value:+.1f}'
  if head in ('s/block', 's to best', 'epochs to best', 'rebuilds/block'):
    return f'{value:.1f}'
  return f'{value:.2f}' if head.startswith(('published ', 'ratio')) or abs(value) >= 1 else (
      f'{value:.4f}')


def markdown(table: Dict[str, Any], title: str, note: str = '') -> str:
  """The table as Markdown; a bar in a cell is escaped."""
  def line(cells):
    return '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |'
  lines = [f'**{title}**', '', line(table['heads']), '|' + '---|' * len(table['heads'])]
  lines += [line([text(h, v) for h, v in zip(table['heads'], row)]) for row in table['cells']]
  return '\n'.join(lines + (['', note] if note else [])) + '\n'


def write(folder, stem: str, table: Dict[str, Any], title: str, note: str = '',
          data: Optional[Any] = None) -> str:
  """Writes <stem>.md, .csv and .json into a folder; returns the Markdown.

  Args:
    folder: where.
    stem: name of the files.
    table: 'heads' and 'cells'.
    title: above the Markdown table.
    note: below it.
    data: what the JSON file holds beside the table.
  """
  folder = pathlib.Path(folder)
  shown = markdown(table, title, note)
  stream = io.StringIO()
  writer = csv.writer(stream, lineterminator='\n')
  writer.writerow(table['heads'])
  writer.writerows([['' if value is None else value for value in row] for row in table['cells']])
  files.write_text(folder / f'{stem}.md', shown)
  files.write_text(folder / f'{stem}.csv', stream.getvalue())
  files.write_json(folder / f'{stem}.json', {'title': title, 'note': note, **table, 'data': data})
  return shown
