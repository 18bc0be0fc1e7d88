"""Whether a candidate may be published: it and its rivals on the newest rows, by one protocol, paired over users."""
import dataclasses
from typing import Any, Dict, Iterable, List, Optional

import numpy as np

from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import metrics, protocol, ranking, significance
from graphsane_tf.memory import mixing
from graphsane_tf.training.block import SELECTION_METRIC
from graphsane_tf.training.scoring import Scoring

# How far back recent popularity looks, in seconds.
RECENT = 7 * 86400
# What may be published, of which the first wins a tie, and what they are compared with.
MOVES = ('trained', 'graph_only', 'memory', 'recent')
# A choice between moves is made on so many users, of as many of the last updates as it takes, up to a limit.
ENOUGH_USERS, MAX_UPDATES = 500, 10
# Those for which the graph model counts nothing, and their mixtures.
ALONE = {'memory': mixing.MEMORY_ALONE, 'recent': mixing.Mixture(0., 0., 1.)}


def moves_of(models: Iterable[str], scoring: Scoring) -> List[str]:
  """The moves there are, in order: those of the graph model, and what a memory gives alone."""
  memory = scoring.recollection
  there = [*models, *(['recent'] if memory else []), *(['memory'] if memory and memory.weights is not None else [])]
  return [name for name in MOVES if name in there]


def scorer_of(move: str, scoring: Scoring, vectors, time: np.ndarray) -> ranking.DotProduct:
  """How a move ranks.

  Args:
    move: its name.
    scoring: of its rows.
    vectors: final representations [num_users, D], [num_items, D].
    time: [num_rows or more] seconds of each row of the log.
  """
  if move == 'memory':
    parts = scoring.parts(*vectors)
    if move not in parts:
      raise UserError('--publish=memory: the memory of this store has no item-item weights; choose another move.')
    return parts[move]
  if move == 'recent':
    user_vectors, item_vectors = vectors
    assert scoring.recollection is not None  # Without a memory there is no such move.
    counts = recent_counts(scoring.context, time)
    statistics = dataclasses.replace(scoring.recollection.statistics, recent=counts)
    return mixing.mix(ALONE[move], user_vectors, item_vectors,
                      dataclasses.replace(scoring.recollection, statistics=statistics))
  return scoring(*vectors)


def mixture_of(move: str, scoring: Scoring) -> Optional[Dict[str, float]]:
  """How much graph model, memory and recent popularity count; None without a memory."""
  if scoring.mixture is None:
    return None
  return dataclasses.asdict(dataclasses.replace(ALONE.get(move, scoring.mixture), half_age=scoring.mixture.half_age))


class Popularity(ranking.Scorer):
  """The same scores for all users: counts of the items."""

  def __init__(self, counts: np.ndarray, num_users: int):
    """Takes [num_items] counts."""
    self._counts = counts.astype(np.float32)
    self.num_users, self.num_items = num_users, len(counts)

  def tile(self, start, stop):
    def write(users, out):
      del users
      out[:] = self._counts[start:stop]
    return write


class Everyone(ranking.Scorer):
  """A model that ranks the users whom it does not know by popularity, as it is served."""

  def __init__(self, scorer: ranking.Scorer, counts: np.ndarray, num_users: int):
    """Takes the model, [num_items] counts and how many users there are in all."""
    self._scorer = scorer
    self._popular = Popularity(counts, num_users)
    self.num_users, self.num_items = num_users, scorer.num_items

  def tile(self, start, stop):
    known_tile, popular_tile = self._scorer.tile(start, stop), self._popular.tile(start, stop)

    def write(users, out):
      known = users < self._scorer.num_users
      if known.all():
        known_tile(users, out)
        return
      popular_tile(users, out)
      if known.any():
        scores = np.empty((int(known.sum()), stop - start), np.float32)
        known_tile(users[known], scores)
        out[known] = scores

    return write


@dataclasses.dataclass(frozen=True)
class Judge:
  """The rows that rivals are compared on.

  Attributes:
    users, items: [m] held-out pairs.
    num_users: users in all.
    options: what is measured.
  """
  users: np.ndarray
  items: np.ndarray
  num_users: int
  options: metrics.Options

  def measure(self, scorer: ranking.Scorer, context: BlockContext) -> protocol.EvaluationResult:
    """A model as it would be served: with the rows, users and items that its context knows."""
    return self._evaluate(Everyone(scorer, context.popularity, self.num_users), context)

  def measure_popularity(self, counts: np.ndarray, context: BlockContext) -> protocol.EvaluationResult:
    """[num_items] counts as a ranking for everyone; what the context knows to be seen is left out."""
    return self._evaluate(Popularity(counts, self.num_users), context)

  def _evaluate(self, scorer, context):
    seen = context.history.resized(self.num_users, context.num_items)
    return protocol.evaluate_block(scorer, seen, self.users, self.items, context.popularity, self.options)


