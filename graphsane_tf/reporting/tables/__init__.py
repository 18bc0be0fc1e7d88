"""The tables of `experiments/reproduce.py`, one file each.

A table of the user's own is a class in a file outside the package; `--plugin=FILE --what=mine` shows it:

    from graphsane_tf.reporting import tables

    PLAIN = tables.Row('Uniform', {'kd': 'sgct'})

    @tables.REGISTRY.register('mine')
    class Mine(tables.Table):
      title = 'My sampler on SGCT'
      rows = (PLAIN, tables.Row('Mine', {'kd': 'sgct', 'sampler': 'mypop'}, partner=PLAIN))
"""
from typing import List, Sequence

from graphsane_tf import config_rules
from graphsane_tf.errors import UserError
from graphsane_tf.registry import Registry
from graphsane_tf.reporting.tables.base import Shown, Table
from graphsane_tf.runs.grid import Row

_PACKAGE = 'graphsane_tf.reporting.tables'
# In the order of the paper.
REGISTRY = Registry('table', {
    'main': f'{_PACKAGE}.main:Main',
    'metrics': f'{_PACKAGE}.metrics:Metrics',
    'samplers': f'{_PACKAGE}.samplers:Samplers',
    'time': f'{_PACKAGE}.time:Time',
    'case_study': f'{_PACKAGE}.case_study:CaseStudy',
    'ablation': f'{_PACKAGE}.ablation:Ablation',
    'clustering': f'{_PACKAGE}.clustering:Clustering',
    'clusters_k': f'{_PACKAGE}.sensitivity:ClustersK',
    'reservoir_q': f'{_PACKAGE}.sensitivity:ReservoirQ',
    'peers': f'{_PACKAGE}.peers:Peers',
    'strong': f'{_PACKAGE}.strong:Strong',
    'offsets': f'{_PACKAGE}.offsets:Offsets',
    'strength': f'{_PACKAGE}.strength:Strength',
    'printed': f'{_PACKAGE}.printed:Printed',
    'backbones': f'{_PACKAGE}.backbones:Backbones',
    'variants': f'{_PACKAGE}.variants:Variants',
    'parts': f'{_PACKAGE}.parts:Parts',
    'joint': f'{_PACKAGE}.parts:Joint',
    'movers': f'{_PACKAGE}.movers:Movers',
})

__all__ = ['REGISTRY', 'Row', 'Shown', 'Table', 'rows_of', 'select']


def select(names: Sequence[str]) -> List[Table]:
  """The tables asked for, in the order of the registry; 'all' is all of the paper's."""
  for name in names or ['']:
    if name not in REGISTRY and name != 'all':
      raise UserError(f'--what={name} is not a table{config_rules.nearest(name, [*REGISTRY, "all"])}')
  return [REGISTRY[name](name) for name in REGISTRY
          if name in names or ('all' in names and REGISTRY[name].in_paper)]


def rows_of(selected: Sequence[Table]) -> List[Row]:
  """All rows of some tables; what several of them show comes several times."""
  return [row for table in selected for row in table.rows]
