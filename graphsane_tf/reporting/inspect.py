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


def explain_user(run: IncrementalRun, block: Optional[int], user_id: str) -> Dict[str, Any]:
  """Everything SANE derives for a user in a block.

  In a run that trained with SANE it is the state saved with the block's best epoch, otherwise what
  SANE would build from the block's finished model.

  Args:
    run: e.g. `graphsane_tf.runs.incremental.open_run(folder)`.
    block: number of a finished block after the base block; None takes the last with a reservoir.
    user_id: raw id of the user.

  Returns:
    user, block, saved (whether the state is the run's own), categories [K] names; history [block +
    1, K] interactions of each block by category; previous, current, shift, alpha, counts, theta
    [K]; and reservoir, a dict of lists: item (raw id), rank (when the reservoir was built), score
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
        'categories': names,
        'history': _history(run, block, user, sampler.category.numpy(), len(names)),
        **{name: derived[name] for name in QUANTITIES},
        'reservoir': {
            'item': run.interactions.item_ids[items].tolist(),
            'rank': (sampler.first_rank + np.arange(count)).tolist(),
            'score': scores.tolist(),
            'category': [names[k] for k in derived['category'][:count]],
            'probability': derived['probability'][:count].tolist()}}


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
  """The paper's toy figure for a real user, as a matplotlib figure.

  Interests over time, shares of the two blocks with the shift, the posterior, and the reservoir: its
  items and expected draws by category.
  """
  from matplotlib import figure  # pylint: disable=g-import-not-at-top
  t = explained['block']
  keep, names = _shown(explained)
  merged = {name: keep @ np.asarray(explained[name], float) for name in QUANTITIES}
  history = np.asarray(explained['history'], float) @ keep.T
  draws = keep @ np.array([
      sum(p for p, c in zip(explained['reservoir']['probability'], explained['reservoir']['category'])
          if c == name) for name in explained['categories']])
  colours = [f'C{k}' for k in range(len(names))]
  canvas = figure.Figure(figsize=(13, 8), layout='constrained')
  axes = canvas.subplots(2, 2)
  canvas.suptitle(f'user {explained["user"]}, block {t}')

  def share(values):
    return values / np.maximum(values.sum(axis=-1, keepdims=True), 1e-12)

  def stacked(axis, columns, labels):
    bottom = np.zeros(len(labels))
    for k, name in enumerate(names):
      axis.bar(labels, columns[:, k], bottom=bottom, color=colours[k], label=name)
      bottom += columns[:, k]

  stacked(axes[0, 0], share(history), [f'block {k}' for k in range(len(history))])
  axes[0, 0].set(title='(a) interests over time', ylabel='share of interactions')
  place = np.arange(len(names))
  for offset, name, label in ((-.27, 'previous', f'share in block {t - 1}'),
                              (0., 'current', f'share in block {t}')):
    axes[0, 1].bar(place + offset, share(merged[name]), .27, label=label)
  axes[0, 1].bar(place + .27, merged['shift'], .27, label='shift', color='.3')
  axes[0, 1].axhline(0., color='.5', linewidth=.8)
  axes[0, 1].set(title='(b, c) histograms on the simplex, and the shift')
  for offset, values, label in ((-.27, share(merged['alpha']), 'prior (alpha, normalised)'),
                                (0., share(merged['counts']), 'reservoir (c, normalised)'),
                                (.27, merged['theta'], 'posterior mean (theta)')):
    axes[1, 0].bar(place + offset, values, .27, label=label)
  axes[1, 0].set(title='prior, counts and posterior')
  for axis in (axes[0, 1], axes[1, 0]):
    axis.set_xticks(place, names, rotation=30, ha='right')
    axis.legend(fontsize='small')
  stacked(axes[1, 1], np.stack([share(merged['counts']), draws]),
          ['items in the reservoir', 'expected negatives'])
  axes[1, 1].set(title='(d) the reservoir by category', ylabel='share')
  axes[0, 0].legend(fontsize='small', loc='upper left', bbox_to_anchor=(1., 1.))
  return canvas


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
  plot(explained).savefig(path, format='png', dpi=110)
  return path
