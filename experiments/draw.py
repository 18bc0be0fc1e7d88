"""Draws the pictures of README.md and docs into docs/pictures.

  python experiments/draw.py flow blocks model results update

`flow` is the way of the data, `blocks` how a log is cut, and `model` what a reservoir's draws depend on. `results`
draws the tables in docs/results, and `update` makes a store of the small `drift` log, brings it up to date seven times
and draws what was measured.
"""
import pathlib
import sys
import tempfile

import numpy as np

from graphsane_tf.config import default_config
from graphsane_tf.reporting import verdict

ROOT = pathlib.Path(__file__).resolve().parents[1]
_STYLE = {'font.size': 10, 'svg.fonttype': 'none', 'font.family': 'sans-serif', 'svg.hashsalt': 'docs',
          'text.parse_math': False, 'axes.spines.top': False, 'axes.spines.right': False}
_BLUE, _ORANGE, _GREEN, _GREY = '#0072b2', '#d55e00', '#009e73', '#9a9a9a'

# Boxes of the way of the data: x, y, title, text, colour.
_BOXES = (
    (0, 2, 'data', 'read, filter, order\nby time', _GREY),
    (1, 2, 'blocks', 'base 60 %, then\nblock by block', _GREY),
    (2, 3, 'graph', 'neighbours from\ntraining rows only', _BLUE),
    (2, 2, 'backbone', 'yesterday\'s model,\nnew rows added', _BLUE),
    (2, 1, 'teacher', 'yesterday\'s model,\nfrozen', _BLUE),
    (2, 0, 'memory', 'counts of all\nhistory', _BLUE),
    (3, 3, 'reservoir', 'hard negatives of\neach user', _ORANGE),
    (3, 2, 'training', 'loss, distillation;\nkeep the best epoch', _ORANGE),
    (3, 0, 'mixture', 'graph model, memory\nand popularity', _ORANGE),
    (4, 2, 'evaluation', 'rows that come\nafterwards', _GREEN),
    (4, 1, 'gate', 'no step back, or\nnot published', _GREEN),
    (4, 0, 'serving', 'SavedModel, HTTP,\nversions', _GREEN))
_ARROWS = (('data', 'blocks'), ('blocks', 'graph'), ('blocks', 'backbone'), ('blocks', 'teacher'), ('blocks', 'memory'),
           ('graph', 'reservoir'), ('backbone', 'training'), ('teacher', 'training'), ('reservoir', 'training'),
           ('training', 'mixture'), ('memory', 'mixture'), ('mixture', 'evaluation'), ('evaluation', 'gate'),
           ('gate', 'serving'))


def _canvas(width, height):
  from matplotlib import figure  # pylint: disable=g-import-not-at-top
  return figure.Figure(figsize=(width, height), layout='constrained')


def flow():
  """The way of the data, from the log to a served version."""
  from matplotlib import patches  # pylint: disable=g-import-not-at-top
  canvas = _canvas(10.5, 4.6)
  axis = canvas.subplots()
  place = {}
  for x, y, title, text, colour in _BOXES:
    left, bottom = 2.1 * x, 1.15 * y
    place[title] = (left, bottom)
    axis.add_patch(patches.FancyBboxPatch(
        (left, bottom), 1.6, .8, boxstyle='round,pad=.03', facecolor=f'{colour}22', edgecolor=colour))
    axis.text(left + .8, bottom + .6, title, ha='center', va='center', weight='bold')
    axis.text(left + .8, bottom + .25, text, ha='center', va='center', fontsize=8)
  for first, second in _ARROWS:
    (x, y), (u, v) = place[first], place[second]
    if x == u:
      down = v < y
      ends = ((x + .8, y - .04 if down else y + .84), (u + .8, v + .84 if down else v - .04))
    else:
      ends = ((x + 1.64, y + .4), (u - .04, v + .4))
    axis.annotate('', ends[1], ends[0], arrowprops={'arrowstyle': '-|>', 'color': '#444444'})
  axis.text(4.2 - .15, 4.55, 'tomorrow, the trained model is the backbone and the teacher', fontsize=8, style='italic')
  axis.set(xlim=(-.2, 10.3), ylim=(-.25, 4.8))
  axis.axis('off')
  return canvas, 'flow.svg'


