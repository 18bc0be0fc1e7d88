"""Joins graph model, memory and popularity into one score, with weights that earlier blocks have shown to be right."""
import dataclasses
import functools
from typing import Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import scipy.sparse

from graphsane_tf import parallel, workers
from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr, topk
from graphsane_tf.memory.statistics import Statistics

# Weights of which at least this share is not 0, of so many items at most (256 MiB), are multiplied as a dense matrix.
_DENSE_SHARE, _DENSE_ITEMS = 1 / 32, 1 << 13
# Users whose items of a block tell how to mix, and scores of them in work at once, in each thread.
_MAX_USERS = 2048
_CHUNK_FLOATS = 1 << 20


# Item-item weights [num_items, num_items] float32.
Table = Union[np.ndarray, scipy.sparse.csr_matrix]


@dataclasses.dataclass(frozen=True, order=True)
class Mixture:
  """How much each part counts; every part has a standard deviation of 1 over all items of a user.

  Attributes:
    graph: weight of the graph model.
    memory: weight of the item-item memory.
    recent: weight of log(1 + count in the newest rows).
    half_age: of the memory's profiles, see `Statistics.profile`.
  """
  graph: float
  memory: float
  recent: float = 0.
  half_age: float = 0.

  def words(self) -> str:
    """'4 graph + 1 memory (half age 0.1) + 0.5 recent popularity'; says so if the graph model counts nothing."""
    age = f' (half age {self.half_age:g})' if self.half_age else ''
    parts = {'graph': self.graph, f'memory{age}': self.memory, 'recent popularity': self.recent}
    silent = '' if self.graph else '; the graph model counts nothing'
    return ' + '.join(f'{weight:g} {name}' for name, weight in parts.items() if weight) + silent


GRAPH_ALONE, MEMORY_ALONE = Mixture(1., 0.), Mixture(0., 1.)
# The graph model's weights beside a memory of weight 1, and those of recent popularity beside the mean of both.
_GRAPH = (0., 1., 2., 4., 8., 16.)
_RECENT = (0., .5, 1., 2., 4.)
# How much what an earlier block has shown counts beside what the next one has.
_FADING = .25
# A mixture that is worse than the best by this share at most is as good: validation rows of one week, and a few
# thousand users, tell no more about the next week.
_INDIFFERENCE = .03


def candidates(has_weights: bool, half_age: float = 0.) -> List[Mixture]:
  """The mixtures to choose from; without item-item weights the graph model is always in."""
  if not has_weights:
    return [Mixture(1., 0., recent) for recent in _RECENT]
  return [Mixture(graph, 1., recent * (1 + graph / 2), half_age) for graph in _GRAPH for recent in _RECENT]


def default(has_weights: bool, half_age: float = 0.) -> Mixture:
  """What is used before any block has shown better."""
  return Mixture(4., 1., half_age=half_age) if has_weights else GRAPH_ALONE


@dataclasses.dataclass(frozen=True, eq=False)
class Recollection:
  """What a memory says after a block.

  Attributes:
    statistics: what was counted.
    weights: [num_items, num_items] float32, or None.
    half_ages: of profiles that there are to choose from, see `Statistics.profile`.
    taste: how much a user's recent taste counts beside their vector in the graph model; 0 is not at all.
    taste_half_age: of the profiles that it is made of.
  """
  statistics: Statistics
  weights: Optional[scipy.sparse.csr_matrix]
  half_ages: Sequence[float] = (0.,)
  taste: float = 0.
  taste_half_age: float = 0.

  @functools.cached_property
  def table(self) -> 'Table':
    """The weights as they are multiplied fastest."""
    assert self.weights is not None  # Nobody asks without.
    return quick(self.weights)

  def users(self, user_vectors: np.ndarray, item_vectors: np.ndarray) -> np.ndarray:
    """[num_users, D] float32: vectors of users whose scores have a standard deviation of about 1 over all items.

    A user's vector in the graph model is the sum of a long life. Their recent taste is the mean of the vectors of what
    they have taken, the newest above all, and is brought to the same scale.

    Args:
      user_vectors: [num_users, D] float32 of the graph model.
      item_vectors: [num_items, D] float32.
    """
    long_run = user_vectors * user_scale(user_vectors, item_vectors)[:, None]
    if not self.taste:
      return long_run
    recent = np.asarray(self.statistics.profile(self.taste_half_age) @ item_vectors, np.float32)
    recent *= user_scale(recent, item_vectors)[:, None]
    return (long_run + np.float32(self.taste) * recent) / np.float32(1 + self.taste)

  def profile(self, half_age: float) -> scipy.sparse.csr_matrix:
    """[num_users, num_items] float32: profiles whose scores have a standard deviation of 1 over all items.

    Args:
      half_age: of the profiles.
    """
    profile, table = self.statistics.profile(half_age), self.table
    users = profile.shape[0]
    scale = np.zeros(users, np.float32)

    def measure(start):
      part = slice(start, start + 1024)
      scale[part] = row_scale(profile[part] @ table)

    parallel.side_by_side(measure, range(0, users, 1024))
    return scaled(profile, scale)

  def recent(self) -> np.ndarray:
    """[num_items] float32: log(1 + count in the newest rows), of deviation 1."""
    logs = np.log1p(self.statistics.recent.astype(np.float64))
    return (logs / max(logs.std(), 1e-9)).astype(np.float32)