def recent_counts(context: BlockContext, time: np.ndarray) -> np.ndarray:
  """[num_items] interactions of each item in the last days of a context's rows.

  Args:
    context: the rows.
    time: [num_rows or more] seconds of each row of the log.
  """
  time = time[:context.num_rows]
  recent = time > time.max() - RECENT
  return np.bincount(context.log_items[recent], minlength=context.num_items)


def earlier_gates(manifests: Iterable[Dict[str, Any]], numbering: int, judged: int) -> List[Dict[str, Any]]:
  """The parts 'gate' of the versions so far that say something about moves on other rows, the newest first.

  What was refused waits, and may be judged on again: nobody is to count twice.

  Args:
    manifests: of all versions, the newest last.
    numbering: of the log; rows of another numbering cannot be compared and count.
    judged: first row that is judged on today.
  """
  return [entry['gate'] for entry in reversed(list(manifests))
          if entry['kind'] not in ('rollback', 'forgotten') and entry['gate'].get('options')
          and (entry['numbering'] != numbering or entry['measured']['judged_rows'][1] <= judged)]


def decide(measured: Dict[str, protocol.EvaluationResult], margin: float,
           earlier: Iterable[Dict[str, Any]] = ()) -> Dict[str, Any]:
  """The part 'gate' of a manifest.

  The best of the moves is chosen and compared with the best of the rest: what is served now, and popularity. With
  few users a move is best by chance, so that earlier updates count as well; but the move that they choose gives way to
  today's best if it is too far below a rival today.

  Args:
    measured: the moves that were tried and their rivals, all on the same users.
    margin: how much worse, relative to the best rival, the chosen one may be.
    earlier: this part of earlier manifests, the newest first.
  """
  value = {name: result.metrics[SELECTION_METRIC] for name, result in measured.items()}
  moves = [name for name in MOVES if name in measured]
  users = len(next(iter(measured.values())).per_user['user'])
  pooled, total, updates = _pooled({name: value[name] for name in moves}, users, earlier)
  rivals = [name for name in measured if name not in MOVES]
  best = max(rivals, key=lambda name: value[name]) if rivals else None
  today, chosen = (max(moves, key=lambda name: values[name]) for values in (value, pooled))
  if best is not None and value[chosen] < (1. - margin) * value[best]:
    chosen = today
  gate: Dict[str, Any] = {
      'metric': SELECTION_METRIC, 'margin': margin,
      'options': {name: result.metrics for name, result in measured.items()},
      'users': users, 'chosen': chosen, 'pooled': {'users': total, 'updates': updates, SELECTION_METRIC: pooled}}
  if best is None:
    return {**gate, 'decision': chosen, 'difference': None, 'reason': 'there is nothing to compare it with.'}
  difference = measured[chosen].per_user[SELECTION_METRIC] - measured[best].per_user[SELECTION_METRIC]
  interval = significance.interval(difference)
  passed = value[chosen] >= (1. - margin) * value[best]
  words = f'{SELECTION_METRIC} {value[chosen]:.4f} against {value[best]:.4f} of {best}'
  return {**gate, 'decision': chosen if passed else 'refused',
          'difference': {'against': best, 'mean': interval.mean, 'low': interval.low, 'high': interval.high},
          'reason': f'{chosen} has {words} ({shown(interval.mean, interval.low, interval.high)} over '
                    f'{interval.count:,} users){_verdict(passed, value[chosen] >= value[best], margin)}.'}


def _pooled(values: Dict[str, float], users: int, earlier: Iterable[Dict[str, Any]]):
  """Means over the users of today's judged rows and, while these are few, of earlier updates'.

  Args:
    values: what each move has today.
    users: how many users that is the mean of.
    earlier: see `decide`.

  Returns:
    The means by move, the number of users and that of the updates.
  """
  total, updates = users, 1
  sums = {name: value * users for name, value in values.items()}
  for gate in earlier:
    if total >= ENOUGH_USERS or updates >= MAX_UPDATES:
      break
    if all(name in gate['options'] for name in values):
      total, updates = total + gate['users'], updates + 1
      for name in values:
        sums[name] += gate['users'] * gate['options'][name][SELECTION_METRIC]
  return {name: value / max(total, 1) for name, value in sums.items()}, total, updates


def _verdict(passed: bool, ahead: bool, margin: float) -> str:
  if ahead:
    return ''
  return f', {"within" if passed else "more than"} the margin of {100 * margin:g} %{"" if passed else " below"}'


def shown(mean: float, low: Optional[float], high: Optional[float]) -> str:
  """'+0.0012, 95 % interval -0.0003 to +0.0027'."""
  return f'{mean:+.4f}' + ('' if low is None else f', 95 % interval {low:+.4f} to {high:+.4f}')