def blocks():
  """What each block of a run is trained on, validated on and tested on."""
  canvas = _canvas(8.5, 2.9)
  axis = canvas.subplots()
  kinds = {'train': ('its own rows', _ORANGE), 'known': ('rows before: graph, memory, replay', '#f4cfae'),
           'validate': ('validation', _BLUE), 'test': ('test', _GREEN)}
  spans = [('block 0', [('train', 0, 60), ('validate', 60, 65), ('test', 65, 70)])]
  for block in (1, 2, 3):
    start = 50 + 10 * block
    spans.append((f'block {block}', [('known', 0, start), ('train', start, start + 10),
                                     ('validate', start + 10, start + 15), ('test', start + 15, start + 20)]))
  for line, (_, parts) in enumerate(spans):
    for kind, first, last in parts:
      axis.barh(-line, last - first, .62, left=first, color=kinds[kind][1], edgecolor='white')
  axis.set_yticks([-line for line in range(len(spans))], [name for name, _ in spans])
  axis.set(xlabel='rows of the log in order of time, %', xlim=(0, 100), xticks=range(0, 101, 10))
  axis.legend(handles=[_patch(colour, label) for label, colour in kinds.values()], loc='upper center',
              bbox_to_anchor=(.45, 1.25), ncols=4, frameon=False, fontsize=9)
  return canvas, 'blocks.svg'


def _patch(colour, label):
  from matplotlib import patches  # pylint: disable=g-import-not-at-top
  return patches.Patch(color=colour, label=label)


# Nodes of the hierarchical model: x, y, sign, text below, whether it is observed.
_NODES = (
    (0., 1., 'H(t), H(t-1)', 'shares of a user\'s rows by\ncategory, this block and before', True),
    (2.3, 1., 'alpha', 'prior: more where\ninterest was lost', True),
    (4.3, 1., 'theta', 'probability of\neach category', False),
    (4.3, -.9, 'c', 'categories of the items\nin the reservoir', True),
    (6.3, 1., 'z', 'category of\na negative', False),
    (8.3, 1., 'j', 'the item that\nis drawn', False),
    (8.3, -.9, 'Q', 'reservoir: items ranked\nhigh, not taken', True))
_DEPENDS = ((0, 1), (1, 2), (2, 3), (2, 4), (4, 5), (6, 5))


def model():
  """The hierarchical model of SANE's draws: what a user's negatives depend on."""
  from matplotlib import patches  # pylint: disable=g-import-not-at-top
  canvas = _canvas(9.5, 4.1)
  axis = canvas.subplots()
  for first, second in _DEPENDS:
    axis.annotate('', _NODES[second][:2], _NODES[first][:2], arrowprops={
        'arrowstyle': '-|>', 'color': '#444444', 'shrinkA': 27, 'shrinkB': 27})
  for x, y, sign, text, observed in _NODES:
    axis.add_patch(patches.Circle((x, y), .45, facecolor=f'{_GREY}66' if observed else 'white', edgecolor='black'))
    axis.text(x, y, sign, ha='center', va='center', fontsize=8 if len(sign) > 5 else 12, style='italic')
    above = y > 0
    axis.text(x, y + (.55 if above else -.55), text, ha='center', va='bottom' if above else 'top', fontsize=8)
  for corner, width, height, left, text in (
      ((5.45, .3), 3.75, 1.95, 5.55, 'each slot'),
      ((-1.25, -2.), 10.75, 4.45, -1.15, 'each user; a grey node is known when negatives are drawn')):
    axis.add_patch(patches.FancyBboxPatch(corner, width, height, boxstyle='round,pad=.05', fill=False,
                                          edgecolor=_GREY))
    axis.text(left, corner[1] + .15, text, va='center', fontsize=8, style='italic')
  axis.set(xlim=(-1.4, 9.65), ylim=(-2.15, 2.6), aspect='equal')
  axis.axis('off')
  return canvas, 'model.svg'