def scaled(matrix: scipy.sparse.csr_matrix, scale: np.ndarray) -> scipy.sparse.csr_matrix:
  """The matrix with its rows times scale [num_rows] float32."""
  return scipy.sparse.csr_matrix((matrix.data * np.repeat(scale, np.diff(matrix.indptr)), matrix.indices,
                                  matrix.indptr), shape=matrix.shape)


def quick(weights: scipy.sparse.csr_matrix) -> Table:
  """Weights [num_items, num_items] dense, if products with them are faster so and they are few."""
  items = weights.shape[0]
  return weights.toarray() if items <= _DENSE_ITEMS and weights.nnz >= _DENSE_SHARE * items * items else weights


def _dense(scores: Table) -> np.ndarray:
  """A product with a `Table` as an array."""
  return scores if isinstance(scores, np.ndarray) else scores.toarray()


def row_scale(scores: Table) -> np.ndarray:
  """[num_rows] float32: one over the standard deviation of each row of scores, 0 for 0."""
  if isinstance(scores, np.ndarray):
    return _inverse(scores.std(axis=1, dtype=np.float64))
  rows, items = scores.shape
  row = np.repeat(np.arange(rows), np.diff(scores.indptr))
  total, squares = (np.bincount(row, values, rows) for values in (
      scores.data.astype(np.float64), scores.data.astype(np.float64) ** 2))
  return _inverse(np.sqrt(np.maximum(squares / items - (total / items) ** 2, 0)))


def _inverse(deviation: np.ndarray) -> np.ndarray:
  """float32: one over it, 0 for 0."""
  return np.where(deviation > 1e-9, 1 / np.maximum(deviation, 1e-9), 0).astype(np.float32)


def user_deviation(user_vectors: np.ndarray, item_vectors: np.ndarray) -> np.ndarray:
  """[num_users] float64: standard deviation of each user's dot products with all items."""
  centred = item_vectors.astype(np.float64)
  centred -= centred.mean(axis=0)
  spread = centred.T @ centred / len(centred)
  return np.sqrt(np.maximum(np.einsum('ud,ud->u', user_vectors @ spread, user_vectors), 0))


def user_scale(user_vectors: np.ndarray, item_vectors: np.ndarray) -> np.ndarray:
  """[num_users] float32: one over that, 0 for 0."""
  return _inverse(user_deviation(user_vectors, item_vectors))


class Mixed(ranking.DotProduct):
  """Scores of a mixture: dot products plus profiles times item-item weights.

  Attributes:
    user_vectors, item_vectors: [num_users, D + 1] and [num_items, D + 1], popularity in the last column.
    profile: [num_users, num_items] float32, or None if the memory does not count.
    weights: [num_items, num_items] float32, or None.
    parts: the mixture, and what the memory says, by which `mix` has made it; None if it was made otherwise.
  """

  def __init__(self, user_vectors: np.ndarray, item_vectors: np.ndarray,
               profile: Optional[scipy.sparse.csr_matrix], weights: Optional[scipy.sparse.csr_matrix],
               parts: Optional[Tuple[Mixture, Recollection]] = None):
    super().__init__(user_vectors, item_vectors)
    self.profile, self.weights, self.parts = profile, weights, parts

  @functools.cached_property
  def _table(self) -> Table:
    if self.parts is not None and self.weights is self.parts[1].weights:
      return self.parts[1].table
    return quick(self.weights)

  def cut(self, num_users: int, num_items: int) -> 'Mixed':
    """The scores of the first users and items."""
    profile, weights = self.profile, self.weights
    if profile is not None and weights is not None:
      profile, weights = profile[:num_users, :num_items], weights[:num_items, :num_items]
    return Mixed(self.user_vectors[:num_users], self.item_vectors[:num_items], profile, weights)

  def tile(self, start, stop):
    dense = super().tile(start, stop)
    if self.profile is None:
      return dense
    table = self._table if (start, stop) == (0, self.num_items) else self._table[:, start:stop]

    def write(users, out):
      dense(users, out)
      out += _dense(self.profile[users] @ table)

    return write

  def device_tile(self, start, stop):
    return super().device_tile(start, stop) if self.profile is None else None


