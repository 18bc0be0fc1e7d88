"""Regenerates the paper's tables and figures for the data sets at hand.

  python experiments/reproduce.py --what=main --datasets=drift --seeds=3
  python experiments/reproduce.py --what=all --datasets=drift,gowalla=gowalla.csv.gz --dry_run

Finished runs are read, not run again, so the same command goes on after an interruption.
"""
import pathlib
import shlex
import sys

from absl import flags

from graphsane_tf import cli, registry
from graphsane_tf.errors import UserError
from graphsane_tf.reporting import outputs, tables
from graphsane_tf.reporting.comparison import FinishedGrid
from graphsane_tf.runs import grid

_WHAT = flags.DEFINE_list('what', ['main'], f'Tables: {", ".join(tables.REGISTRY)}, one of a --plugin, or all.')
_PLUGIN = flags.DEFINE_multi_string('plugin', [], 'Python file that registers methods or tables; may be repeated.')
_DATASETS = flags.DEFINE_list('datasets', ['drift'], 'Names, or name=PATH for a log on disk.')
_SEEDS = flags.DEFINE_integer('seeds', 1, 'Seeds 0 to this minus one.', lower_bound=1)
_WORKDIR = flags.DEFINE_string('workdir', 'runs/reproduce', 'Folder of the grid and its tables.')
_DATA_DIR = flags.DEFINE_string('data_dir', 'data', 'Folder of raw files and prepared copies.')
_JOBS = flags.DEFINE_integer('jobs', 1, 'Processes at once.', lower_bound=1)
_DRIFT_SIZE = flags.DEFINE_enum('drift_size', 'default', ['small', 'default', 'large'],
                                'Size of the generated drift log.')
_EXTRA = flags.DEFINE_string('extra', '', 'Further flags for every run, as one string.')
_DRY_RUN = flags.DEFINE_bool('dry_run', False, 'Print the cells with an estimate, train nothing.')
_TABLES_ONLY = flags.DEFINE_bool('tables_only', False, 'Only write what the finished cells give.')


def main():
  log = lambda line: print(line, flush=True)
  registry.load_entry_points()
  for path in _PLUGIN.value:
    registry.load_plugin(path)
  selected = tables.select(_WHAT.value)
  try:
    extra = shlex.split(_EXTRA.value)
  except ValueError as error:
    raise UserError(f'--extra={_EXTRA.value}: {error}; quote it as a shell would.') from error
  recipes = cli.log_recipes(pathlib.Path(__file__).resolve().parents[1] / 'configs' / 'logs.py')
  datasets = cli.datasets_flags(_DATASETS.value, recipes, _DATA_DIR.value, _DRIFT_SIZE.value)
  cells = grid.cells(tables.rows_of(selected), datasets, _SEEDS.value, _WORKDIR.value, extra, _PLUGIN.value)
  if _DRY_RUN.value:
    log(grid.plan(cells, _JOBS.value))
    return
  failed = {} if _TABLES_ONLY.value else grid.run(cells, _JOBS.value, log)
  cli.load_tensorflow_quietly()
  from graphsane_tf.reporting import analyses, report  # pylint: disable=g-import-not-at-top
  done = FinishedGrid(cells, extra)
  studied = analyses.Analyses(done, _DATA_DIR.value, log)
  shown = [part for table in selected for part in table.build(done, studied)]
  for part in shown:
    log('\n' + outputs.write(_WORKDIR.value, part.stem, part.table, part.title, part.note, part.data))
  path = report.write(_WORKDIR.value, done, shown, studied, _DATA_DIR.value)
  log(f'report    {path}')
  problems = [*[f'{cell.folder}: {why}' for cell, why in failed.items()],
              *[f'{what}: {why}' for what, why in studied.problems.items()]]
  if problems:
    print('\n'.join([f'{len(problems)} failed:', *problems]), file=sys.stderr, flush=True)
    sys.exit(1)


if __name__ == '__main__':
  cli.run(main)
