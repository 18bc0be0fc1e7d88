"""Finished runs against each other: paired tests over users, corrected for the number of comparisons."""
import itertools
import pathlib
from typing import Any, Dict, List, Sequence

import numpy as np

from graphsane_tf import files
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import significance
from graphsane_tf.runs import folder as folder_lib

NOTE = ('Gain: of the first over the second, in the mean over users; a user counts once, with the mean over the blocks '
        'in which both runs judge them. Interval: 95 %, of the mean over users, so it says nothing about seeds. '
        "p: Wilcoxon's signed-rank test over users; p (Holm): corrected for the comparisons of this table.")


class FinishedRun:
  """What the folder of a run tells about users.

  Attributes:
    name: of the folder.
    averages: block to the mean of the metric, incremental blocks only.
    users: {user: {block: value}}.
  """

  def __init__(self, path, metric: str):
    path = pathlib.Path(path)
    self.name = path.resolve().name
    identity = folder_lib.read_identity(path)
    self.fingerprint = identity['data']['fingerprint']
    self.cuts = identity['config']['blocks']
    blocks = [entry for entry in files.read_object(path / 'results.json', {'blocks': []})['blocks']
              if entry['block'] > 0]
    if not blocks:
      raise UserError(f'{path} has no finished block after the base block: run it first.')
    self.averages: Dict[int, float] = {}
    self.users: Dict[int, Dict[int, float]] = {}
    for entry in blocks:
      block = entry['block']
      file = path / 'per_user' / f'block_{block}.npz'
      if not file.exists():
        raise UserError(f'{file} does not exist: run the same command again, which makes it anew.')
      with np.load(file, allow_pickle=False) as arrays:
        if metric not in arrays:
          known = ', '.join(name for name in arrays.files if '@' in name)
          raise UserError(f'--metric={metric} is not in {file}; choose from {known}.')
        values = arrays[metric]
        self.averages[block] = float(np.nanmean(values))
        for user, value in zip(arrays['user'].tolist(), values.tolist()):
          self.users.setdefault(user, {})[block] = value


def compare(paths: Sequence[Any], metric: str = 'recall@20') -> Dict[str, Any]:
  """Every pair of runs.

  Args:
    paths: folders of at least two runs of the same log.
    metric: name of a metric.

  Returns:
    'runs', a dict of label, blocks and average each, and 'pairs', dicts of first, second (labels), users, gain, low,
    high (%), p_value and p_holm.
  """
  if len(paths) < 2:
    raise UserError('give the folders of at least two runs: graphsane compare RUN RUN ...')
  finished = [FinishedRun(path, metric) for path in paths]
  for path, run in zip(paths[1:], finished[1:]):
    if run.fingerprint != finished[0].fingerprint or run.cuts != finished[0].cuts:
      raise UserError(f'{path} is a run of another log, or of other blocks, than {paths[0]}.')
  labels = _labels([pathlib.Path(path).resolve() for path in paths])
  runs = [{'label': label, 'blocks': run.averages, 'average': float(np.mean(list(run.averages.values())))}
          for label, run in zip(labels, finished)]
  pairs = [{'first': labels[a], 'second': labels[b], **_against(finished[a], finished[b])}
           for a, b in itertools.combinations(range(len(paths)), 2)]
  for pair, value in zip(pairs, significance.holm([pair['p_value'] for pair in pairs])):
    pair['p_holm'] = float(value)
  return {'metric': metric, 'runs': runs, 'pairs': pairs}


def _labels(paths: List[pathlib.Path]) -> List[str]:
  """The shortest ends of the paths that tell them apart."""
  for length in range(1, 1 + max(len(path.parts) for path in paths)):
    labels = ['/'.join(path.parts[-length:]) for path in paths]
    if len(set(labels)) == len(labels):
      return labels
  raise UserError('a folder is named twice: give different runs.')


def _against(first: FinishedRun, second: FinishedRun) -> Dict[str, Any]:
  """Gain, interval and test of one run over another."""
  ours, theirs = [], []
  for user in sorted(first.users.keys() & second.users.keys()):
    both = first.users[user].keys() & second.users[user].keys()
    if both:
      ours.append(np.mean([first.users[user][block] for block in both]))
      theirs.append(np.mean([second.users[user][block] for block in both]))
  test = significance.paired_wilcoxon(np.array(ours), np.array(theirs))
  span = significance.interval(np.array(ours) - np.array(theirs))
  scale = 100 / max(float(np.mean(theirs)), 1e-12)
  return {'users': len(ours), 'gain': scale * test.mean_difference,
          'low': None if span.low is None else scale * span.low,
          'high': None if span.high is None else scale * span.high, 'p_value': test.p_value}


def run_table(outcome: Dict[str, Any]) -> Dict[str, Any]:
  """Heads and cells of the runs."""
  blocks = sorted({block for run in outcome['runs'] for block in run['blocks']})
  return {'heads': ['run', *[f'block {block}' for block in blocks], 'average'],
          'cells': [[run['label'], *[run['blocks'].get(block) for block in blocks], run['average']]
                    for run in outcome['runs']]}


def pair_table(outcome: Dict[str, Any]) -> Dict[str, Any]:
  """Heads and cells of the pairs."""
  span = lambda pair: None if pair['low'] is None else f'{pair["low"]:+.1f} to {pair["high"]:+.1f}'
  return {'heads': ['first', 'second', 'gain %', '95 % interval', 'p', 'p (Holm)', 'users'],
          'cells': [[pair['first'], pair['second'], pair['gain'], span(pair), pair['p_value'], pair['p_holm'],
                     pair['users']] for pair in outcome['pairs']]}


def plot(outcome: Dict[str, Any], path) -> pathlib.Path:
  """Writes a picture: averages of the runs, and gains of the pairs with their intervals."""
  from matplotlib import figure  # pylint: disable=g-import-not-at-top
  import matplotlib  # pylint: disable=g-import-not-at-top
  runs, pairs = outcome['runs'][::-1], outcome['pairs'][::-1]
  with matplotlib.rc_context({'text.parse_math': False}):
    canvas = figure.Figure(figsize=(9, 1.6 + .45 * (len(runs) + len(pairs))), layout='constrained')
    top, bottom = canvas.subplots(2, 1, height_ratios=(len(runs) + 1, len(pairs) + 1))
    top.barh([run['label'] for run in runs], [run['average'] for run in runs], color='#0072b2')
    top.set(title=f'{outcome["metric"]}, mean over blocks')
    for place, pair in enumerate(pairs):
      sure = pair['p_holm'] < .05
      half = 0. if pair['low'] is None else pair['gain'] - pair['low']
      bottom.errorbar(pair['gain'], place, xerr=half, fmt='o', capsize=3, color='#d55e00' if sure else '.5')
    bottom.axvline(0., color='.6', linewidth=.8)
    bottom.set_yticks(range(len(pairs)), [f'{pair["first"]} over {pair["second"]}' for pair in pairs])
    bottom.set_ylim(-.6, len(pairs) - .4)
    bottom.set(title='gain, % (orange: p (Holm) below .05)')
    path = pathlib.Path(path)
    files.make_directory(path.parent)
    canvas.savefig(path, dpi=120)
  return path