def mix(mixture: Mixture, user_vectors, item_vectors, recollection: Recollection,
        profile: Optional[scipy.sparse.csr_matrix] = None) -> Mixed:
  """The scores of a mixture.

  Args:
    mixture: the weights.
    user_vectors: [num_users, D] float32 final representations of the graph model.
    item_vectors: [num_items, D] float32.
    recollection: what the memory says about the same users and items.
    profile: its `profile(mixture.half_age)`, if it is known.
  """
  user_vectors, item_vectors = (np.asarray(part, np.float32) for part in (user_vectors, item_vectors))
  users = recollection.users(user_vectors, item_vectors) * np.float32(mixture.graph)
  # Short beside an item's own vector, so that it does not count in cosines of items.
  length = np.float32(1e-3 * max(np.linalg.norm(item_vectors, axis=1).mean(), 1e-6))
  popularity = np.full((len(user_vectors), 1), mixture.recent / length, np.float32)
  weights = recollection.weights if mixture.memory else None
  if weights is None:
    profile = None
  else:
    profile = (recollection.profile(mixture.half_age) if profile is None else profile) * np.float32(mixture.memory)
  return Mixed(np.hstack([users, popularity]),
               np.hstack([item_vectors, length * recollection.recent()[:, None]]), profile, weights,
               (mixture, recollection))


