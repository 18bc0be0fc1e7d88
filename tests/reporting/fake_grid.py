"""A finished grid on disk that was never trained: plausible numbers, known answers."""
import json

import numpy as np

from graphsane_tf import files
from graphsane_tf.evaluation.metrics import METRICS, Options
from graphsane_tf.runs import grid

NUM_USERS = 40
# Gain of cells with SANE over the others.
GAIN = .1
# Users with a real shift, and what reversing the prior costs them.
SHIFTED = np.arange(NUM_USERS) % 4 == 0
LOSS = .2


def recall_of(cell: grid.Cell, block: int) -> np.ndarray:
  """[NUM_USERS] test metric of a cell's block: SANE is GAIN better for every user."""
  rng = np.random.default_rng([cell.seed, block])
  plain = .1 + .05 * rng.random(NUM_USERS)
  if 'prior_sign=1' in cell.name:
    plain = plain * np.where(SHIFTED, 1 - LOSS, 1.)
  return plain * (1 + GAIN if 'sane' in cell.name else 1.)


def write_cell(cell: grid.Cell, blocks: int = 3, seconds: float = 5.) -> None:
  """Writes what a finished run leaves that tables and report read."""
  entries, records = [], []
  last = 0 if cell.base is None and not cell.alone else blocks
  for block in range(last + 1):
    values = recall_of(cell, block)
    names = [f'{metric}@{k}' for metric in METRICS for k in Options().cutoffs]
    entries.append({'block': block, 'test': {name: float(values.mean()) for name in names},
                    'train_seconds': seconds, 'epochs': 3, 'best_epoch': 2 - block % 2})
    if 'adaptive' in cell.name:
      entries[-1]['sampler'] = {'first_rank': 10 * block + cell.seed, 'size': 300,
                                'concentration': 4. + cell.seed}
    folder = files.make_directory(cell.folder / 'per_user')
    np.savez(folder / f'block_{block}.npz', user=np.arange(NUM_USERS), shifted=SHIFTED,
             **dict.fromkeys(names, values))
    records += [{'block': block, 'epoch': epoch, 'validation': {'recall@20': .1 + .01 * epoch}, 'seconds': 1. + epoch}
                for epoch in (1, 2, 3)]
  average = {name: float(np.mean([entry['test'][name] for entry in entries[1:]]))
             for name in (entries[0]['test'] if last else {})}
  files.write_text(cell.folder / 'metrics.jsonl', '\n'.join(map(json.dumps, records)) + '\n')
  identity = {'config': {'blocks': {'num_incremental': blocks + 1}, 'seed': cell.seed,
                         'sampler': 'sane' if 'sane' in cell.name else 'uniform', 'sane': {'refresh_epochs': 2}},
              'data': {'dataset': cell.dataset, **({'drift_size': 'small'} if cell.dataset == 'drift' else {}),
                       'fingerprint': 'f' * 32}}
  files.write_json(cell.folder / 'config.json', identity)
  files.write_json(cell.folder / 'results.json',
                   {'blocks': entries, 'average': average, **identity})
