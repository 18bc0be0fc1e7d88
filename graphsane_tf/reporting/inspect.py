"""One user's negative reservoir: what SANE saw of them, and what it drew from."""
import pathlib
from typing import Any, Dict, List, Optional

import numpy as np
import tensorflow as tf

from graphsane_tf import files, negatives
from graphsane_tf.errors import UserError
from graphsane_tf.negatives.sane import Sane
from graphsane_tf.runs import screen
from graphsane_tf.runs.incremental import IncrementalRun
from graphsane_tf.training.store import BlockStore

# Quantities of section 5.2 with one value a category.
QUANTITIES = ('previous', 'current', 'shift', 'alpha', 'counts', 'theta')
# Categories shown by name in a picture; the others are added up.
_SHOWN = 9
# Items that stand for a category.
_EXAMPLES = 3
# A colour for each category, the same in every part of the picture (Okabe and Ito's, and two more); then the others.
_COLOURS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7f3c8d', '#8c6d31', '#000000',
            '#bbbbbb')
# How dark the bars of one category are, in the order of the legend.
_SHADES = (.35, .65, 1.)


def explain_user(run: IncrementalRun, block: Optional[int], user_id: str) -> Dict[str, Any]:
  """Everything SANE derives for a user in a block.

  In a run that trained with SANE it is the state saved with the block's best epoch, otherwise what
  SANE would build from the block's finished model.

  Args:
    run: e.g. `graphsane_tf.runs.incremental.open_run(folder)`.
    block: number of a finished block after the base block; None takes the last with a reservoir.
    user_id: raw id of the user.

  Returns:
    user, block, saved (whether the state is the run's own), categories [K] names, examples [K] lists of a few items of
    each (the newest that the user took, then the first of the reservoir); history [block + 1, K] interactions of each
    block by category; previous, current, shift, alpha, counts, theta [K]; and reservoir, a dict of lists: item (raw
    id), rank (when the reservoir was built), score
    (by the finished model), category, probability.

  Raises:
    UserError: if the user has no reservoir in the block; it says in which blocks they have one.
  """
  user, block = _find(run, block, user_id)
  return _Block(run, block).explain(user)


def strongest_shifts(run: IncrementalRun, block: int, count: int,
                     least: int = 4) -> List[Dict[str, Any]]:
  """The same for the users of a block whose interests moved most.

  Args:
    run: a run.
    block: number of a finished block after the base block.
    count: how many users.
    least: interactions that a user must have in the block and in the one before; with fewer of them
      a shift is mostly chance.
  """
  state = _Block(run, block)
  users = state.sampler.table.users
  context = state.context
  busy = np.minimum(context.block.degree[users], context.previous.degree[users]) >= least
  if not busy.any():
    return []
  size = np.concatenate([
      np.abs(state.sampler.explain(start, stop)['shift']).sum(axis=1)
      for start, stop in state.sampler.table.chunks(8 * state.sampler.size)])
  order = np.argsort(-np.where(busy, size, -1.), kind='stable')[:min(count, int(busy.sum()))]
  return [state.explain(int(users[k])) for k in order]


def plain(explained: Dict[str, Any]) -> Dict[str, Any]:
  """What `explain_user` gives with lists instead of arrays, for JSON."""
  return {name: value.tolist() if isinstance(value, np.ndarray) else value
          for name, value in explained.items()}


class _Block:
  """SANE's state in a finished block of a run."""

  def __init__(self, run: IncrementalRun, block: int):
    self.run = run
    self.block = block
    model = run.load_model(block)
    self.context = run.context(block)
    self.sampler = Sane(run.config, self.context, (run.config.seed, block))
    self._user_vectors, self._item_vectors = model.backbone.representer(model.graph)()
    self.saved = issubclass(negatives.REGISTRY[run.config.sampler], Sane)
    if self.saved:
      store = BlockStore(run.workdir, block)
      store.restore(tf.train.Checkpoint(sampler=self.sampler), store.saved()['best'])
    else:
      self.sampler.refresh(self._user_vectors, self._item_vectors, 0)

  def explain(self, user: int) -> Dict[str, Any]:
    """See `explain_user`."""
    run, sampler, block = self.run, self.sampler, self.block
    slot = int(np.searchsorted(sampler.table.users, user))
    derived = {name: value[0] for name, value in self.sampler.explain(slot, slot + 1).items()}
    count = int(sampler.table.count[slot])
    items = sampler.items[slot, :count].numpy()
    names = _category_names(run, sampler)
    scores = tf.linalg.matvec(tf.gather(self._item_vectors, items), self._user_vectors[user]).numpy()
    return {
        'user': str(run.interactions.user_ids[user]), 'block': block, 'saved': self.saved,
        'categories': names, 'examples': self._examples(user, items, len(names)),
        'history': _history(run, block, user, sampler.category.numpy(), len(names)),
        **{name: derived[name] for name in QUANTITIES},
        'reservoir': {
            'item': run.interactions.item_ids[items].tolist(),
            'rank': (sampler.first_rank + np.arange(count)).tolist(),
            'score': scores.tolist(),
            'category': [names[k] for k in derived['category'][:count]],
            'probability': derived['probability'][:count].tolist()}}


  def _examples(self, user: int, reservoir: np.ndarray, num_categories: int) -> List[List[str]]:
    """[num_categories] lists of items of each category: the newest that the user took, then of the reservoir."""
    log, rows = self.run.interactions, slice(0, self.run.stream.block(self.block).train.stop)
    taken = log.item[rows][log.user[rows] == user][::-1]
    items = np.concatenate([taken, reservoir[~np.isin(reservoir, taken)]])
    category = self.sampler.category.numpy()[items]
    return [log.item_ids[items[category == k][:_EXAMPLES]].tolist() for k in range(num_categories)]


