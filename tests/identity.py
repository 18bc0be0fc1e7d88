"""Shows that a change of the code changes no number: every method, before and after, bit for bit.

  python tests/identity.py --tree=OLD_CHECKOUT --folder=before
  python tests/identity.py --tree=. --folder=after
  python tests/identity.py --compare before after

`--only=kd_lsp,sampled` takes a few of them.

Each method runs on the small `drift` log through the command line of its checkout. What is compared is
results.json without times, versions and places.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

COMMON = ['--dataset=drift', '--drift_size=small', '--embedding_dim=16', '--batch_size=512', '--base_epochs=3',
          '--epochs=3', '--config.train.min_epochs=3', '--config.blocks.num_incremental=3']
METHODS = {
    'fine_tune': [],
    **{f'kd_{name}': [f'--kd={name}'] for name in ('lsp', 'graphsail', 'sgct', 'lwckd')},
    'kd_sgct_personal': ['--kd=sgct', '--config.personal.strength=2.0'],
    **{f'replay_{name}': [f'--replay={name}'] for name in ('uniform', 'inverse_degree')},
    **{f'sampler_{name}': [f'--sampler={name}'] for name in (
        'warp', 'pns', 'pinsage', 'nscaching', 'esns', 'demix', 'dns', 'sane')},
    **{f'sane_{name}': ['--kd=sgct', '--sane', f'--sane_variant={name}'] for name in ('paper', 'adaptive')},
    **{f'clusters_{name}': ['--sane', f'--clusters={name}'] for name in ('kmeans', 'categories')},
    'sane_soft': ['--sane', '--config.sane.soft_membership=True'],
    'sane_candidates': ['--sane', '--config.sane.candidates=2'],
    'sampled': ['--sane', '--kd=sgct', '--config.model.propagation=sampled'],
    'new_rows': ['--config.model.new_rows=neighbours'],
    'full_retrain': ['--full_retrain'],
    **{f'backbone_{name}': [f'--backbone={name}', '--kd=sgct', '--sane'] for name in ('lightgcn', 'pinsage')},
    'pinsage_lwckd': ['--backbone=pinsage', '--kd=lwckd'],
}
# What tells of the machine, the clock or the version, not of the method; `sampler` was `sampler_seconds` once.
_TIMES = ('train_seconds', 'reservoir_seconds', 'sampler_seconds', 'version', 'commit', 'config', 'data')


def timeless(value):
  """A copy without the fields that say nothing about a method."""
  if isinstance(value, dict):
    return {name: timeless(part) for name, part in value.items() if name not in _TIMES}
  return [timeless(part) for part in value] if isinstance(value, list) else value


def run(tree: pathlib.Path, folder: pathlib.Path, methods) -> None:
  """Runs what is not in the folder yet."""
  folder.mkdir(parents=True, exist_ok=True)
  environment = {**os.environ, 'PYTHONPATH': str(tree)}
  for name, flags in methods.items():
    kept = folder / f'{name}.json'
    if kept.exists():
      continue
    work = folder / 'runs' / name
    command = [sys.executable, str(tree / 'experiments' / 'run_incremental.py'), *COMMON, *flags,
               f'--workdir={work}', '--overwrite']
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    kept.write_text(json.dumps(timeless(json.loads((work / 'results.json').read_text())), indent=1))
    print(name, flush=True)


def compare(one: pathlib.Path, other: pathlib.Path, methods) -> int:
  """Prints a line a method; returns how many differ."""
  different = 0
  for name in methods:
    before, after = (json.loads((folder / f'{name}.json').read_text())['blocks'] for folder in (one, other))
    different += before != after
    print(f'{name:20} {"identical" if before == after else "DIFFERENT"}  block 2 test recall@20 '
          f'{before[-1]["test"]["recall@20"]!r} {after[-1]["test"]["recall@20"]!r}')
  print(f'{len(methods) - different} of {len(methods)} methods are bit-identical.')
  return different


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--tree', type=pathlib.Path, default='.', help='checkout to run')
  parser.add_argument('--folder', type=pathlib.Path, help='where its results go')
  parser.add_argument('--compare', type=pathlib.Path, nargs=2, help='two such folders')
  parser.add_argument('--only', help='names of methods, with commas between')
  arguments = parser.parse_args()
  methods = {name: METHODS[name] for name in (arguments.only.split(',') if arguments.only else METHODS)}
  if arguments.compare:
    sys.exit(bool(compare(*arguments.compare, methods)))
  run(arguments.tree.resolve(), arguments.folder.resolve(), methods)


if __name__ == '__main__':
  main()
