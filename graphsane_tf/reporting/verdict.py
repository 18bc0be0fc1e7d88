"""What the tables of a folder say together: ours against the best simple model, and which claims of the paper hold."""
import pathlib
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from graphsane_tf.reporting import outputs, pages
from graphsane_tf.reporting.tables import methods, peers

# Labels of the table of peers.
SIMPLE = tuple(row.label for row in peers.PEERS)
STRONG = 'Fine Tune + memory'
WITHOUT_MEMORY = 'Fine Tune'
UNTOUCHED = 'Untouched base'
# Tables whose rows the README shows: kind, label there, label here.
ROWS = (('peers', STRONG, '`--recipe=strong` (LightGCN, softmax, memory)'),
        ('peers', WITHOUT_MEMORY, 'the same without memory'),
        ('peers', 'SGCT-SANE adaptive + memory', 'with memory, SGCT and SANE (adaptive)'),
        ('main', 'SGCT-SANE', "the paper's SGCT + SANE on MGCCF"),
        ('peers', 'EASE', 'EASE, refitted at every block'),
        ('peers', 'iALS', 'iALS, refitted'),
        ('peers', 'Item neighbours', 'item neighbours, refitted'),
        ('peers', 'Popularity, recent', 'recent popularity'))


class Claim(NamedTuple):
  """Something that the paper says, and where a table shows whether it is so: a gain above zero."""
  text: str
  table: str
  row: Tuple[str, ...]
  gain: str = 'gain %'


CLAIMS = (
    *(Claim(f'SANE improves {row.label}', 'main', (methods.SANE[row].label,)) for row in methods.DISTILLERS),
    *(Claim(f'{row.label} improves fine-tuning', 'main', (row.label,), '% to Fine Tune') for row in methods.DISTILLERS),
    Claim('SANE as printed (ranks 1 to 100) improves SGCT', 'variants', ('SGCT-SANE paper',)),
    Claim('SANE, adaptive, improves SGCT', 'variants', ('SGCT-SANE adaptive',)),
    Claim('SGCT + SANE improves LightGCN with the softmax', 'peers', ('SGCT-SANE adaptive',)),
    Claim('the prior helps users whose interests move', 'movers', ('real shift', 'adaptive'), '% to no prior'))


def logs(folder, kind: str = 'peers') -> List[str]:
  """Names of the logs that have a table of a kind."""
  return sorted(path.stem[len(kind) + 1:] for path in pathlib.Path(folder).glob(f'{kind}-*.md'))


def line(folder, kind: str, log: str, label: Sequence[str]) -> Optional[Dict[str, str]]:
  """The line of a table whose first cells are these, by head; None if there is no such table or line."""
  path = pathlib.Path(folder) / f'{kind}-{log}.md'
  if not path.exists():
    return None
  table = pages.read(path)
  return next((dict(zip(table['heads'], cells)) for cells in table['cells'] if cells[:len(label)] == list(label)), None)


def _method(folder, kind: str, log: str, label: str) -> Dict[str, str]:
  """The line of a method, {} if it was not run; a simple model is the same in every table that has it."""
  kinds = (kind, 'main') if label in SIMPLE else (kind,)
  found = (line(folder, one, log, (label,)) or {} for one in kinds)
  return next((one for one in found if one.get('average')), {})


def _number(text: Optional[str]) -> Optional[float]:
  return float(text) if text else None


def _span(text: Optional[str]) -> Optional[Tuple[float, float]]:
  """'1.1 to 9.8' as numbers."""
  found = re.fullmatch(r'(-?[\d.]+) to (-?[\d.]+)', text or '')
  return (float(found[1]), float(found[2])) if found else None