def _find(run: IncrementalRun, block: Optional[int], user_id: str):
  """The user's number and a block in which they have a reservoir."""
  log, stream = run.interactions, run.stream
  places = np.flatnonzero(log.user_ids == user_id)
  if not len(places):
    raise UserError(f'--user={user_id} does not occur in the log; ids look like '
                    f'{", ".join(log.user_ids[:3])}.')
  user = int(places[0])
  has = [t for t in range(1, stream.num_blocks)
         if user < stream.block(t - 1).num_users and np.any(log.user[stream.block(t).train] == user)]
  if block is None and has:
    return user, has[-1]
  if block not in has:
    asked = f' in block {block}' if block is not None else ''
    known = f'they have one in block {", ".join(map(str, has))}' if has else 'they have none in any block'
    raise UserError(f'user {user_id} has no reservoir{asked}, which takes interactions in that '
                    f'block and in one before: {known}.')
  return user, block


def _category_names(run: IncrementalRun, sampler: Sane) -> List[str]:
  """Names of given categories, numbers of clusters."""
  names = run.interactions.category_names
  num_clusters = sampler.clusters.num_clusters
  if run.config.clusters == 'categories' and names is not None:
    return list(names[:num_clusters])
  return [f'cluster {k}' for k in range(num_clusters)]


def _history(run: IncrementalRun, block: int, user: int, category: np.ndarray, num_categories: int):
  """[block + 1, K] interactions of each block by the categories of the block asked for."""
  log, stream = run.interactions, run.stream
  return np.stack([
      np.bincount(category[log.item[rows][log.user[rows] == user]], minlength=num_categories)
      for rows in (stream.block(t).train for t in range(block + 1))])


def table(explained: Dict[str, Any], most: int = 20) -> str:
  """The categories and the reservoir's first `most` items as text."""
  t = explained['block']
  where = 'as trained with' if explained['saved'] else 'as SANE would build it from the finished model'
  rows = [['category', f'H_{t - 1}', f'H_{t}', 'shift', 'alpha', 'c', 'theta']]
  for k, name in enumerate(explained['categories']):
    values = {q: explained[q][k] for q in QUANTITIES}
    rows.append([name, f'{values["previous"]:.4g}', f'{values["current"]:.4g}',
                 f'{values["shift"]:+.3f}', f'{values["alpha"]:.2f}', f'{values["counts"]:.4g}',
                 f'{values["theta"]:.4f}'])
  reservoir = explained['reservoir']
  lines = [['item', 'rank', 'score', 'category', 'probability']]
  for k in range(min(most, len(reservoir['item']))):
    lines.append([reservoir['item'][k], str(reservoir['rank'][k]), f'{reservoir["score"][k]:.4f}',
                  reservoir['category'][k], f'{reservoir["probability"][k]:.4f}'])
  left_out = len(reservoir['item']) - most
  return (f'user {explained["user"]}, block {t}, reservoir {where}\n\n{screen.align(rows)}\n\n'
          f'{screen.align(lines)}' + (f'\n... and {left_out} more' if left_out > 0 else ''))


def plot(explained: Dict[str, Any]):
  """The paper's toy figure for a real user, as a matplotlib figure that explains itself.

  Interests over time, shares of the two blocks with the shift, prior, counts and posterior, and the reservoir: its
  items and expected draws. A category has one colour in all parts, and a few items stand for it.
  """
  import matplotlib  # pylint: disable=g-import-not-at-top
  from matplotlib import figure  # pylint: disable=g-import-not-at-top
  # Ids come from logs: a dollar sign in one of them is no formula. The setting holds for texts that are made here.
  with matplotlib.rc_context({'text.parse_math': False, 'axes.spines.top': False, 'axes.spines.right': False}):
    canvas = figure.Figure(figsize=(13, 9.5), layout='constrained')
    _draw(canvas, explained)
  return canvas


