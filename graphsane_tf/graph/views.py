"""How a backbone sees the graph: whole, or through a fresh sample of neighbours for each step.

A backbone is written once against `View.mean`; which view it is given decides the cost. Relations are
named by their two ends: 'ui' leads from users to the items they took, 'iu' back, 'uu' and 'ii' to the
nearest neighbours of the same kind.
"""
import abc
import contextlib
import threading
from typing import Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from graphsane_tf.graph import csr, knn, products
from graphsane_tf.random import Seeds

# The rows of a few nodes are computed alone if they have less than one in this many of the edges.
_PART = 3

# From so many edges on, neighbours are in a memory-mapped file.
_MAPPED_EDGES = 1 << 25

Rows = Callable[[Optional[tf.Tensor]], tf.Tensor]


def _owners(stop: tf.Tensor, total) -> tf.Tensor:
  """[total] int64: number of the list that each entry is in, given the [n] ends of the lists."""
  # A running count of the lists that end; tf.repeat would make a table of lists x longest list.
  ended = tf.math.unsorted_segment_sum(tf.ones_like(stop), stop, total + 1)
  return tf.cumsum(ended)[:-1]


class Relation:
  """One neighbour table as tensors, with what the two views need of it.

  Attributes:
    table: the same for the host.
    num_rows, num_columns, num_edges: int32 scalars.
    indptr, indices, degree, inverse_degree: of the table.
  """

  host = ('table',)

  def __init__(self, table: csr.Csr):
    self.table = table
    self.num_rows, self.num_columns, self.num_edges = (
        tf.constant(size, tf.int32) for size in (table.num_rows, table.num_columns, len(table.indices)))
    self.indptr = tf.constant(table.indptr, tf.int64)
    if len(table.indices) >= _MAPPED_EDGES:
      self.table = table = table.mapped()
      # Without a copy.
      self.indices = tf.experimental.dlpack.from_dlpack(np.asarray(table.indices).__dlpack__())
    else:
      # One entry more than there are edges, so that even an empty table can be gathered from.
      self.indices = tf.constant(np.append(table.indices, 0), tf.int32)
    degree = table.degree.astype(np.float32)
    self.degree = tf.constant(degree)
    self.inverse_degree = tf.constant((1. / np.maximum(degree, 1.))[:, None])

  def edges_at(self, nodes: tf.Tensor):
    """Edges of [n] nodes, in their order.

    Returns:
      [m] int64 place in `nodes` of each edge's node, and [m] int64 number of the edge in `indices`.
    """
    start = tf.gather(self.indptr, nodes)
    count = tf.gather(self.indptr, nodes + 1) - start
    stop = tf.cumsum(count)
    total = tf.reduce_sum(count)
    place = _owners(stop, total)
    return place, tf.range(total) + tf.gather(start + count - stop, place)

  def entries(self, nodes: Optional[tf.Tensor] = None,
              column_degree: Optional[tf.Tensor] = None) -> products.Entries:
    """Entries of the matrix whose rows are [n] nodes, or all.

    Args:
      nodes: [n] int, or None.
      column_degree: [num_columns] degrees; with them an entry is 1 / sqrt(degree of its row times
        degree of its column), without them it is 1.
    """
    if nodes is None:
      place = _owners(tf.slice(self.indptr, [1], [self.num_rows]), tf.cast(self.num_edges, tf.int64))
      column = tf.slice(self.indices, [0], [self.num_edges])
    else:
      place, edge = self.edges_at(nodes)
      column = tf.gather(self.indices, edge)
    value = tf.ones_like(column, tf.float32)
    if column_degree is not None:
      degree = self.degree if nodes is None else tf.gather(self.degree, nodes)
      value = tf.math.rsqrt(tf.gather(degree, place)) * tf.math.rsqrt(
          tf.gather(column_degree, column))
    return products.Entries(place, column, value)

  def sparse_matrix(self, column_degree: Optional[tf.Tensor] = None) -> tf.Tensor:
    """The whole matrix as a CSR variant tensor; see `entries`."""
    return self.entries(column_degree=column_degree).matrix(self.num_rows, self.num_columns)


