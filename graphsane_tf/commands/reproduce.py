"""Regenerates the paper's tables and figures for the data sets at hand."""
import pathlib
import shlex
import sys

from absl import flags

from graphsane_tf import cli, files
from graphsane_tf.data import flags as data_flags
from graphsane_tf.errors import UserError

HELP = "The paper's tables and figures, and our own, for the data sets at hand."
EXAMPLES = ('graphsane reproduce --what=main --datasets=drift --seeds=3',
            'graphsane reproduce --what=all --datasets=gowalla=gowalla.csv.gz --dry_run')
AFTER = ('--helpfull lists the tables; --what=all is every one of the paper. Finished runs are read, not run again, '
         'so the same command goes on after an interruption. A plugin may bring a table of its own.')


def define():
  from graphsane_tf.reporting import tables  # pylint: disable=g-import-not-at-top
  flags.DEFINE_list('what', ['main'], f'Tables: {", ".join(tables.REGISTRY)}, or all.')
  flags.DEFINE_list('datasets', ['drift'], 'Names, or name=PATH for a log on disk.')
  flags.DEFINE_integer('seeds', 1, 'Seeds 0 to this minus one.', lower_bound=1)
  flags.DEFINE_string('workdir', 'runs/reproduce', 'Folder of the grid and its tables.')
  flags.DEFINE_string('data_dir', 'data', 'Folder of raw files and prepared copies.')
  flags.DEFINE_string('recipes', None, 'Python file with a dict RECIPES of data flags by the name of a log; '
                      'configs/logs.py shows one.')
  flags.DEFINE_integer('jobs', 1, 'Processes at once (with --ray: one a core of the cluster).', lower_bound=1)
  flags.DEFINE_string('ray', None, "Address of a Ray cluster that runs the cells, one a core, or 'local'; all nodes "
                      'see the same folders.')
  data_flags.define_option('drift_size')
  flags.DEFINE_string('extra', '', 'Further flags for every run, as one string.')
  flags.DEFINE_bool('dry_run', False, 'Print the cells with an estimate, train nothing.')
  flags.DEFINE_bool('tables_only', False, 'Only write what the finished cells give.')
  flags.DEFINE_string('write', None, 'Folder into which each table is written as a page, too, with its command and the '
                      'versions and commits of its runs.')
  return {'tables': ['what', 'seeds', 'tables_only', 'write'],
          'data': ['datasets', 'recipes', 'drift_size', 'data_dir'],
          'runs': ['jobs', 'ray', 'extra', 'dry_run', 'workdir']}


def _command(what: str) -> str:
  """The command that makes one table, without what differs from machine to machine."""
  values = flags.FLAGS
  names = [f'{name}={pathlib.PurePath(path).name}' if path else name
           for name, _, path in (entry.partition('=') for entry in values.datasets)]
  words = [f'--what={what}', f'--datasets={",".join(names)}', f'--seeds={values.seeds}']
  words += [f'--{name}={values[name].value}' for name in ('drift_size', 'extra') if values[name].present]
  words += [f'--plugin={pathlib.PurePath(path).name}' for path in values.plugin]
  return shlex.join(['graphsane', 'reproduce', *words])


def main():
  from graphsane_tf import configs  # pylint: disable=g-import-not-at-top
  from graphsane_tf.reporting import outputs, tables  # pylint: disable=g-import-not-at-top
  from graphsane_tf.reporting.comparison import FinishedGrid  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs import grid  # pylint: disable=g-import-not-at-top
  values = flags.FLAGS
  log = lambda line: print(line, flush=True)
  selected = tables.select(values.what)
  try:
    extra = shlex.split(values.extra)
  except ValueError as error:
    raise UserError(f'--extra={values.extra}: {error}; quote it as a shell would.') from error
  recipes = cli.log_recipes(values.recipes or pathlib.Path(configs.__file__).with_name('logs.py'))
  datasets = cli.datasets_flags(values.datasets, recipes, values.data_dir, {'drift_size': values.drift_size})
  cells = grid.cells(tables.rows_of(selected), datasets, values.seeds, values.workdir, extra, values.plugin)
  if values.dry_run:
    log(grid.plan(cells, values.jobs))
    return
  if values.write:
    # Before a grid of hours, not after it.
    files.make_directory(values.write)
  failed = {}
  if not values.tables_only:
    places = None
    if values.ray:
      from graphsane_tf.runs import cluster  # pylint: disable=g-import-not-at-top
      places = cluster.Cluster(values.ray)
    failed = grid.run(cells, values.jobs, log, places)
  cli.load_tensorflow_quietly()
  from graphsane_tf.reporting import analyses, pages, report  # pylint: disable=g-import-not-at-top
  done = FinishedGrid(cells, extra)
  studied = analyses.Analyses(done, values.data_dir, log)
  shown = [part for table in selected for part in table.build(done, studied)]
  for part in shown:
    log('\n' + outputs.write(values.workdir, part.stem, part.table, part.title, part.note, part.data))
    if values.write:
      pages.write(values.write, part, done, _command(part.source.name))
  path = report.write(values.workdir, done, shown, studied, values.data_dir)
  log(f'report    {path}')
  problems = [*[f'{cell.folder}: {why}' for cell, why in failed.items()],
              *[f'{what}: {why}' for what, why in studied.problems.items()]]
  if problems:
    print('\n'.join([f'{len(problems)} failed:', *problems]), file=sys.stderr, flush=True)
    sys.exit(1)
