"""Compares the folders of two runs, file by file."""
import json
import math
import pathlib

import numpy as np
import tensorflow as tf

# Times and speeds differ from run to run, digests cover files in which times are, and a commit may come in between.
_TIMES = ('seconds', 'train_seconds', 'sampler_seconds', 'pairs_per_second', 'sha256', 'files', 'commit')
# TensorBoard's files are named by time, host and process; a kill may cost one epoch's entry.
# run.lock holds a process id. Functions in saved_model.pb are numbered by what the process has traced
# before; what they compute with is compared. Data files of checkpoints are read through their index.
_LEFT_OUT = ('tensorboard/', 'run.lock', 'saved_model.pb', 'fingerprint.pb', '.data-00000-of-00001')


def names(folder):
  """Every file below a folder."""
  folder = pathlib.Path(folder)
  return sorted(path.relative_to(folder).as_posix() for path in folder.rglob('*') if path.is_file()
                and 'tensorboard/' not in path.relative_to(folder).as_posix())


def _same_trees(mine, other, where):
  if isinstance(mine, dict):
    assert isinstance(other, dict) and list(mine) == list(other), where
    for name, value in mine.items():
      if name not in _TIMES:
        _same_trees(value, other[name], f'{where}/{name}')
  elif isinstance(mine, list):
    assert isinstance(other, list) and len(mine) == len(other), where
    for place, (left, right) in enumerate(zip(mine, other)):
      _same_trees(left, right, f'{where}/{place}')
  elif '/losses/' in where or where.endswith('/first_loss'):
    # Losses for the screen are sums over stretches of steps whose lengths follow the clock.
    assert math.isclose(mine, other, rel_tol=1e-6), (where, mine, other)
  else:
    assert mine == other, (where, mine, other)


def _tensors(index):
  reader = tf.train.load_checkpoint(str(index).removesuffix('.index'))
  # The object graph names variables by what else the process has made.
  return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()
          if key != '_CHECKPOINTABLE_OBJECT_GRAPH'}


def _same_arrays(mine, other, where):
  assert set(mine) == set(other), where
  for name in mine:
    np.testing.assert_array_equal(mine[name], other[name], err_msg=f'{where}: {name}')


def assert_same(folder, other):
  """Both folders have the same files with the same contents, bit for bit, apart from times."""
  folder, other = pathlib.Path(folder), pathlib.Path(other)
  assert names(folder) == names(other)
  for name in names(folder):
    mine, theirs = folder / name, other / name
    if any(part in name for part in _LEFT_OUT):
      continue
    if name.endswith('.json'):
      _same_trees(json.loads(mine.read_text()), json.loads(theirs.read_text()), name)
    elif name.endswith('.jsonl'):
      _same_trees(*([json.loads(line) for line in path.read_text().splitlines()]
                    for path in (mine, theirs)), name)
    elif name.endswith('.npz'):
      with np.load(mine) as left, np.load(theirs) as right:
        _same_arrays(dict(left), dict(right), name)
    elif name.endswith('.index'):
      _same_arrays(_tensors(mine), _tensors(theirs), name)
    else:
      assert mine.read_bytes() == theirs.read_bytes(), name