class Graph:
  """The training edges of one block and what is derived from them: nothing else may enter.

  Attributes:
    edges: [num_users, num_items] neighbour table of the message-passing graph.
    relations: 'ui', 'iu', 'uu', 'ii' to `Relation`.
  """

  host = ('edges',)

  def __init__(self, edges: csr.Csr, num_knn: int):
    back = edges.transposed()
    tables = {'ui': edges, 'iu': back}
    if num_knn:
      tables['uu'] = knn.cosine_neighbours(edges, num_knn)
      tables['ii'] = knn.cosine_neighbours(back, num_knn)
    self.relations: Dict[str, Relation] = {name: Relation(table) for name, table in tables.items()}
    self.edges = self.relations['ui'].table
    self._nearest: Dict[Tuple[str, int], Relation] = {}
    self._reverse = {'ui': self.relations['iu'], 'iu': self.relations['ui']}
    for name in ('uu', 'ii'):
      if name in tables:
        self._reverse[name] = Relation(tables[name].transposed())

  @property
  def num_users(self) -> int:
    return self.edges.num_rows

  @property
  def num_items(self) -> int:
    return self.edges.num_columns

  def nearest(self, name: str, count: int) -> Relation:
    """The `count` nearest neighbours 'uu' or 'ii', for those who ask for what no view of the graph uses."""
    if (name, count) not in self._nearest:
      ends = self.relations[{'uu': 'ui', 'ii': 'iu'}[name]]
      self._nearest[name, count] = Relation(knn.cosine_neighbours(ends.table, count))
    return self._nearest[name, count]

  def whole(self) -> 'WholeView':
    """A view of every neighbour; call inside the `tf.function` that uses it."""
    forward = {name: relation.sparse_matrix() for name, relation in self.relations.items()}
    backward = {'ui': forward['iu'], 'iu': forward['ui']}
    for name in ('uu', 'ii'):
      if name in forward:
        backward[name] = self._reverse[name].sparse_matrix()
    # TensorFlow leaves out the matrices that are not used.
    smooth = {name: self.relations[name].sparse_matrix(self.relations[name[::-1]].degree)
              for name in ('ui', 'iu')}
    return WholeView(self, forward, backward, smooth)

  def plain(self) -> 'PlainView':
    """A view of every neighbour in operations that a SavedModel can hold with their gradients."""
    return PlainView(self)

  def sampled(self, seeds: Seeds) -> 'SampledView':
    """A view of a few random neighbours of each node."""
    return SampledView(self, seeds)


def draw_neighbours(relation: Relation, nodes: tf.Tensor, fanout: int, seed: tf.Tensor):
  """Draws min(degree, fanout) distinct neighbours of each node, each equally often in expectation.

  The draw is systematic: positions floor((j + r) * degree / count) for j = 0, ..., count - 1 and one
  random r in [0, 1) a node, so a mean over the draw is an unbiased estimate of the mean over all.

  Args:
    relation: where the neighbours are.
    nodes: [n] integers.
    fanout: the most that is drawn for a node.
    seed: [2] int32.

  Returns:
    [n, fanout] int32 neighbours and [n, fanout] float32, 1 where a neighbour was drawn and 0 in the
    slots beyond the degree.
  """
  start = tf.gather(relation.indptr, nodes)
  degree = tf.gather(relation.degree, nodes)[:, None]
  slot = tf.range(fanout, dtype=tf.float32)
  count = tf.minimum(degree, float(fanout))
  offset = tf.random.stateless_uniform(tf.shape(nodes), seed)[:, None]
  position = tf.floor((slot + offset) * (degree / tf.maximum(count, 1.)))
  drawn = tf.cast(slot < count, tf.float32)
  # Rounding can push r close to 1 over the end; slots that were not drawn stay at the start.
  position = drawn * tf.minimum(position, tf.maximum(degree - 1., 0.))
  neighbours = tf.gather(relation.indices, start[:, None] + tf.cast(position, tf.int64))
  return neighbours, drawn


class _RowGradients(threading.local):
  """Whether `take` is being traced for gradients of single rows."""
  wanted = False


_ROW_GRADIENTS = _RowGradients()


@contextlib.contextmanager
def row_gradients(wanted: bool) -> Iterator[None]:
  """While it is open, gradients of variables that views look rows up in are `tf.IndexedSlices` of these rows.

  A dense gradient costs as much as the whole table, however few rows a step needs.
  """
  before, _ROW_GRADIENTS.wanted = _ROW_GRADIENTS.wanted, wanted
  try:
    yield
  finally:
    _ROW_GRADIENTS.wanted = before


