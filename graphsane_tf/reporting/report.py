"""The report: one self-contained HTML file of a grid."""
import json
import pathlib
from typing import Dict, List, Sequence, Tuple

from graphsane_tf import files
from graphsane_tf.data import prepare
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.blocks import describe
from graphsane_tf.errors import UserError
from graphsane_tf.reporting import figures, html, machine, wording
from graphsane_tf.reporting.comparison import FinishedGrid
from graphsane_tf.reporting.tables import Shown
from graphsane_tf.reporting.tables.main import CURVES, EXAMPLES


def write(workdir, done: FinishedGrid, shown: Sequence[Shown], analyses, data_dir) -> pathlib.Path:
  """Writes report.html into the grid's folder.

  Args:
    workdir: the folder.
    done: the grid.
    shown: its tables.
    analyses: an `analyses.Analyses`, for example users.
    data_dir: folder of prepared copies, for the data statistics.

  Returns:
    The file.
  """
  path = pathlib.Path(workdir) / 'report.html'
  drawn = figures.Figures()
  sections = [(title, parts) for title, parts in (
      *_tables(drawn, shown),
      ('Learning curves', _curves(drawn, done)),
      ('Users whose interests moved', _examples(drawn, done, analyses)),
      ('Protocol audit', _audit(done)),
      ('Tuning', _tuning(workdir)),
      ('Data', _data(done, data_dir)),
      ('Configuration', _configuration(done)),
      ('Machine', _machine())) if parts]
  told = [sentence for table in shown for sentence in table.source.sentences(table)]
  first = (html.bullets(wording.scope(done, [table.source.title for table in shown]))
           + '<h3>What the numbers say</h3>'
           + html.bullets(told or ['No table has enough finished runs to conclude anything.']))
  title = f'GraphSANE on {", ".join(done.datasets)}'
  files.write_text(path, html.page(title, first, sections))
  return path


def _tables(drawn: figures.Figures, shown: Sequence[Shown]) -> List[Tuple[str, List[str]]]:
  """One section a kind of table, in order."""
  sections: Dict[str, List[str]] = {}
  for table in shown:
    parts = sections.setdefault(table.source.title, [])
    parts += [f'<h3>{html.escape(table.title)}</h3>', html.table(table.table, table.best)]
    parts.append(html.paragraph(table.note, 'note'))
    parts.append(html.paragraph(f'Files: {table.stem}.md, .csv, .json beside this report.', 'note'))
    parts.append(html.pictures([html.picture(svg, caption)
                                for svg, caption in table.source.pictures(drawn, table)]))
  return list(sections.items())


def _curves(drawn: figures.Figures, done: FinishedGrid) -> List[str]:
  parts = []
  for dataset in done.datasets:
    curves = {}
    for row in CURVES:
      cells = done.of(dataset, row)
      if cells:
        cell = cells[min(cells)]
        curves[row.label] = done.records(cell)
    if curves:
      parts.append(html.picture(drawn.learning_curves(curves),
                                f'Validation Recall@20 by epoch, {dataset}, first seed'))
  return [html.pictures(parts)] if parts else []


def _examples(drawn: figures.Figures, done: FinishedGrid, analyses) -> List[str]:
  parts = []
  for dataset in done.datasets:
    for user in analyses.examples(dataset) if analyses else []:
      items = ', '.join(user['reservoir']['item'][:5])
      shift = sum(abs(value) for value in user['shift']) / 2
      parts.append(html.picture(drawn.user(user), (
          f'{dataset}, user {user["user"]}, block {user["block"]}: share of each category in the '
          f'user\'s interactions, in the reservoir and in the negatives drawn from it. '
          f'{100 * shift:.0f} % of the interactions moved to other categories. The reservoir '
          f'begins with {items}.')))
  if not parts:
    return []
  return [html.paragraph(f'The users of {EXAMPLES.label}\'s last block with the largest shift (at least '
                         'four interactions in both blocks).', 'note'), html.pictures(parts)]


def _audit(done: FinishedGrid) -> List[str]:
  parts = []
  for cell in done.cells:
    path = cell.folder / 'audit.json'
    if path.exists():
      audit = files.read_json(path)
      parts += [f'<h3>{html.escape(f"{cell.dataset}, seed {cell.seed}, {cell.name}")}</h3>',
                html.table(audit), html.paragraph(audit['note'], 'note')]
  return parts


def _tuning(workdir) -> List[str]:
  parts = []
  for path in sorted(pathlib.Path(workdir).glob('**/tune.json')):
    tuned = files.read_json(path)
    parts += [f'<h3>{html.escape(path.parent.name)}</h3>', html.table(tuned),
              html.paragraph(tuned['note'], 'note')]
  return parts


def _data(done: FinishedGrid, data_dir) -> List[str]:
  parts = []
  for dataset in done.datasets:
    cell = next((c for c in done.cells if c.dataset == dataset and c not in done.missing()), None)
    if cell is None:
      continue
    data = files.read_json(cell.folder / 'config.json')['data']
    spec = DataSpec.from_json(data)
    try:
      log = prepare.load(spec, data_dir, log=lambda line: None)
      text = describe.describe(log, spec.dataset)
    except UserError as error:
      text = f'the log could not be read: {error}'
    parts += [f'<h3>{html.escape(dataset)}</h3>', f'<pre>{html.escape(text)}</pre>', html.paragraph(
        f'Read with {spec.words()}; fingerprint {data["fingerprint"][:16]}.', 'note')]
  return parts


def _configuration(done: FinishedGrid) -> List[str]:
  """What each run was given, and one whole configuration."""
  finished = [cell for cell in done.cells if cell not in done.missing() and (cell.base is not None or cell.alone)]
  if not finished:
    return []
  def choices(cell):
    return [flag for flag in cell.flags
            if not flag.startswith(('--data_dir', '--interactions', '--seed'))]
  parts = []
  for dataset in done.datasets:
    mine = {cell.name: choices(cell) for cell in finished if cell.dataset == dataset}
    common = [flag for flag in next(iter(mine.values()), [])
              if all(flag in flags for flags in mine.values())]
    cells = [[name, ' '.join(flag for flag in flags if flag not in common) or '(nothing more)']
             for name, flags in mine.items()]
    parts += [f'<h3>{html.escape(dataset)}</h3>',
              html.paragraph(f'Flags of every run: {" ".join(common) or "none"}'),
              html.table({'heads': ['run', 'and these flags'], 'cells': cells})]
  whole = done.results(finished[0])['config']
  return [*parts, html.folded(f'every field of {finished[0].dataset}/{finished[0].name}',
                              json.dumps(whole, indent=2))]


def _machine() -> List[str]:
  cells = [[name, value] for name, value in machine.describe().items()]
  return [html.table({'heads': ['machine', 'value'], 'cells': cells}),
          html.paragraph('The machine that wrote this report. Times in the tables are those of the '
                         'machine that ran the cells, with whatever else ran there.', 'note')]
