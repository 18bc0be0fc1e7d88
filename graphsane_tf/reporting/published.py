"""The paper's published numbers, to stand beside ours."""
import csv
import functools
import pathlib
from typing import Dict, List, Optional, Sequence, Tuple

_FOLDER = pathlib.Path(__file__).with_name('paper_results')

DIFFERENCE = ('Published numbers are the authors\'. Data and protocol differ from ours: their '
              'logs, filters, blocks and evaluation graph are not these, so compare differences '
              'between methods rather than values.')


@functools.lru_cache(maxsize=None)
def _values(stem: str) -> Dict[Tuple[str, str], Dict[str, str]]:
  """(data set, method) to {column: printed value} of one file; {} if it is not there."""
  path = _FOLDER / f'{stem}.csv'
  values: Dict[Tuple[str, str], Dict[str, str]] = {}
  if not path.exists():
    return values
  with open(path, encoding='utf-8', newline='') as stream:
    for row in csv.DictReader(stream, strict=True):
      method = row['method'] + ''.join(f' {k}={row[k]}' for k in ('K', 'Q') if row.get(k))
      values.setdefault((row['dataset'], method), {})[row['column']] = row['value']
  return values


def recall(stems: Sequence[str], dataset: str, method: str) -> Optional[float]:
  """The published average Recall@20 of a method, or None."""
  for stem in stems:
    # The paper calls replay by its policy alone.
    columns = _values(stem).get((dataset, method.removesuffix(' replay')), {})
    for column in ('average', 'recall@20'):
      if column in columns:
        return float(columns[column])
  return None


def datasets(stem: str) -> List[str]:
  """Data sets of one file."""
  return list(dict.fromkeys(dataset for dataset, _ in _values(stem)))


def ranks(method: str) -> Dict[str, float]:
  """The published mean rank of a method by 'recall', 'ndcg', 'precision' and 'map' at 20."""
  return {column.split('@')[0]: float(value)
          for (_, name), columns in _values('metric_ranks').items() if name == method
          for column, value in columns.items()}