class Table:
  """Rows that are there for all nodes.

  Attributes:
    at_hand: whether a view need not find out whose rows it needs of them; it must if they are on servers, and if
      `row_gradients` are wanted.
  """

  def __init__(self, rows):
    self.at_hand = not _on_servers(rows) and not (_ROW_GRADIENTS.wanted and isinstance(rows, tf.Variable))
    self._rows = tf.convert_to_tensor(rows) if self.at_hand else rows

  def __call__(self, nodes: Optional[tf.Tensor]) -> tf.Tensor:
    return take(self._rows, nodes)


class View(abc.ABC):
  """Means over neighbourhoods, differentiable in the rows."""

  # Whether rows that other nodes need are computed for all nodes at once.
  whole = False

  def __init__(self, graph: Graph):
    self.relations = graph.relations

  @abc.abstractmethod
  def mean(self, relation: str, nodes: Optional[tf.Tensor], rows: Rows, fanout: int) -> tf.Tensor:
    """Mean of the neighbours' rows; zero for a node without neighbours.

    Args:
      relation: 'ui', 'iu', 'uu' or 'ii'.
      nodes: [n] nodes whose neighbours are averaged, or None for all nodes in order.
      rows: gives the row [m, d] of each of the [m] nodes it is called with (None: of all); a `Table`
        where the rows need not be computed.
      fanout: how many neighbours a sampled view draws.

    Returns:
      [n, d] means.
    """

  def smooth(self, relation: str, nodes: Optional[tf.Tensor], rows: Rows, fanout: int) -> tf.Tensor:
    """Sum of the neighbours' rows, each over the root of both ends' degrees; see `mean`.

    Args:
      relation: 'ui' or 'iu'.
      nodes: [n] nodes, or None for all.
      rows: gives the rows of the neighbours.
      fanout: how many neighbours a sampled view draws.

    Returns:
      [n, d]; a sampled view estimates it without bias.
    """
    def scaled(neighbours):
      degree = tf.maximum(self.degree(relation[::-1], neighbours), 1.)
      return rows(neighbours) * tf.math.rsqrt(degree)[:, None]

    # A sum over neighbours is their mean times their number.
    mean = self.mean(relation, nodes, scaled, fanout)
    return mean * tf.sqrt(self.degree(relation, nodes))[:, None]

  def rows_of(self, nodes: Optional[tf.Tensor]) -> Optional[Tuple[tf.Tensor, tf.Tensor]]:
    """All nodes [m] that are drawn for together, and the places [n] of these among them; None if these are all."""
    del nodes
    return None

  def share(self, rows: Rows) -> Rows:
    """The same rows; a whole view computes them once, for all nodes, and takes what is asked for."""
    if not self.whole:
      return rows
    known: List[tf.Tensor] = []

    def shared(nodes):
      if not known:
        known.append(rows(None))
      return take(known[0], nodes)

    return shared

  def degree(self, relation: str, nodes: Optional[tf.Tensor]) -> tf.Tensor:
    """[n] float32, true number of neighbours of each node."""
    degree = self.relations[relation].degree
    return degree if nodes is None else tf.gather(degree, nodes)


def _on_servers(table) -> bool:
  """Whether a table is a `ShardedVariable`, in parts on parameter servers."""
  return hasattr(table, 'variables')


def take(table, nodes: Optional[tf.Tensor]) -> tf.Tensor:
  """Rows of a table, or the table itself when `nodes` is None."""
  if _on_servers(table) and nodes is not None:
    return tf.nn.embedding_lookup(table, nodes)
  if _ROW_GRADIENTS.wanted and nodes is not None and isinstance(table, tf.Variable):
    return tf.gather(table, nodes)
  table = tf.convert_to_tensor(table)
  return table if nodes is None else products.rows_at(table, nodes)


