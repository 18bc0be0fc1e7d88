"""Regenerates tables of the paper for the data sets at hand.

  python experiments/reproduce.py --what=main --datasets=drift --seeds=3
  python experiments/reproduce.py --what=samplers --datasets=gowalla=gowalla.csv.gz --seeds=3
"""
import pathlib
import shlex

from absl import flags

from graphsane_tf import cli, files
from graphsane_tf.reporting import comparison
from graphsane_tf.training import grid

_WHAT = flags.DEFINE_list('what', ['main'], f'Tables: {", ".join(grid.TABLES)} or all.')
_DATASETS = flags.DEFINE_list('datasets', ['drift'], 'Names, or name=PATH for a log on disk.')
_SEEDS = flags.DEFINE_integer('seeds', 1, 'Seeds 0 to this minus one.', lower_bound=1)
_WORKDIR = flags.DEFINE_string('workdir', 'runs/reproduce', 'Folder of the grid and its tables.')
_DATA_DIR = flags.DEFINE_string('data_dir', 'data', 'Folder of raw files and prepared copies.')
_JOBS = flags.DEFINE_integer('jobs', 1, 'Processes at once.', lower_bound=1)
_DRIFT_SIZE = flags.DEFINE_string('drift_size', 'default', 'Size of the generated drift log.')
_EXTRA = flags.DEFINE_string('extra', '', 'Further flags for every run, as one string.')
_DRY_RUN = flags.DEFINE_bool('dry_run', False, 'Print the cells and train nothing.')


def main():
  tables = list(grid.TABLES) if 'all' in _WHAT.value else _WHAT.value
  for name in tables:
    if name not in grid.TABLES:
      cli.fail(f'--what={name} is not a table; there are {", ".join(grid.TABLES)} and all.')
  recipes = cli.log_recipes(pathlib.Path(__file__).resolve().parents[1] / 'configs' / 'logs.py')
  datasets = dict(
      cli.dataset_flags(entry, recipes, _DATA_DIR.value, _DRIFT_SIZE.value)
      for entry in _DATASETS.value)
  cells = grid.cells(tables, datasets, _SEEDS.value, _WORKDIR.value, shlex.split(_EXTRA.value))
  if _DRY_RUN.value:
    for cell in cells:
      print(('done     ' if cell.results() else 'to do    ') + shlex.join(cell.command[1:]))
    return
  grid.run(cells, _JOBS.value, log=lambda line: print(line, flush=True))
  for name in tables:
    labels = [label for label, _ in grid.TABLES[name]]
    for dataset in datasets:
      rows = comparison.rows(cells, labels, dataset, reference=labels[0])
      text = comparison.markdown(rows, f'{name}, {dataset}, test Recall@20, seeds 0 to {_SEEDS.value - 1}')
      files.write_text(pathlib.Path(_WORKDIR.value) / f'{name}-{dataset}.md', text)
      files.write_json(pathlib.Path(_WORKDIR.value) / f'{name}-{dataset}.json', rows)
      print('\n' + text)


if __name__ == '__main__':
  cli.run(main)
