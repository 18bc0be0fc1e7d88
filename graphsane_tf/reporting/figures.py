"""The report's pictures, as SVG that can stand in an HTML page.

Every figure is about as wide as a phone's screen in points, so that its text stays readable there.
"""
import io
import re
from typing import Any, Collection, Dict, List, Sequence

import matplotlib
from matplotlib import figure, ticker
import numpy as np

_WIDTH = 4.4
# Colours that stay apart for colour-blind readers (Okabe and Ito), then greys.
_COLOURS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7f3c8d', '#555555',
            '#a5aa99', '#000000')
_MARKERS = 'osD^vPX*<>h'
_STYLE: Dict[Any, Any] = {
    'font.size': 9, 'axes.titlesize': 10, 'axes.spines.top': False, 'axes.spines.right': False,
    'axes.grid': True, 'grid.color': '#dddddd', 'grid.linewidth': .6, 'axes.axisbelow': True,
    'legend.frameon': False, 'legend.fontsize': 8, 'svg.fonttype': 'path', 'svg.hashsalt': 'report',
    # Labels come from logs and file names: a dollar sign in one of them is no formula.
    'text.parse_math': False}


class Figures:
  """Draws figures and turns each into inline SVG with ids of its own."""

  def __init__(self):
    self._count = 0

  def _svg(self, draw) -> str:
    """`draw` makes a figure; returns its <svg> element, scalable, with prefixed ids."""
    with matplotlib.rc_context(_STYLE):
      stream = io.StringIO()
      draw().savefig(stream, format='svg', metadata={'Date': None, 'Creator': None})
    self._count += 1
    prefix = f'figure{self._count}-'
    text = stream.getvalue()
    text = text[text.index('<svg'):]
    text = re.sub(r'<metadata>.*?</metadata>', '', text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'url\(#', f'url(#{prefix}', text)
    text = re.sub(r'href="#', f'href="#{prefix}', text)
    head, rest = text.split('>', 1)
    head = re.sub(r'\s(width|height)="[^"]*"', '', head)
    return f'{head} role="img" focusable="false">{rest}'

  def recall_by_block(self, rows: Sequence[Dict[str, Any]]) -> str:
    """Recall of each block (dots) and the average with its interval (bar), a line a method."""
    rows = [row for row in rows if row['seeds']][::-1]
    def draw():
      canvas = figure.Figure(figsize=(_WIDTH, .8 + .3 * len(rows)), layout='constrained')
      axis = canvas.subplots()
      place = np.arange(len(rows))
      for block in range(max(len(row['blocks']) for row in rows)):
        axis.plot([row['blocks'][block] for row in rows], place, _MARKERS[block], markersize=4.5,
                  color=_COLOURS[block], alpha=.75, linestyle='none', label=f'block {block + 1}')
      for k, row in enumerate(rows):
        axis.plot([row['average']] * 2, [k - .32, k + .32], color='black', linewidth=1.8,
                  label='average' if k == 0 else None)
        if row['low'] is not None:
          axis.plot([row['low'], row['high']], [k, k], color='black', linewidth=.9)
      axis.set_yticks(place, [row['label'] for row in rows])
      axis.set_xlabel('test Recall@20')
      axis.xaxis.set_major_locator(ticker.MaxNLocator(nbins=5))
      canvas.legend(*axis.get_legend_handles_labels(), loc='outside upper center', ncols=4,
                    columnspacing=1., handletextpad=.3)
      return canvas
    return self._svg(draw)

  def rank_boxes(self, spread: Dict[str, List[float]], marked: Collection[str], what: str) -> str:
    """Box plot of ranks, best median on top; triangles are means, whiskers end at the smallest and largest rank.

    Args:
      spread: label to ranks.
      marked: labels in another colour.
      what: what these are.
    """
    order = sorted(spread, key=lambda label: (-np.median(spread[label]), -np.mean(spread[label])))
    def draw():
      canvas = figure.Figure(figsize=(_WIDTH, .7 + .3 * len(order)), layout='constrained')
      axis = canvas.subplots()
      boxes = axis.boxplot([spread[label] for label in order], orientation='horizontal', widths=.6,
                           patch_artist=True, medianprops={'color': 'black', 'linewidth': 1.6},
                           whis=(0, 100), showmeans=True,
                           meanprops={'marker': '^', 'markerfacecolor': 'black', 'markeredgecolor': 'black',
                                      'markersize': 4})
      for label, patch in zip(order, boxes['boxes']):
        patch.set_facecolor(_COLOURS[1] if label in marked else _COLOURS[5])
        patch.set_alpha(.6)
      axis.set_yticks(np.arange(1, len(order) + 1), order)
      axis.set_xlabel(f'rank (1 is best)\norange: {what}; triangle: mean')
      return canvas
    return self._svg(draw)

  def recall_against_time(self, rows: Sequence[Dict[str, Any]]) -> str:
    """Average recall over the training time of a block, a mark a method."""
    rows = [row for row in rows if row['seeds']]
    def draw():
      canvas = figure.Figure(figsize=(_WIDTH, 4.6), layout='constrained')
      axis = canvas.subplots()
      for k, row in enumerate(rows):
        error = None if row['low'] is None else [[row['average'] - row['low']],
                                                 [row['high'] - row['average']]]
        axis.errorbar(row['seconds'], row['average'], yerr=error, fmt=_MARKERS[k % len(_MARKERS)],
                      color=_COLOURS[k % len(_COLOURS)], markersize=7, linewidth=.9,
                      label=row['label'])
      seconds = [row['seconds'] for row in rows]
      if max(seconds) > 8 * max(min(seconds), 1e-9):
        axis.set_xscale('log')
        axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, place: f'{value:g}'))
        # Powers of ten would be formulas.
        axis.xaxis.set_minor_formatter(ticker.NullFormatter())
      axis.set(xlabel='training seconds a block', ylabel='test Recall@20, average')
      canvas.legend(*axis.get_legend_handles_labels(), loc='outside lower center', ncols=2)
      return canvas
    return self._svg(draw)

  def learning_curves(self, curves: Dict[str, List[Dict[str, Any]]]) -> str:
    """Validation recall by epoch, a panel a block.

    Args:
      curves: label to the records of metrics.jsonl.
    """
    blocks = sorted({record['block'] for records in curves.values() for record in records} - {0})
    def draw():
      canvas = figure.Figure(figsize=(_WIDTH, 3.4), layout='constrained')
      axes = canvas.subplots(1, len(blocks), sharey=True, squeeze=False)[0]
      for axis, block in zip(axes, blocks):
        for k, (label, records) in enumerate(curves.items()):
          mine = [r for r in records if r['block'] == block]
          axis.plot([r['epoch'] for r in mine], [r['validation']['recall@20'] for r in mine],
                    marker=_MARKERS[k % len(_MARKERS)], markersize=3, linewidth=1.2,
                    color=_COLOURS[k % len(_COLOURS)], label=label if block == blocks[0] else None)
        last = max((r['epoch'] for records in curves.values() for r in records if r['block'] == block), default=1)
        axis.set(title=f'block {block}', xlabel='epoch', xlim=(.5, last + .5))
        axis.set_xticks(range(1, last + 1, 1 + (last - 1) // 5))
      axes[0].set_ylabel('validation Recall@20')
      canvas.legend(loc='outside lower center', ncols=3)
      return canvas
    return self._svg(draw)

  def by_version(self, lines: Dict[str, Dict[int, float]], what: str) -> str:
    """Figures of a store's versions, a line each.

    Args:
      lines: label to values by version.
      what: the values' name.
    """
    def draw():
      canvas = figure.Figure(figsize=(_WIDTH, 2.8), layout='constrained')
      axis = canvas.subplots()
      for k, (label, values) in enumerate(lines.items()):
        axis.plot(list(values), list(values.values()), marker=_MARKERS[k % len(_MARKERS)], markersize=4, linewidth=1.2,
                  color=_COLOURS[k % len(_COLOURS)], label=label)
      axis.set(xlabel='version', ylabel=what, ylim=(0, None))
      axis.xaxis.set_major_locator(ticker.MaxNLocator(integer=True, nbins=8))
      if len(lines) > 1:
        canvas.legend(loc='outside lower center', ncols=2)
      return canvas
    return self._svg(draw)

  def sensitivity(self, curves: Dict[str, Dict[int, Dict[str, Any]]], symbol: str) -> str:
    """Average recall over a number that people choose, a curve a method.

    Args:
      curves: name to the lines of `comparison.rows` by value.
      symbol: of the number.
    """
    def draw():
      canvas = figure.Figure(figsize=(_WIDTH, 3.), layout='constrained')
      axis = canvas.subplots()
      for k, (name, points) in enumerate(curves.items()):
        axis.plot(list(points), [line['average'] for line in points.values()],
                  marker=_MARKERS[k], color=_COLOURS[k], label=name)
        spans = {value: line for value, line in points.items() if line['low'] is not None}
        if spans:
          axis.fill_between(list(spans), [line['low'] for line in spans.values()],
                            [line['high'] for line in spans.values()], color=_COLOURS[k], alpha=.15)
      axis.set_xticks(sorted({value for points in curves.values() for value in points}))
      axis.set(xlabel=symbol, ylabel='test Recall@20, average')
      axis.legend()
      return canvas
    return self._svg(draw)

  def case_study(self, rows: Sequence[Dict[str, Any]]) -> str:
    """Recall and share of old positives of both groups, by sampler."""
    def draw():
      canvas = figure.Figure(figsize=(_WIDTH, 1.6 + .56 * len(rows)), layout='constrained')
      axes = canvas.subplots(2, 1, sharey=True)
      place = np.arange(len(rows))[::-1]
      for axis, name, title in ((axes[0], 'recall', 'test Recall@20'),
                                (axes[1], 'old_share', 'old positives among negatives')):
        for k, (group, label) in enumerate((('high', 'top 15 % by shift'), ('rest', 'other 85 %'))):
          values = [row[group][name] or 0. for row in rows]
          spans = [row[group].get(f'{name}_span') or (value, value) for row, value in zip(rows, values)]
          axis.barh(place + .2 - .4 * k, values, .38, color=_COLOURS[1 - k], label=label if name == 'recall' else None,
                    xerr=np.maximum([[value - low for value, (low, _) in zip(values, spans)],
                                     [high - value for value, (_, high) in zip(values, spans)]], 0.),
                    error_kw={'linewidth': .9})
        axis.set_yticks(place, [row['label'] for row in rows])
        axis.set_xlabel(title)
      canvas.legend(loc='outside upper center', ncols=2)
      return canvas
    return self._svg(draw)

  def user(self, explained: Dict[str, Any], shown: int = 6) -> str:
    """A user's interests by block, and their reservoir and expected negatives, by category.

    Args:
      explained: from `inspect.explain_user`.
      shown: categories with a colour of their own.
    """
    history = np.array(explained['history'], float)
    counts = np.array(explained['counts'], float)
    names = explained['categories']
    reservoir = explained['reservoir']
    draws = np.array([sum(p for p, c in zip(reservoir['probability'], reservoir['category']) if c == name)
                      for name in names])
    columns = [*history[-3:], counts, draws]
    columns = [column / max(column.sum(), 1e-12) for column in columns]
    first = explained['block'] + 1 - len(history[-3:])
    labels = [f'block {first + k}' + ('' if rows.sum() else '\n(no rows)') for k, rows in enumerate(history[-3:])]
    labels += ['reservoir', 'negatives']
    order = np.argsort(-np.sum(columns, axis=0), kind='stable')
    def draw():
      canvas = figure.Figure(figsize=(_WIDTH, 3.2), layout='constrained')
      axis = canvas.subplots()
      bottom = np.zeros(len(columns))
      parts = [(names[k], [column[k] for column in columns]) for k in order[:shown]]
      if len(order) > shown:
        parts.append(('others', [column[order[shown:]].sum() for column in columns]))
      for k, (name, heights) in enumerate(parts):
        axis.bar(labels, heights, .7, bottom=bottom, label=str(name),
                 color='#bbbbbb' if name == 'others' else _COLOURS[k])
        bottom += heights
      axis.set(ylabel='share by category')
      axis.axvline(len(labels) - 2.5, color='black', linewidth=.8, linestyle=':')
      canvas.legend(*axis.get_legend_handles_labels(), loc='outside lower center', ncols=3)
      return canvas
    return self._svg(draw)
