"""Negative samplers on SGCT."""
from graphsane_tf.reporting import wording
from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.runs.grid import Row

UNIFORM = Row('SGCT+Uniform', {'kd': 'sgct', 'sampler': 'uniform'})
_OTHERS = {'WARP': 'warp', 'PinSage': 'pinsage', 'PNS': 'pns', 'NS Cache': 'nscaching', 'DeMix': 'demix',
           'ESNS': 'esns', 'DNS': 'dns'}
SANE = Row('SGCT+SANE', {'kd': 'sgct', 'sampler': 'sane'}, partner=UNIFORM)
ROWS = (UNIFORM, *(Row(f'SGCT+{label}', {'kd': 'sgct', 'sampler': name}, partner=UNIFORM)
                   for label, name in _OTHERS.items()), SANE)


class Samplers(Table):
  """Recall of each block, a line a sampler."""
  title = 'Negative samplers on SGCT'
  rows = ROWS
  published = ('samplers',)
  in_paper = True

  def sentences(self, shown):
    return wording.best(shown.dataset, 'sampler on SGCT', shown.data)
