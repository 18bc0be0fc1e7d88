"""A short run with a method: it trains, and goes on to the same numbers after it was killed."""
import contextlib
import pathlib
import shutil
from typing import Any, Dict, List, Tuple

from graphsane_tf import traced
from graphsane_tf.runs import incremental
from graphsane_tf.testing import logs

# How a method of each kind is chosen in a configuration.
CHOICES = {'sampler': {'sampler': '{}'}, 'distiller': {'kd': '{}'}, 'backbone': {'backbone': '{}'},
           'replay policy': {'replay': '{}'}, 'clustering': {'clusters': '{}', 'sampler': 'sane'}}


def config_with(kind: str, name: str):
  """A configuration that trains with a method in seconds."""
  changes = {field: value.format(name) for field, value in CHOICES[kind].items()}
  return logs.tiny_config(**{'backbone': 'lightgcn', 'blocks__num_incremental': 2, **changes})


def check_resumes(config, log, folder: pathlib.Path, own_traces: bool = False) -> Tuple[Dict[str, Any], List[str]]:
  """A run that was killed after the first epoch of block 1 ends with the numbers of one that was not.

  Args:
    config: two blocks, two epochs each.
    log: the log.
    folder: for the runs: 'whole', and 'cut', which is the killed one.
    own_traces: whether the killed one does without traces of other blocks, which must not change a number either.

  Returns:
    The results, and what the killed run said when it went on.
  """
  def copy_after_an_epoch(line):
    if line.startswith('block 1 epoch  1/'):
      shutil.copytree(folder / 'whole', folder / 'cut')

  whole = incremental.run(config, log, folder / 'whole', log=copy_after_an_epoch)
  lines: List[str] = []
  with traced.alone() if own_traces else contextlib.nullcontext():
    cut = incremental.run(config, log, folder / 'cut', log=lines.append)
  assert [line[:16] for line in lines if line.startswith('block 1 epoch')] == ['block 1 epoch  2']
  for one, other in zip(whole['blocks'], cut['blocks']):
    assert one['test'] == other['test'] and one['on_blocks'] == other['on_blocks']
  return whole, lines