def _draw(canvas, explained: Dict[str, Any]) -> None:
  from matplotlib import patches  # pylint: disable=g-import-not-at-top
  t = explained['block']
  keep, names = _shown(explained)
  merged = {name: keep @ np.asarray(explained[name], float) for name in QUANTITIES}
  history = np.asarray(explained['history'], float) @ keep.T
  reservoir = explained['reservoir']
  draws = keep @ np.array([sum(p for p, c in zip(reservoir['probability'], reservoir['category']) if c == name)
                           for name in explained['categories']])
  colours = _COLOURS[:len(names) - 1] + _COLOURS[-1:] if names[-1] == 'others' else _COLOURS[:len(names)]
  (over_time, shares), (posterior, drawn) = canvas.subplots(2, 2)
  how = 'as trained with' if explained['saved'] else 'as SANE would build it from the finished model'
  canvas.suptitle(f'The negative reservoir of user {explained["user"]} in block {t} ({how})', weight='bold')

  def share(values):
    return values / np.maximum(values.sum(axis=-1, keepdims=True), 1e-12)

  def stacked(axis, columns, labels):
    bottom = np.zeros(len(labels))
    for k in range(len(names)):
      axis.bar(range(len(labels)), columns[:, k], bottom=bottom, color=colours[k])
      bottom += columns[:, k]
    axis.set_xticks(range(len(labels)), labels)
    axis.set(ylabel='share', ylim=(0, 1.02))

  def grouped(axis, parts):
    """Bars of each category side by side, from light to dark."""
    width = .8 / len(parts)
    for place, (values, shade) in enumerate(zip(parts.values(), _SHADES[-len(parts):])):
      axis.bar(np.arange(len(names)) - .4 + width * (place + .5), values, width, color=colours, alpha=shade)
    axis.legend(handles=[patches.Patch(facecolor='black', alpha=shade, label=label)
                         for label, shade in zip(parts, _SHADES[-len(parts):])], fontsize='small', frameon=False)
    axis.axhline(0., color='.5', linewidth=.8)
    # Room for the legend.
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + .3 * (high - low))
    axis.set_xticks(range(len(names)), names, rotation=30, ha='right')

  sizes = history.sum(axis=1)
  stacked(over_time, share(history), [f'block {k}' + (f'\n{size:.0f} rows' if size else '\nno rows of\nthis user')
                                      for k, size in enumerate(sizes)])
  over_time.set(title='(a) what they took, block by block')
  grouped(shares, {'share before the block (H)': share(merged['previous']), f'share in block {t} (H)': share(
      merged['current']), 'shift: the difference': merged['shift']})
  shares.set(title='(b) interests before and now, and their shift (below zero: lost)', ylabel='share')
  grouped(posterior, {'prior (alpha): more where interest was lost': share(merged['alpha']),
                      'counts (c): items of the reservoir': share(merged['counts']),
                      'posterior mean (theta): weight of each item': merged['theta']})
  posterior.set(title='(c) prior, counts of the reservoir, and posterior', ylabel='share')
  size = len(reservoir['item'])
  first, last = (reservoir['rank'][0], reservoir['rank'][-1]) if size else (0, 0)
  stacked(drawn, np.stack([share(merged['counts']), draws]),
          [f'{size} items of the reservoir\n(ranks {first} to {last})', 'negatives drawn from it\n(expected)'])
  drawn.set(title='(d) the reservoir, and what is drawn from it')
  examples = explained.get('examples') or [[]] * len(explained['categories'])
  of_name = dict(zip(explained['categories'], examples))
  canvas.legend(handles=[patches.Patch(facecolor=colour, label=f'{name}: {", ".join(of_name[name])} ...'
                                       if of_name.get(name) else str(name)) for colour, name in zip(colours, names)],
                loc='outside lower center', ncols=2, fontsize='small', frameon=False,
                title='categories, and some of their items')


def _shown(explained: Dict[str, Any]):
  """[shown, K] matrix that adds up the categories with the least to show, and the names."""
  names = explained['categories']
  if len(names) <= _SHOWN + 1:
    return np.eye(len(names)), names
  matter = np.abs(explained['shift']) + explained['counts'] / max(explained['counts'].sum(), 1.) + (
      explained['history'].sum(axis=0) / max(explained['history'].sum(), 1))
  order = np.sort(np.argsort(-matter, kind='stable')[:_SHOWN])
  keep = np.zeros((_SHOWN + 1, len(names)))
  keep[np.arange(_SHOWN), order] = 1.
  keep[_SHOWN] = 1. - keep[:_SHOWN].sum(axis=0)
  return keep, [names[k] for k in order] + ['others']


def save_plot(explained: Dict[str, Any], path) -> pathlib.Path:
  """Writes the picture as a PNG file."""
  path = pathlib.Path(path)
  files.make_directory(path.parent)
  plot(explained).savefig(path, format='png', dpi=100)
  return path