def results():
  """Ours and the best simple model on each log, relative to that model."""
  folder = ROOT / 'docs' / 'results'
  table = verdict.against_peers(folder)
  lines = [dict(zip(table['heads'], cells)) for cells in table['cells']]
  canvas = _canvas(7.5, .9 + .5 * len(lines))
  axis = canvas.subplots()
  for place, line in enumerate(lines[::-1]):
    base = line['Recall@20']
    for offset, name, colour, label in ((.17, 'without memory', _BLUE, 'graph model alone'),
                                        (-.17, 'ours', _ORANGE, 'with memory (--recipe=strong)')):
      if line[name] is not None:
        span = line['gain 95 %'] if name == 'ours' else None
        low, high = [float(word) for word in span.split(' to ')] if span else (None, None)
        gain = 100 * (line[name] / base - 1)
        axis.barh(place + offset, gain, .3, color=colour, label=None if place else label,
                  xerr=None if low is None else [[gain - low], [high - gain]], error_kw={'linewidth': 1})
  axis.axvline(0., color='black', linewidth=.8)
  axis.set_yticks(range(len(lines)), [f'{line["log"]} ({line["best simple model"]})' for line in lines[::-1]])
  axis.set(xlabel='test Recall@20 against the best simple model, %; lines: 95 % over seeds')
  canvas.legend(loc='outside upper right', ncols=2, frameon=False)
  return canvas, 'results.svg'


def update(days=7):
  """Recall of what an update may publish, update by update, in a store of the small `drift` log."""
  from graphsane_tf.recommender import Recommender  # pylint: disable=g-import-not-at-top
  from graphsane_tf.data import drift  # pylint: disable=g-import-not-at-top
  import pandas as pd  # pylint: disable=g-import-not-at-top
  log = drift.generate('small')
  rows = pd.DataFrame({'user': log.user_ids[log.user], 'item': log.item_ids[log.item], 'timestamp': log.time})
  cuts = np.linspace(.6, 1., days + 1) * len(rows)
  kinds = {'trained': ('trained on the new rows', _ORANGE), 'graph_only': ('old weights, new graph', _BLUE),
           'current': ('served before', _GREEN), 'never_updated': ('never updated', '#56b4e9'),
           'popularity': ('popularity', _GREY)}
  measured = []
  config = default_config()
  config.train.loss = 'softmax'
  with tempfile.TemporaryDirectory() as folder:
    shop = Recommender.create(f'{folder}/shop', rows[:int(cuts[0])], config, backbone='lightgcn',
                              embedding_dim=32, batch_size=256, base_epochs=8, epochs=3)
    for first, last in zip(cuts, cuts[1:]):
      gate = shop.update(rows[int(first):int(last)]).manifest['gate']
      measured.append((gate['decision'], {name: found['recall@20'] for name, found in gate['options'].items()}))
      print(measured[-1], flush=True)
  canvas = _canvas(7.5, 3.4)
  axis = canvas.subplots()
  place = np.arange(1, days + 1)
  for name, (label, colour) in kinds.items():
    axis.plot(place, [found.get(name, np.nan) for _, found in measured], marker='o', markersize=4, color=colour,
              linestyle='--' if name == 'graph_only' else '-', label=label)
  for day, (decision, found) in zip(place, measured):
    if decision in found:
      axis.plot(day, found[decision], 'o', markersize=11, markerfacecolor='none', markeredgecolor='black')
  axis.set(xlabel='update (a ring: what was published)', ylabel='Recall@20 on the newest rows', ylim=(0, None))
  axis.set_xticks(place)
  canvas.legend(loc='outside upper center', ncols=5, frameon=False, fontsize=8)
  return canvas, 'update.svg'


def main(names):
  import matplotlib  # pylint: disable=g-import-not-at-top
  drawings = {'flow': flow, 'blocks': blocks, 'model': model, 'results': results, 'update': update}
  for name in names or drawings:
    if name not in drawings:
      raise SystemExit(f'error: there is no picture {name}; choose from {", ".join(drawings)}.')
    with matplotlib.rc_context(_STYLE):
      canvas, file = drawings[name]()
      path = ROOT / 'docs' / 'pictures' / file
      canvas.savefig(path, metadata={'Date': None})
    print(f'written   {path.relative_to(ROOT)}')


if __name__ == '__main__':
  main(sys.argv[1:])
