"""What the released protocol's choices do to the numbers, and what a model knows beyond popularity.

Both are measured on the weights of a finished run. The switches below exist here only: no configuration field or flag
of training and evaluation reaches them.
"""
import dataclasses
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy as np
import tensorflow as tf

from graphsane_tf.evaluation import metrics, protocol, ranking
from graphsane_tf.graph import csr, views
from graphsane_tf.random import Seeds, host_seed

METRIC = 'recall@20'
# Evaluations of the same weights with noise.
NUM_DRAWS = 5
_NODES_AT_ONCE = 4096


@dataclasses.dataclass(frozen=True)
class Switches:
  """Choices of the released protocol.

  Attributes:
    leaky_graph: the held-out edges are in the message-passing and nearest-neighbour graphs.
    zero_mask: seen items get score 0 instead of minus infinity.
    noise: neighbours are sampled and dropout is on.
  """
  leaky_graph: bool = False
  zero_mask: bool = False
  noise: bool = False


VARIANTS: Tuple[Tuple[str, Switches], ...] = (
    ('as measured here', Switches()),
    ('graph with held-out edges', Switches(leaky_graph=True)),
    ('seen items scored 0', Switches(zero_mask=True)),
    ('sampling and dropout at evaluation', Switches(noise=True)),
    ('all three', Switches(True, True, True)),
)
NOTE = ('The same weights under choices of the released protocol. Only this audit can set them: '
        'graph with held-out edges = validation and test interactions of known users and items are '
        'part of the graphs that the representations are computed from; seen items scored 0 = not '
        f'minus infinity; sampling and dropout = mean of {NUM_DRAWS} evaluations (their span in '
        'its own column). Users and items unknown to the model are left out of the graph. A memory is left out: '
        'all lines are of the graph model alone.')


def leaky_edges(edges: csr.Csr, held_user: np.ndarray, held_item: np.ndarray) -> csr.Csr:
  """The edges and those held-out ones whose user and item are known.

  Args:
    edges: [num_users, num_items].
    held_user: [m].
    held_item: [m].
  """
  known = (held_user < edges.num_rows) & (held_item < edges.num_columns)
  pairs = np.unique(np.concatenate([
      np.stack([edges.rows(), edges.indices], axis=1),
      np.stack([held_user[known], held_item[known]], axis=1)]), axis=0)
  return csr.from_pairs(pairs[:, 0], pairs[:, 1], edges.num_rows, edges.num_columns)


def noisy_representer(backbone, graph: views.Graph
                     ) -> Callable[[np.ndarray], Tuple[np.ndarray, np.ndarray]]:
  """A function from a [2] int32 seed to [num_users, D], [num_items, D] as they are in training.

  Neighbours are sampled and dropout is on.
  """
  @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int32),
                                tf.TensorSpec([2], tf.int32)])
  def encode(users, items, counter):
    seeds = Seeds(counter)
    encoding = backbone.encode(graph.sampled(seeds), users, items, seeds, training=True)
    return encoding.user[-1], encoding.item[-1]

  def represent(seed):
    tables: Tuple[List[np.ndarray], List[np.ndarray]] = ([], [])
    for start in range(0, max(graph.num_users, graph.num_items), _NODES_AT_ONCE):
      stop = start + _NODES_AT_ONCE
      parts = encode(tf.range(min(start, graph.num_users), min(stop, graph.num_users)),
                     tf.range(min(start, graph.num_items), min(stop, graph.num_items)),
                     tf.random.experimental.stateless_fold_in(seed, start))
      for rows, part in zip(tables, parts):
        rows.append(part.numpy())
    return np.concatenate(tables[0]), np.concatenate(tables[1])

  return represent


def zero_masked_top(user_vectors: np.ndarray, item_vectors: np.ndarray, users: np.ndarray,
                    seen: csr.Csr, k: int) -> np.ndarray:
  """[n, k] best items of some users where seen items stay in the ranking with score 0.

  Args:
    user_vectors: [num_users, D].
    item_vectors: [num_items, D].
    users: [n].
    seen: [num_users, num_items].
    k: length of the lists.
  """
  top = np.full((len(users), k), -1, np.int64)
  for start in range(0, len(users), 512):
    chunk = users[start:start + 512]
    scores = user_vectors[chunk] @ item_vectors.T
    rows = seen.select(chunk)
    scores[rows.rows(), rows.indices] = 0.
    order = np.argsort(-scores, axis=1, kind='stable')[:, :k]
    top[start:start + 512, :order.shape[1]] = order
  return top


