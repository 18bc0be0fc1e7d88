"""The training objective in plain NumPy: dense matrices, float64, and no helper of the package."""
import numpy as np
import tensorflow as tf

KINDS = ('u', 'i')


class Draws:
  """The random numbers below a seed, in the order in which a step asks for them."""

  def __init__(self, seed):
    self._seed = tf.constant(seed)
    self._count = 0

  def _next(self):
    self._count += 1
    return tf.random.experimental.stateless_fold_in(self._seed, self._count)

  def uniform(self, shape, dtype=tf.float32) -> np.ndarray:
    return tf.random.stateless_uniform(shape, self._next(), dtype=dtype).numpy()

  def dropout(self, values: np.ndarray, rate: float) -> np.ndarray:
    """Values whose random byte is below the rate become 0, the others grow to keep the mean."""
    if not rate:
      return values
    level = round(256 * rate)
    rows, columns = values.shape
    words = tf.random.stateless_uniform(
        [rows, -(-columns // 4)], self._next(), minval=None, maxval=None, dtype=tf.int32).numpy()
    byte = words.view(np.uint8).reshape(rows, -1)[:, :columns]
    return values * (byte >= level) * (256. / (256. - level))


class Graph:
  """Adjacency matrices by relation; two nodes of one kind are near if they share a neighbour.

  It has all near nodes, so the package's graph must be given a number of nearest neighbours that no
  node reaches.
  """

  def __init__(self, pairs, num_users: int, num_items: int):
    edges = np.zeros((num_users, num_items))
    for user, item in pairs:
      edges[user, item] = 1.
    self.near = {'ui': edges, 'iu': edges.T}
    for own, other in ('ui', 'iu'):
      shared = self.near[own + other] @ self.near[other + own] > 0
      np.fill_diagonal(shared, False)
      self.near[own + own] = shared.astype(float)

  def mean(self, relation: str) -> np.ndarray:
    """The matrix that averages over neighbours; rows without one are zero."""
    near = self.near[relation]
    return near / np.maximum(near.sum(axis=1, keepdims=True), 1.)

  def visited(self, relation: str, nodes) -> np.ndarray:
    """Distinct neighbours of some nodes that all have one, in the order of the first visit."""
    found = np.concatenate([np.flatnonzero(self.near[relation][node]) for node in nodes])
    return np.array(list(dict.fromkeys(found.tolist())))


def _unit(rows):
  return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


class Mgccf:
  """MGCCF's representations."""

  _TOWER = {'u': 'user', 'i': 'item'}

  def __init__(self, weights, graph: Graph, rate: float, draws: Draws):
    self._w, self._graph, self._rate, self._draws = weights, graph, rate, draws

  def _table(self, kind):
    return self._w[f'{self._TOWER[kind]}_table']

  def _combine(self, own, neighbourhood, weight):
    dropped = self._draws.dropout(neighbourhood, self._rate)
    return np.tanh(np.concatenate([own, dropped], axis=1) @ self._w[weight])

  def _inner(self, kind, nodes):
    other = 'i' if kind == 'u' else 'u'
    mean = (self._graph.mean(kind + other) @ self._table(other))[nodes]
    return self._combine(self._table(kind)[nodes], mean, f'{self._TOWER[other]}_inner')

  def encode(self, nodes, whole: bool):
    """Layers of the nodes by kind. A whole view computes a first layer for all nodes, once."""
    known, result = {}, {}

    def inner(kind, asked):
      if not whole:
        return self._inner(kind, asked)
      if kind not in known:
        known[kind] = self._inner(kind, np.arange(len(self._table(kind))))
      return known[kind][asked]

    for kind, other in ('ui', 'iu'):
      own, tower = self._table(kind)[nodes[kind]], self._TOWER[kind]
      everyone = np.arange(len(self._table(other)))
      reached = everyone if whole else self._graph.visited(kind + other, nodes[kind])
      rows = np.zeros_like(self._table(other))
      rows[reached] = inner(other, reached)
      outer = self._combine(own, (self._graph.mean(kind + other) @ rows)[nodes[kind]],
                            f'{tower}_outer')
      near = (self._graph.mean(kind + kind) @ self._table(kind))[nodes[kind]]
      final = [np.tanh(outer), np.tanh(self._combine(own, near, f'{tower}_knn')), own]
      result[kind] = [own, inner(kind, nodes[kind]), np.concatenate(final, axis=1)]
    return result


class PinSage:
  """PinSage's representations."""

  def __init__(self, weights, graph: Graph, rate: float, draws: Draws, scale: float = 10.):
    self._w, self._graph, self._rate, self._draws = weights, graph, rate, draws
    self._scale = scale
    self._tables = {'u': weights['user_table'], 'i': weights['item_table']}

  def _dense(self, name, rows):
    return np.maximum(rows @ self._w[name] + self._w[f'{name}_bias'], 0.)

  def _layer(self, kind, number, nodes, own, other_rows):
    """A convolution at the nodes, from their own rows and those of all nodes of the other kind."""
    other = 'i' if kind == 'u' else 'u'
    near = self._graph.mean(kind + other) @ self._dense(f'{kind}_neighbour{number}', other_rows)
    dropped = self._draws.dropout(near[nodes], self._rate)
    return _unit(self._dense(f'{kind}_merge{number}', np.concatenate([own, dropped], axis=1)))

  def encode(self, nodes, whole: bool):
    """Layers of the nodes by kind; a sampled view computes the first layer wherever it is asked for."""
    first, result = {}, {}

    def layer1(kind, asked):
      other = 'i' if kind == 'u' else 'u'
      if whole and kind in first:
        return first[kind]
      at = np.arange(len(self._tables[kind])) if whole else asked
      rows = np.zeros_like(self._tables[kind])
      rows[at] = self._layer(kind, 1, at, self._tables[kind][at], self._tables[other])
      first[kind] = rows
      return rows

    for kind, other in ('ui', 'iu'):
      asked = nodes[kind]
      own = layer1(kind, asked)[asked]
      reached = layer1(other, self._graph.visited(kind + other, asked))
      second = self._layer(kind, 2, asked, own, reached)
      final = self._dense(f'{kind}_hidden', second) @ self._w[f'{kind}_output']
      result[kind] = [self._tables[kind][asked], own, second, np.sqrt(self._scale) * _unit(final)]
    return result


class LightGcn:
  """LightGCN's representations with three layers; it has no dropout."""

  def __init__(self, weights, graph: Graph, rate: float, draws: Draws):
    del rate, draws
    edges = graph.near['ui']
    users, items = edges.shape
    full = np.block([[np.zeros((users, users)), edges], [edges.T, np.zeros((items, items))]])
    scale = 1. / np.sqrt(np.maximum(full.sum(axis=1), 1.))
    layers = [np.concatenate([weights['user_table'], weights['item_table']])]
    for _ in range(3):
      layers.append((scale[:, None] * full * scale) @ layers[-1])
    layers.append(np.mean(layers, axis=0))
    self._layers = {'u': [layer[:users] for layer in layers],
                    'i': [layer[users:] for layer in layers]}

  def encode(self, nodes, whole: bool):
    del whole
    return {kind: [layer[nodes[kind]] for layer in self._layers[kind]] for kind in KINDS}


MODELS = {'mgccf': Mgccf, 'lightgcn': LightGcn, 'pinsage': PinSage}


def uniform_negatives(draws: Draws, users, positives, num_items: int, number: int):
  """Items that a user has not taken, each equally likely: [B, number] and 1 where there is one.

  For a user who has taken everything the last item stands in, which no triplet counts.

  Args:
    draws: gives the random numbers.
    users: [B].
    positives: set of (user, item).
    num_items: size of the catalogue.
    number: draws a pair.
  """
  random = draws.uniform([len(users), number], tf.float64)
  items, valid = np.full((len(users), number), num_items - 1), np.zeros((len(users), number))
  for row, user in enumerate(users):
    free = [item for item in range(num_items) if (user, item) not in positives]
    for column in range(number):
      if free:
        items[row, column] = free[int(random[row, column] * len(free))]
        valid[row, column] = 1.
  return items, valid


def partners(draws: Draws, near: np.ndarray, nodes):
  """One of each node's near nodes, at random, or None where there is none."""
  random = draws.uniform([len(nodes)])
  found = []
  for node, number in zip(nodes, random):
    choices = np.flatnonzero(near[node])
    found.append(choices[int(number * len(choices))] if len(choices) else None)
  return found


def bpr(user, positive, negatives, weight) -> float:
  """Of one pair: -sum_j weight_j log sigmoid(y_ui - y_uj)."""
  total = 0.
  for negative, each in zip(negatives, weight):
    total += each * np.log1p(np.exp(-(user @ positive - user @ negative)))
  return total


def half_squares(*rows) -> float:
  return sum(.5 * float(row @ row) for row in rows)