def against_peers(folder) -> Dict[str, Any]:
  """Heads and cells: for each log the best simple model, ours, and the gain with its 95 % interval over seeds.

  A simple model has no seeds, so the interval is that of ours, relative to it.
  """
  heads = ['log', 'ours is', 'gain %', 'gain 95 %', 'ours', 'best simple model', 'Recall@20', 'without memory',
           'untouched base', 'seeds']
  cells = []
  for log in logs(folder):
    found = {label: _method(folder, 'peers', log, label)
             for label in (*SIMPLE, STRONG, WITHOUT_MEMORY, UNTOUCHED)}
    value = {label: _number(entry.get('average')) for label, entry in found.items()}
    simple = {label: average for label, average in value.items() if label in SIMPLE and average}
    ours = value[STRONG]
    if not simple or ours is None:
      continue
    best = max(simple, key=lambda label: simple[label])
    limits = _span(found[STRONG].get('95 % interval'))
    gains = limits and tuple(100 * (limit / simple[best] - 1) for limit in limits)
    cells.append([log, 'one seed' if not gains else 'ahead' if gains[0] > 0 else 'behind' if gains[1] < 0 else 'open',
                  100 * (ours / simple[best] - 1), gains and f'{gains[0]:.1f} to {gains[1]:.1f}', ours, best,
                  simple[best], value[WITHOUT_MEMORY], value[UNTOUCHED], int(found[STRONG].get('seeds') or 0)])
  return {'heads': heads, 'cells': cells}


def _holds(folder, log: str, claim: Claim) -> str:
  """'+5.4 (1.1 to 9.8) yes', say; '' if no table tells."""
  found = line(folder, claim.table, log, claim.row)
  gain = _number((found or {}).get(claim.gain))
  if found is None or gain is None:
    return ''
  span = _span(found.get('gain 95 %')) if claim.gain == 'gain %' else None
  p_value = _number(found.get('p (Holm)'))
  told = f'{gain:+.1f}' + (f' ({span[0]:.1f} to {span[1]:.1f})' if span else '')
  # Where a table has both, both have to agree.
  certain = [one for one in (span and (span[0] > 0 or span[1] < 0), None if p_value is None else p_value < .05)
             if one is not None]
  if not certain:
    return told
  return f'{told} {("**yes**" if gain > 0 else "**no**") if all(certain) else "open"}'


def claims(folder) -> Dict[str, Any]:
  """Heads and cells: a line a claim, a column a log."""
  names = sorted({log for claim in CLAIMS for log in logs(folder, claim.table)})
  lines = [[claim.text, *(_holds(folder, log, claim) for log in names)] for claim in CLAIMS]
  return {'heads': ['claim', *names], 'cells': [cells for cells in lines if any(cells[1:])]}


def short(folder) -> Dict[str, Any]:
  """Heads and cells of the README's table: average Recall@20."""
  names = logs(folder)
  cells = [[text, *(_method(folder, kind, log, label).get('average', '') for log in names)]
           for kind, label, text in ROWS]
  return {'heads': ['average test Recall@20', *names], 'cells': [row for row in cells if any(row[1:])]}


def contents(folder) -> str:
  """Links to the pages of tables, a line a kind of table."""
  kinds: Dict[str, List[str]] = {}
  for path in sorted(pathlib.Path(folder).glob('*.md')):
    title = path.read_text('utf-8').splitlines()[0].lstrip('# ')
    log = path.stem.rpartition('-')[2]
    what, found, _ = title.partition(f', {log}')
    kinds.setdefault(what, []).append(f'[{log if found else "all logs"}]({pathlib.Path(folder).name}/{path.name})')
  return '\n'.join(f'- {what}: {", ".join(links)}' for what, links in kinds.items())


def overall(folder) -> str:
  """A sentence: the mean over logs of ours over the best simple model, as a factor."""
  gains = [row[2] for row in against_peers(folder)['cells']]
  if not gains:
    return ''
  mean = 100 * (np.exp(np.log1p(np.array(gains) / 100).mean()) - 1)
  return f'Over these {len(gains)} logs ours is {mean:+.1f} % over the best simple model, in the geometric mean.'


def update(folder, page, readme) -> None:
  """Writes what the tables of a folder say into the marked places of a page and of the README."""
  def text(table):
    return outputs.markdown(table, '').split('\n', 2)[2]
  pages.fill(page, 'verdict', f'{text(against_peers(folder))}\n{overall(folder)}\n\n{text(claims(folder))}')
  pages.fill(page, 'tables', contents(folder))
  pages.fill(readme, 'results', text(short(folder)))