def evidence(user_vectors, item_vectors, recollection: Recollection, seen: csr.Csr, users: np.ndarray,
             items: np.ndarray, rng: np.random.Generator, k: int = 20) -> Dict[Mixture, float]:
  """Recall@k on later rows of the memory alone with every half age, and of every mixture with the best of these.

  Args:
    user_vectors: [num_users, D] of the model, and `item_vectors` [num_items, D].
    item_vectors: see there.
    recollection: of the memory at the same time.
    seen: [num_users, ...] items that the users had taken by then.
    users: [n] users of the later rows; those that the model does not know are left out.
    items: [n] their items.
    rng: draws the users if there are many.
    k: length of the lists.

  Returns:
    Mean recall over users, by mixture; {} if the model knows none of them.
  """
  user_vectors, item_vectors = (np.asarray(part, np.float32) for part in (user_vectors, item_vectors))
  num_users, num_items = len(user_vectors), len(item_vectors)
  known = np.unique(users[users < num_users])
  if not len(known):
    return {}
  asked = np.sort(rng.choice(known, min(len(known), _MAX_USERS), replace=False))
  wanted = np.isin(users, asked)
  truth = scipy.sparse.csr_matrix((np.ones(wanted.sum(), np.float32), (users[wanted], items[wanted])),
                                  shape=(num_users, max(int(items.max()) + 1, num_items)))[asked]
  relevant = np.diff(truth.indptr)
  truth = truth[:, :num_items]
  graph = recollection.users(user_vectors, item_vectors)[asked]
  recent = recollection.recent()
  left_out = seen.select(asked)
  width = -(-num_items // topk.UNIT) * topk.UNIT
  stretch = max(1, _CHUNK_FLOATS // width)

  def recalls(mixtures: Sequence[Mixture]) -> Dict[Mixture, float]:
    """Mean recall of mixtures with one half age."""
    remembers = any(mixture.memory for mixture in mixtures)
    profile = recollection.statistics.profile(mixtures[0].half_age)[asked] if remembers else None
    learns = any(mixture.graph for mixture in mixtures)

    def measure(start):
      part = slice(start, min(start + stretch, len(asked)))
      learned = graph[part] @ item_vectors.T if learns else np.float32(0)
      remembered = None
      if remembers:
        # As `Recollection.profile` has it, but with one product instead of two.
        product = profile[part] @ recollection.table
        remembered = _dense(product) * row_scale(product)[:, None]
      taken = left_out.select(np.arange(part.start, part.stop))
      inside = taken.indices < num_items
      masked = taken.rows()[inside], taken.indices[inside]
      hits = truth[part].toarray() > 0
      scores, joint = (np.full((len(hits), width), -np.inf, np.float32) for _ in range(2))
      weight, found = None, []
      for mixture in mixtures:
        # Mixtures that differ in popularity alone stand together.
        if mixture.graph != weight:
          weight = mixture.graph
          np.multiply(learned, np.float32(weight), out=joint[:, :num_items])
          if remembers:
            joint[:, :num_items] += remembered
          joint[masked] = -np.inf
        np.add(joint[:, :num_items], np.float32(mixture.recent) * recent, out=scores[:, :num_items])
        values, columns = topk.select(scores, min(k, width))
        # Where there are fewer than k left, a column means nothing.
        columns = np.clip(columns, 0, num_items - 1)
        hit = np.take_along_axis(hits, columns, axis=1) & (values > -np.inf)
        found.append((hit.sum(axis=1) / relevant[part]).sum())
      return found

    fellows = workers.current()
    starts = np.arange(0, len(asked), stretch)
    found = parallel.side_by_side(measure, starts[fellows.share(len(starts))])
    sums = np.sum(fellows.gather(np.reshape(found, [-1, len(mixtures)])), axis=0)
    return {mixture: float(total) / len(asked) for mixture, total in zip(mixtures, sums)}

  if recollection.weights is None:
    return recalls(candidates(False))
  alone: Dict[Mixture, float] = {}
  for half_age in recollection.half_ages:
    alone.update(recalls([Mixture(0., 1., 0., half_age)]))
  return {**alone, **recalls(candidates(True, _best_age(alone)))}


def _best_age(told: Dict[Mixture, float]) -> float:
  """The half age with which the memory alone was best; of equal ones the first."""
  alone = {mixture.half_age: recall for mixture, recall in told.items() if not mixture.graph and not mixture.recent}
  return max(alone, key=lambda half_age: alone[half_age]) if alone else 0.


def _distance(mixture: Mixture) -> float:
  """Of a mixture from equal parts of graph model and memory: doublings of the one's weight, and of the whole."""
  return abs(float(np.log2(1 + mixture.graph)) - 1) + float(np.log2(1 + mixture.recent))


def choose(evidences: Sequence[Dict[Mixture, float]], has_weights: bool, half_ages: Sequence[float] = (0.,)) -> Mixture:
  """The mixture nearest to equal parts of graph model and memory, of those that are as good as the best on average.

  An average is over evidences, each on the scale of its own best, the newest above all. What validation rows show
  need not hold on later ones: equal parts of two different forecasts, without what was popular in the last days, are
  hard to beat by weights that have been learned from little.

  Args:
    evidences: from `evidence`, the newest last; empty ones say nothing.
    has_weights: whether the memory has item-item weights.
    half_ages: of profiles, of which the last is used before any block has shown better.
  """
  told = [one for one in evidences if one and max(one.values()) > 0]
  if not told:
    return default(has_weights, half_ages[-1])
  counts = _FADING ** np.arange(len(told))[::-1]

  def average(values: Sequence[Dict[Mixture, float]], mixtures: Sequence[Mixture]) -> Dict[Mixture, float]:
    """Of the mixtures that all of the evidences tell of."""
    return {mixture: float(np.dot(counts, [one[mixture] / max(max(one.values()), 1e-12) for one in values]))
            for mixture in mixtures if all(mixture in one for one in values)}

  half_age = _best_age(average(told, [Mixture(0., 1., 0., one) for one in half_ages])) if has_weights else 0.
  # Each evidence has mixtures with the half age that was best there.
  plain = [{dataclasses.replace(mixture, half_age=0.): recall for mixture, recall in one.items()
            if mixture.half_age == _best_age(one)} for one in told]
  shares = average(plain, candidates(has_weights))
  enough = (1 - _INDIFFERENCE) * max(shares.values())
  # Of equally near ones the better one.
  chosen = min((mixture for mixture in shares if shares[mixture] >= enough),
               key=lambda mixture: (_distance(mixture), -shares[mixture]))
  return dataclasses.replace(chosen, half_age=half_age)
