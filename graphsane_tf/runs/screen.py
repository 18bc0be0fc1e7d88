"""Results as text for a terminal."""
from typing import Any, Dict, List, Sequence

METRICS = ('recall', 'precision', 'map', 'ndcg')


def align(rows: Sequence[Sequence[Any]]) -> str:
  """Rows of cells as aligned text: the first column to the left, the others to the right."""
  cells = [[str(cell) for cell in row] for row in rows]
  widths = [max(len(row[i]) for row in cells if i < len(row)) for i in range(max(map(len, cells)))]
  lines = []
  for row in cells:
    padded = [cell.ljust(w) if i == 0 else cell.rjust(w)
              for i, (cell, w) in enumerate(zip(row, widths))]
    lines.append('  '.join(padded).rstrip())
  return '\n'.join(lines)


def _name(block: int) -> str:
  return f'block {block}' if block else 'base block'


def results_table(results: Dict[str, Any]) -> str:
  """One line a block and one for the average of incremental blocks, four metrics, all cut-offs."""
  if not results['blocks']:
    return 'no block is finished yet.'
  cutoffs = sorted(int(name.split('@')[1]) for name in results['blocks'][-1]['test']
                   if name.startswith('recall@'))
  fitted = results.get('peer', 'none') != 'none'
  # Replay, memory and peers are of version 0.2.
  names = ('peer',) if fitted else ('backbone', 'kd', 'sampler', *[
      name for name in ('replay', 'memory') if results.get(name, 'none') != 'none'])
  method = '  '.join(f'{name} {results[name]}' for name in names)
  parts = [f'\n{results["dataset"]}  {method}  seed {results["seed"]}  (test, known users)']
  for metric in METRICS:
    rows: List[List[str]] = [[metric.capitalize() if metric == 'recall' else metric.upper()
                              if metric in ('map', 'ndcg') else metric.capitalize(),
                              *[f'@{k}' for k in cutoffs]]]
    for entry in results['blocks']:
      rows.append([_name(entry['block']), *[f'{entry["test"].get(f"{metric}@{k}", float("nan")):.4f}'
                           for k in cutoffs]])
    if results['average']:
      last = max(entry['block'] for entry in results['blocks'])
      rows.append([f'average 1-{last}', *[f'{results["average"][f"{metric}@{k}"]:.4f}'
                                          for k in cutoffs]])
    parts.append(align(rows))
  trained = ['epochs', 'best', 'seconds', 'in sampler']
  rows = [['Fitting' if fitted else 'Training', *(['seconds'] if fitted else trained), 'known users', 'new users @20']]
  for entry in results['blocks']:
    new, coverage = entry['test_new_users'], entry['coverage']
    # Runs of version 0.1 have it under the second name.
    in_sampler = entry.get('sampler_seconds', entry.get('reservoir_seconds', 0.))
    seconds = f'{entry["train_seconds"]:.1f}'
    cost = [seconds] if fitted else [entry['epochs'], entry['best_epoch'], seconds, f'{in_sampler:.1f}']
    rows.append([_name(entry['block']), *cost, f'{coverage["users_known"]}/{coverage["users"]}',
                 f'{new["recall@20"]:.4f}' if new else '-'])
  parts.append(align(rows))
  untrained = [str(entry['block']) for entry in results['blocks'] if not fitted and not entry['best_epoch']]
  if untrained:
    parts.append(f'best 0 in block {", ".join(untrained)}: no epoch of training was better than none, so that only the '
                 'graph has moved there.')
  return '\n\n'.join(parts) + '\n'


def forgetting_table(results: Dict[str, Any]) -> str:
  """Recall of each block's model on each block's test rows, and the figures drawn from them."""
  forgetting = results['forgetting']
  rows: List[List[str]] = [
      ['model of block', *[f'test {s}' for s in range(len(forgetting['matrix']))]]]
  for block, values in enumerate(forgetting['matrix']):
    if any(value is not None for value in values):
      rows.append([str(block), *['-' if value is None else f'{value:.4f}' for value in values]])
  parts = [f'{forgetting["metric"]} of each model on each block; left of the diagonal it remembers rows '
           'that it has been trained on, elsewhere it forecasts', align(rows)]
  figures = [f'{name.replace("_", " ")} {forgetting[name]:+.4f}' for name in (
      'average_forgetting', 'backward_transfer', 'forward_transfer') if forgetting[name] is not None]
  return '\n'.join(parts + (['  '.join(figures)] if figures else [])) + '\n'
