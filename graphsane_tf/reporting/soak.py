"""The tables and the picture of a soak."""
import collections
import io
import pathlib
from typing import Any, Dict, List, Optional

import numpy as np

from graphsane_tf import files
from graphsane_tf.evaluation import significance
from graphsane_tf.reporting import outputs
from graphsane_tf.runs.soak import METHODS, METRICS

# What ours may not fall behind.
_RIVALS = ('never', 'popularity', 'ease')
_COLOURS = dict(zip(METHODS, ('#0072b2', '#555555', '#e69f00', '#009e73', '#cc79a7', '#7f3c8d')))


def _values(days: Dict[str, Any], name: str) -> Dict[int, float]:
  return {int(day): figures[name] for day, figures in days.items() if figures.get(name) is not None}


def _mean(values) -> Optional[float]:
  values = list(values)
  return float(np.mean(values)) if values else None


def summary(figures: Dict[str, Dict[str, Any]]) -> Dict[str, Any]:
  """One row a method: means over the days, what they cost, and what was decided."""
  cells: List[List[Any]] = []
  ours = _values(figures.get('ours', {}), METRICS[0])
  for method, name in METHODS.items():
    days = figures.get(method, {})
    if not days:
      continue
    recall = _values(days, METRICS[0])
    both = sorted(set(recall) & set(ours))
    gain = low = high = None
    if method != 'ours' and both:
      base = np.mean([recall[day] for day in both])
      found = significance.interval([ours[day] - recall[day] for day in both])
      gain, low, high = (None if value is None or not base else float(100 * value / base)
                         for value in (found.mean, found.low, found.high))
    costs = _costs(days, 'seconds')
    sizes = _values(days, 'bytes')
    decisions = collections.Counter(
        entry['decision'] for day, entry in days.items() if day != '0' and entry.get('decision'))
    named = [f'{count} {decision}' for decision, count in decisions.most_common()]
    cells.append([name, len(recall), *[_mean(_values(days, metric).values()) for metric in METRICS], gain, low, high,
                  _minutes(costs), _minutes(_costs(days, 'cpu')),
                  f'{sizes[max(sizes)] / 2**20:,.0f}' if sizes else None, ', '.join(named)])
  return {'heads': ['method', 'days', *METRICS, 'ours over it, %', 'from, %', 'to, %', 'minutes an update',
                    'of processors', 'MiB', 'decisions'], 'cells': cells}


def _costs(days: Dict[str, Any], name: str) -> List[float]:
  """What the updates have cost, without the history and without days on which nothing was done."""
  return [value for day, value in _values(days, name).items() if day and value]


def _minutes(seconds: List[float]) -> Optional[str]:
  return f'{np.mean(seconds) / 60:.2f}' if seconds else None


def by_day(figures: Dict[str, Dict[str, Any]], metric: str) -> Dict[str, Any]:
  """One row a day."""
  methods = [method for method in METHODS if figures.get(method)]
  days = sorted({int(day) for method in methods for day in figures[method]})
  cells = []
  for day in days:
    entries = [figures[method].get(str(day), {}) for method in methods]
    ours = figures.get('ours', {}).get(str(day), {})
    cells.append([day, *[entry.get(metric) for entry in entries], ours.get('decision') if day else 'first',
                  _minutes([ours['seconds']]) if ours.get('seconds') else None])
  return {'heads': ['day', *[METHODS[method] for method in methods], 'decision', 'minutes'], 'cells': cells}


def verdicts(figures: Dict[str, Dict[str, Any]], margin: float) -> List[str]:
  """Whether ours has kept its two promises, a sentence each."""
  lines = []
  means = {method: _mean(_values(days, METRICS[0]).values()) for method, days in figures.items()}
  rivals = {method: value for method in _RIVALS if (value := means.get(method)) is not None}
  ours = means.get('ours')
  if rivals and ours is not None:
    best = max(rivals, key=lambda method: rivals[method])
    if rivals[best]:
      change = ours / rivals[best] - 1
      lines.append(f'Against the best of {", ".join(METHODS[method] for method in rivals)} ({METHODS[best]}, '
                   f'{rivals[best]:.4f}), ours has {100 * change:+.1f} % {METRICS[0]} on average; the margin is '
                   f'{100 * margin:g} %: {"kept" if change >= -margin else "not kept"}.')
  # A method that was cut off is compared over the days that it has.
  last = max(map(int, figures.get('retrained') or {'0': None}))
  until = {day: entry for day, entry in figures.get('ours', {}).items() if int(day) <= last}
  for name, what in (('seconds', 'full retraining'), ('cpu', "full retraining's processor time, all cores")):
    cost = {'ours': _costs(until, name), 'retrained': _costs(figures.get('retrained', {}), name)}
    if cost['ours'] and cost['retrained']:
      ratio = np.mean(cost['ours']) / np.mean(cost['retrained'])
      lines.append(f'An update takes {ratio:.2f} of {what} (target 0.20).')
  return lines


def plot(figures: Dict[str, Dict[str, Any]], path) -> pathlib.Path:
  """Recall and NDCG by day, and the minutes of each update; refused updates are marked."""
  from matplotlib import figure  # pylint: disable=g-import-not-at-top
  from PIL import Image as image  # pylint: disable=g-import-not-at-top
  canvas = figure.Figure(figsize=(9, 9), layout='constrained')
  axes = canvas.subplots(3, 1, sharex=True, height_ratios=(3, 3, 2))
  for axis, metric in zip(axes, METRICS):
    for method, name in METHODS.items():
      values = _values(figures.get(method, {}), metric)
      if values:
        axis.plot(list(values), list(values.values()), '.-' if method == 'ours' else '-', color=_COLOURS[method],
                  linewidth=2. if method == 'ours' else 1.1, zorder=3 if method == 'ours' else 2, label=name)
    axis.set(ylabel=f'{metric} of the next day')
    axis.grid(color='#dddddd', linewidth=.6)
  refused = [int(day) for day, entry in figures.get('ours', {}).items() if entry.get('decision') == 'refused']
  recall = _values(figures.get('ours', {}), METRICS[0])
  axes[0].plot([day for day in refused if day in recall], [recall[day] for day in refused if day in recall], 'x',
               color='black', zorder=4, label='refused')
  axes[0].legend(fontsize=8, frameon=False, ncols=3)
  for method in ('ours', 'ease', 'retrained', 'finetuned'):
    costs = {day: value / 60 for day, value in _values(figures.get(method, {}), 'seconds').items() if day and value}
    if costs:
      axes[2].plot(list(costs), list(costs.values()), '.', color=_COLOURS[method], label=METHODS[method])
  axes[2].set(ylabel='minutes an update', xlabel='update', yscale='log')
  axes[2].grid(color='#dddddd', linewidth=.6)
  drawn, small = io.BytesIO(), io.BytesIO()
  canvas.savefig(drawn, format='png', dpi=100)
  # Few colours make a third of the size.
  image.open(drawn).convert('RGB').quantize(48).save(small, 'png', optimize=True)
  path = pathlib.Path(path)
  files.write_bytes(path, small.getvalue())
  return path


def write(folder, figures: Dict[str, Dict[str, Any]], title: str, margin: float) -> str:
  """Writes the tables (.md, .csv, .json) and the picture; returns the Markdown of the summary."""
  note = '\n'.join(verdicts(figures, margin))
  shown = outputs.write(folder, 'summary', summary(figures), title, note, figures)
  for metric in METRICS:
    outputs.write(folder, metric.replace('@', '_'), by_day(figures, metric), f'{title}: {metric} of the next day')
  plot(figures, pathlib.Path(folder) / 'soak.png')
  return shown
