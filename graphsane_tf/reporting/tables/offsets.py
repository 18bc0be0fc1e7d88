"""A memory that is joined after training, against one that is also an offset inside the loss."""
from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import FINE_TUNE
from graphsane_tf.runs.grid import Row

# Without a memory, whatever the flags of the whole grid say: `--extra=--config=strong` has one.
_BPR = Row('BPR', {**FINE_TUNE.overrides, 'train.loss': 'bpr', 'memory': 'none'})
_AFTER = Row('BPR, memory after training', {**_BPR.overrides, 'memory': 'ease'}, partner=_BPR)
_SOFTMAX = Row('Softmax', {**FINE_TUNE.overrides, 'train.loss': 'softmax', 'memory': 'none'}, partner=_BPR)


class Offsets(Table):
  """Recall of each block, a line a way of joining graph model and memory. `--extra=--config=strong`.

  An offset goes with triplet losses only.
  """
  title = 'A memory after training, and inside the loss'
  rows = (_BPR, _AFTER,
          *(Row(f'BPR, memory in the loss, offset {share:g}',
                {**_AFTER.overrides, 'memory_options.offset': share}, partner=_AFTER) for share in (.3, 1., 3.)),
          _SOFTMAX, Row('Softmax, memory after training', {**_SOFTMAX.overrides, 'memory': 'ease'}, partner=_AFTER))