def _recall(run, context, rows: slice, vectors, zero_mask: bool) -> float:
  """Mean Recall@20 of the known users with held-out items."""
  if not zero_mask:
    return run.evaluate(context, rows, ranking.DotProduct(*vectors)).metrics.get(METRIC, 0.)
  user, item = run.interactions.user[rows], run.interactions.item[rows]
  known = user < context.num_users
  users, held = protocol.group(user[known], item[known])
  top = zero_masked_top(vectors[0], vectors[1], users, context.history, 20)
  return metrics.evaluate(top, held, metrics.Options((20,))).get(METRIC, 0.)


def audit_block(run, index: int, variants: Sequence[Tuple[str, Switches]] = VARIANTS
               ) -> Dict[str, List[float]]:
  """Test Recall@20 of a finished block under each variant, one value an evaluation.

  Args:
    run: a `graphsane_tf.runs.incremental.IncrementalRun`.
    index: the block.
    variants: names and switches.
  """
  model, context, block = run.load_model(index), run.context(index), run.stream.block(index)
  held = slice(block.validation.start, block.test.stop)
  graphs = {False: model.graph}
  recalls = {}
  for name, switches in variants:
    if switches.leaky_graph and True not in graphs:
      log = run.interactions
      edges = leaky_edges(model.graph.edges, log.user[held], log.item[held])
      knn = run.config.model.num_knn if model.backbone.uses_knn else 0
      graphs[True] = views.Graph(edges, knn)
    graph = graphs[switches.leaky_graph]
    if switches.noise:
      represent = noisy_representer(model.backbone, graph)
      draws = [represent(host_seed(run.config.seed, index, k, name='audit'))
               for k in range(NUM_DRAWS)]
    else:
      draws = [tuple(part.numpy() for part in model.backbone.representer(graph)())]
    recalls[name] = [_recall(run, context, block.test, vectors, switches.zero_mask) for vectors in draws]
  return recalls


def audit(run, blocks: Sequence[int]) -> Dict[str, Any]:
  """The table of all variants over some finished blocks.

  Args:
    run: a `graphsane_tf.runs.incremental.IncrementalRun`.
    blocks: numbers of finished blocks.

  Returns:
    heads, cells (one line a variant) and note.
  """
  by_block = [audit_block(run, index) for index in blocks]
  heads = ['evaluation', *[f'block {index}' for index in blocks], 'average', 'change %',
           'span of draws']
  cells, base = [], None
  for name, _ in VARIANTS:
    values = [float(np.mean(recalls[name])) for recalls in by_block]
    average = float(np.mean(values))
    base = average if base is None else base
    span = max(max(recalls[name]) - min(recalls[name]) for recalls in by_block)
    cells.append([name, *values, average, 100 * (average / base - 1) if base else None,
                  span if len(by_block[0][name]) > 1 else None])
  return {'heads': heads, 'cells': cells, 'note': NOTE}


PERSONAL_NOTE = ('The graph model of a finished run, without a memory, on the same test rows: the mean user = every '
                 "user has the mean of all users' vectors; the untouched base = the base block's model, for the users "
                 'and items that it knows. A model whose line is near one of popularity follows that, and no person.')


def beyond_popularity(run, blocks: Sequence[int]) -> Dict[str, Any]:
  """How much of a model's recall is what everybody takes.

  Args:
    run: a `graphsane_tf.runs.incremental.IncrementalRun`.
    blocks: numbers of finished blocks.

  Returns:
    heads, cells (a line a way of ranking) and note.
  """
  base = [part.numpy() for part in _vectors(run.load_model(0))]
  known = tuple(map(len, base))
  recalls: Dict[str, List[float]] = {}
  for index in blocks:
    context, rows = run.context(index), run.stream.block(index).test
    user_vectors, item_vectors = (part.numpy() for part in _vectors(run.load_model(index)))
    everybody = np.ones((context.num_users, 1), np.float32)

    def popularity(part: slice, context=context, everybody=everybody):
      counts = np.bincount(context.rows(part)[1], minlength=context.num_items)
      return ranking.DotProduct(everybody, counts[:, None].astype(np.float32))

    scorers = {
        'the model': ranking.DotProduct(user_vectors, item_vectors),
        'the same, every user the mean user': ranking.DotProduct(
            everybody * user_vectors.mean(axis=0), item_vectors),
        'popularity of all rows so far': popularity(slice(0, context.num_rows)),
        "popularity of the block's own rows": popularity(context.own),
        'the untouched base': ranking.DotProduct(*base),
        'popularity of the base block': popularity(run.context(0).own).cut(*known)}
    for name, scorer in scorers.items():
      recalls.setdefault(name, []).append(run.evaluate(context, rows, scorer).metrics.get(METRIC, 0.))
  return {'heads': ['ranked by', *[f'block {index}' for index in blocks], 'average'],
          'cells': [[name, *values, float(np.mean(values))] for name, values in recalls.items()],
          'note': PERSONAL_NOTE}


def _vectors(model):
  """Final representations of a model's users and items."""
  return model.backbone.representer(model.graph)()
