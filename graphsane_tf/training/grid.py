"""Many runs that share base models: one process a cell, finished cells are read, not run again."""
import concurrent.futures
import dataclasses
import pathlib
import subprocess
import sys
import time
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from graphsane_tf import files
from graphsane_tf.errors import UserError

# Rows of the paper's main table: label and flags; a star marks SANE.
MAIN = (
    ('Fine Tune', ()),
    ('LSP_s', ('--kd=lsp',)),
    ('Uniform', ('--replay=uniform',)),
    ('Inv_degree', ('--replay=inverse_degree',)),
    ('GraphSAIL', ('--kd=graphsail',)),
    ('GraphSAIL-SANE*', ('--kd=graphsail', '--sane')),
    ('SGCT', ('--kd=sgct',)),
    ('SGCT-SANE*', ('--kd=sgct', '--sane')),
    ('LWC-KD', ('--kd=lwckd',)),
    ('LWC-KD-SANE*', ('--kd=lwckd', '--sane')),
)
# Rows of its sampler table, with plain SGCT (uniform) and two samplers more.
SAMPLERS = tuple(
    (f'SGCT+[{label}]', ('--kd=sgct', f'--sampler={name}')) for label, name in (
        ('Uniform', 'uniform'), ('WARP', 'warp'), ('PinSage', 'pinsage'), ('PNS', 'pns'),
        ('NS Cache', 'nscaching'), ('DeMix', 'demix'), ('ESNS', 'esns'), ('DNS', 'dns'),
        ('SANE', 'sane')))
TABLES = {'main': MAIN, 'samplers': SAMPLERS}


@dataclasses.dataclass(frozen=True)
class Cell:
  """One run of the grid.

  Attributes:
    dataset: name of the data set.
    seed: its seed.
    label: row of the table; 'base' for the run that trains the shared base block.
    folder: its run folder.
    flags: its command line, without the folder and the base.
    base: folder of the run whose base block it takes over, None for that run itself.
  """
  dataset: str
  seed: int
  label: str
  folder: pathlib.Path
  flags: Tuple[str, ...]
  base: Optional[pathlib.Path]

  @property
  def command(self) -> List[str]:
    script = pathlib.Path(__file__).resolve().parents[2] / 'experiments' / 'run_incremental.py'
    shared = ['--block=0'] if self.base is None else [f'--base_from={self.base}']
    return [sys.executable, str(script), *self.flags, *shared, f'--workdir={self.folder}']

  def results(self) -> Optional[Dict]:
    """What the finished cell measured, or None."""
    path = self.folder / 'results.json'
    if not path.exists():
      return None
    results = files.read_json(path)
    wanted = 1 if self.base is None else results['config']['blocks']['num_incremental']
    return results if len(results['blocks']) >= wanted else None


def cells(tables: Sequence[str], datasets: Dict[str, Sequence[str]], seeds: int, workdir,
          extra: Sequence[str] = ()) -> List[Cell]:
  """The cells of some tables, base blocks first, each run once even if two tables show it.

  Args:
    tables: names in `TABLES`.
    datasets: name to data flags.
    seeds: seeds 0 to seeds - 1.
    workdir: folder of the grid.
    extra: flags for every cell.
  """
  found = {}
  for dataset, data_flags in datasets.items():
    for seed in range(seeds):
      place = pathlib.Path(workdir) / dataset / f'seed{seed}'
      common = (*data_flags, f'--seed={seed}', *extra)
      base = Cell(dataset, seed, 'base', place / 'base', common, None)
      found[base.folder] = base
      for table in tables:
        for label, flags in TABLES[table]:
          name = '-'.join(flag.strip('-').replace('sampler=', '').replace('kd=', '')
                          .replace('replay=', 'replay_') for flag in flags) or 'fine_tune'
          name = name.removesuffix('-uniform') if name.startswith('sgct') else name
          cell = Cell(dataset, seed, label, place / name, (*common, *flags), base.folder)
          found.setdefault(cell.folder, cell)
  return list(found.values())


def run(todo: Sequence[Cell], jobs: int = 1, log: Callable[[str], None] = print) -> None:
  """Runs the cells that are not finished; a cut-off cell goes on where it was.

  Args:
    todo: cells; base cells are run before the others.
    jobs: processes at once.
    log: takes a line for the screen.
  """
  waiting = [cell for cell in todo if cell.results() is None]
  log(f'{len(todo) - len(waiting)} of {len(todo)} cells are finished already.')
  started, done = time.monotonic(), 0
  for group in ([c for c in waiting if c.base is None], [c for c in waiting if c.base is not None]):
    with concurrent.futures.ThreadPoolExecutor(max(1, jobs)) as pool:
      futures = {pool.submit(_run_cell, cell): cell for cell in group}
      for future in concurrent.futures.as_completed(futures):
        seconds = future.result()
        done += 1
        left = (time.monotonic() - started) / done * (len(waiting) - done)
        cell = futures[future]
        log(f'{done}/{len(waiting)}  {cell.dataset}  seed {cell.seed}  {cell.label}  '
            f'{seconds:.0f} s, about {left / 60:.0f} min left')


def _run_cell(cell: Cell) -> float:
  started = time.monotonic()
  files.make_directory(cell.folder.parent)
  with open(cell.folder.parent / f'{cell.folder.name}.log', 'a', encoding='utf-8') as stream:
    code = subprocess.run(cell.command, stdout=stream, stderr=subprocess.STDOUT, check=False).returncode
  if code:
    raise UserError(f'cell {cell.folder} ended with code {code}; its output is in '
                    f'{cell.folder.parent / cell.folder.name}.log.')
  return time.monotonic() - started
