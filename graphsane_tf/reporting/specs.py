"""The paper's tables as rows of a grid."""
import dataclasses
from typing import Dict, List, Sequence, Tuple

from graphsane_tf.errors import UserError
from graphsane_tf.training.grid import Row

SANE = '--sane'
# The distillers that the paper adds SANE to: label and flag.
DISTILLERS = (('GraphSAIL', '--kd=graphsail'), ('SGCT', '--kd=sgct'), ('LWC-KD', '--kd=lwckd'))


def with_sane(name: str) -> str:
  return f'{name}-SANE'


@dataclasses.dataclass(frozen=True)
class Table:
  """A table of the paper.

  Attributes:
    title: what it shows.
    rows: its lines.
    reference: label of the row that changes are relative to.
    published: stems of the files in third_party/paper_results with its numbers, the first that has
      a value counts.
  """
  title: str
  rows: Tuple[Row, ...]
  reference: str
  published: Tuple[str, ...] = ()


def _main() -> Tuple[Row, ...]:
  rows = [Row('Fine Tune'), Row('LSP_s', ('--kd=lsp',)), Row('Uniform', ('--replay=uniform',)),
          Row('Inv_degree', ('--replay=inverse_degree',))]
  for name, flag in DISTILLERS:
    rows += [Row(name, (flag,)), Row(with_sane(name), (flag, SANE), partner=name)]
  return tuple(rows)


def _samplers() -> Tuple[Row, ...]:
  names = (('Uniform', 'uniform'), ('WARP', 'warp'), ('PinSage', 'pinsage'), ('PNS', 'pns'),
           ('NS Cache', 'nscaching'), ('DeMix', 'demix'), ('ESNS', 'esns'), ('DNS', 'dns'),
           ('SANE', 'sane'))
  return tuple(Row(f'SGCT+{label}', ('--kd=sgct', f'--sampler={name}'),
                   partner='' if name == 'uniform' else 'SGCT+Uniform') for label, name in names)


def _ablation() -> Tuple[Row, ...]:
  rows = [Row('Fine Tune')]
  for name, flag in DISTILLERS[1:]:
    rows += [Row(name, (flag,)),
             Row(f'{name}-hard-cluster', (flag, SANE, '--clusters=kmeans'), partner=name),
             Row(with_sane(name), (flag, SANE), partner=name)]
  return tuple(rows)


def _clustering() -> Tuple[Row, ...]:
  rows = []
  for name, flag in DISTILLERS:
    kmeans = f'{with_sane(name)} (K-means)'
    rows += [Row(kmeans, (flag, SANE, '--clusters=kmeans')),
             Row(f'{with_sane(name)} (end-to-end)', (flag, SANE, '--clusters=structural'),
                 partner=kmeans)]
  return tuple(rows)


def _sensitivity(letter: str, field: str, values: Sequence[int]) -> Tuple[Row, ...]:
  return tuple(Row(f'{with_sane(name)} {letter}={value}', (flag, SANE, f'--config.{field}={value}'))
               for name, flag in DISTILLERS[1:] for value in values)


def _variants() -> Tuple[Row, ...]:
  rows = []
  for name, flags in (('Fine Tune', ()), *((name, (flag,)) for name, flag in DISTILLERS)):
    rows += [Row(name, flags),
             Row(f'{with_sane(name)} paper', (*flags, SANE, '--sane_variant=paper'), partner=name),
             Row(with_sane(name), (*flags, SANE), partner=name),
             Row(f'{with_sane(name)} adaptive', (*flags, SANE, '--sane_variant=adaptive'),
                 partner=name)]
  return tuple(rows)


# Rows that differ in the prior only, after the base method.
PRIORS = ('SGCT', 'adaptive', 'adaptive, no prior', 'adaptive, reversed prior')


def _parts() -> Tuple[Row, ...]:
  adaptive = ('--kd=sgct', SANE, '--sane_variant=adaptive')
  changes = (('fixed band', 'band=fixed'), ('not balanced', 'balance=0'),
             ('no prior', 'uniform_theta=True'), ('reversed prior', 'prior_sign=1'),
             ('printed shift', 'shift=printed'), ('re-scored in the step', 'candidates=2'),
             ('with old positives', 'exclude_history=False'))
  return (Row('SGCT', ('--kd=sgct',)), Row('adaptive', adaptive, partner='SGCT'),
          *(Row(f'adaptive, {label}', (*adaptive, f'--config.sane.{flag}'), partner='adaptive')
            for label, flag in changes))


_TIME = (Row('Fine Tune'), *_samplers(), Row('Full retraining', ('--full_retrain',)))

TABLES: Dict[str, Table] = {
    'main': Table('Incremental methods with and without SANE', _main(), 'Fine Tune',
                  ('per_block', 'main')),
    'metrics': Table('Ranks and wins over all metrics', _main(), 'Fine Tune', ('metric_ranks',)),
    'samplers': Table('Negative samplers on SGCT', _samplers(), 'SGCT+Uniform', ('samplers',)),
    'time': Table('Recall against training time', _TIME, 'Full retraining'),
    'case_study': Table('Case study: users whose interests move', _samplers(), 'SGCT+Uniform'),
    'ablation': Table('Loss ablation', _ablation(), 'Fine Tune',
                      ('ablation_sgct', 'ablation_lwckd')),
    'clustering': Table('Choice of the clusters', _clustering(), 'GraphSAIL-SANE (K-means)',
                        ('clustering_yelp', 'clustering_taobao14')),
    'clusters_k': Table(
        'Number of clusters K', _sensitivity('K', 'clustering.num_clusters', (5, 10, 15, 20, 25)),
        'SGCT-SANE K=10', ('sensitivity_k',)),
    'reservoir_q': Table(
        'Size of the reservoir |Q|', _sensitivity('Q', 'sane.size', (50, 100, 300)),
        'SGCT-SANE Q=100', ('sensitivity_q',)),
    'variants': Table('Kinds of SANE', _variants(), 'Fine Tune'),
    'parts': Table('Parts of the adaptive reservoir', _parts(), 'SGCT'),
    'movers': Table('The prior, for users with and without a real shift',
                    tuple(row for row in _parts() if row.label in PRIORS), 'SGCT'),
}
# Tables that the paper does not have: not part of 'all'.
OWN = ('variants', 'parts', 'movers')


def select(names: Sequence[str]) -> List[str]:
  """The tables asked for, in the order of the paper; 'all' is all of the paper's."""
  for name in names:
    if name not in TABLES and name != 'all':
      raise UserError(f'--what={name} is not a table; there are {", ".join(TABLES)} and all.')
  return [name for name in TABLES if name in names or ('all' in names and name not in OWN)]


def rows_of(names: Sequence[str]) -> List[Row]:
  """All rows of some tables; what several of them show comes several times."""
  return [row for name in names for row in TABLES[name].rows]