class WholeView(View):
  """Every neighbour of every node: two sparse products a mean, one forward and one back."""

  whole = True

  def __init__(self, graph: Graph, forward: Dict[str, tf.Tensor], backward: Dict[str, tf.Tensor],
               smooth: Dict[str, tf.Tensor]):
    super().__init__(graph)
    self._forward = forward
    self._backward = backward
    self._smooth = smooth

  def mean(self, relation: str, nodes: Optional[tf.Tensor], rows: Rows, fanout: int) -> tf.Tensor:
    forward, backward = self._forward[relation], self._backward[relation]
    scale = self.relations[relation].inverse_degree

    # The built-in gradient of this product is several times slower than the product with the
    # transposed matrix that we already hold.
    @tf.custom_gradient
    def product(dense):
      result = scale * tf.raw_ops.SparseMatrixMatMul(a=forward, b=dense)
      def gradient(upstream):
        return tf.raw_ops.SparseMatrixMatMul(a=backward, b=scale * upstream)
      return result, gradient

    return take(product(rows(None)), nodes)

  def smooth(self, relation: str, nodes: Optional[tf.Tensor], rows: Rows, fanout: int) -> tf.Tensor:
    forward, backward = self._smooth[relation], self._smooth[relation[::-1]]

    @tf.custom_gradient
    def product(dense):
      return tf.raw_ops.SparseMatrixMatMul(a=forward, b=dense), lambda upstream: (
          tf.raw_ops.SparseMatrixMatMul(a=backward, b=upstream))

    if nodes is None:
      return product(rows(None))
    table, other = self.relations[relation], self.relations[relation[::-1]]
    few = _PART * tf.reduce_sum(tf.gather(table.degree, nodes)) < tf.cast(
        table.num_edges, tf.float32)

    @tf.custom_gradient
    def product_at(dense):
      entries = tf.cond(
          few, lambda: table.entries(nodes, other.degree),
          lambda: products.row_entries(tf.zeros([0, 1], tf.int32), tf.zeros([0, 1])))

      def gradient(upstream):
        return tf.cond(
            few, lambda: products.transposed_product(entries, upstream, table.num_columns),
            lambda: tf.raw_ops.SparseMatrixMatMul(a=backward, b=products.spread(
                upstream, nodes, table.num_rows)))

      return tf.cond(
          few, lambda: products.product(entries, tf.size(nodes), dense),
          lambda: tf.gather(tf.raw_ops.SparseMatrixMatMul(a=forward, b=dense), nodes)), gradient

    return product_at(rows(None))


class PlainView(View):
  """Every neighbour of every node, by TensorFlow's own sparse product and its gradient.

  It is slower than `WholeView`, whose CSR matrices no SavedModel can keep for its gradients.
  """

  whole = True

  def mean(self, relation: str, nodes: Optional[tf.Tensor], rows: Rows, fanout: int) -> tf.Tensor:
    table = self.relations[relation]
    entries = table.entries()
    matrix = tf.sparse.SparseTensor(
        tf.stack([entries.row, tf.cast(entries.column, tf.int64)], axis=1), entries.value,
        tf.cast(tf.stack([table.num_rows, table.num_columns]), tf.int64))
    return take(table.inverse_degree * tf.sparse.sparse_dense_matmul(matrix, rows(None)), nodes)


class SampledView(View):
  """A few random neighbours of each node; a node that occurs twice is computed once."""

  def __init__(self, graph: Graph, seeds: Seeds):
    super().__init__(graph)
    self._seeds = seeds

  def draw(self, relation: str, nodes: tf.Tensor, rows: Rows, fanout: int):
    """Draws neighbours of [n] nodes; see `mean`.

    Returns:
      The nodes whose rows are needed, [m] or None for all, the [n, fanout] places of the neighbours among
      them and their [n, fanout] weights in the mean, 0 in slots beyond the degree.
    """
    neighbours, drawn = draw_neighbours(self.relations[relation], nodes, fanout, self._seeds.next())
    share = drawn / tf.maximum(tf.reduce_sum(drawn, axis=1, keepdims=True), 1.)
    if isinstance(rows, Table) and rows.at_hand:
      return None, neighbours, share
    distinct, place = tf.unique(tf.reshape(neighbours, [-1]))
    return distinct, tf.reshape(place, tf.shape(neighbours)), share

  def mean(self, relation: str, nodes: Optional[tf.Tensor], rows: Rows, fanout: int) -> tf.Tensor:
    if nodes is None:
      raise ValueError('a sampled view needs the nodes it is to compute.')
    needed, place, share = self.draw(relation, nodes, rows, fanout)
    return products.weighted_sums(rows(needed), place, share)
