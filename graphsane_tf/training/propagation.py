"""Chooses between whole-graph and sampled propagation, by what a step of each would cost."""
import dataclasses
import math
from typing import Any, Dict, Tuple

from graphsane_tf import backbones
from graphsane_tf.graph import views

# Bytes of a table of which most rows stay in a processor's cache.
_CACHE = 8e6


@dataclasses.dataclass(frozen=True)
class Work:
  """What a step does, counted in numbers of tables and rows; or nanoseconds for one of each.

  Attributes:
    step: 1, for what every step does.
    read: numbers of the rows that means over neighbours read.
    missed: those of them that are read from tables beyond the cache. A sampled step copies the rows that it needs, each
      once, and reads the copy.
    made: numbers of the rows that a sampled step computes. A whole one computes every node's, as many as there are
      weights.
    multiplied: products of numbers where rows meet matrices.
    weights: of the tables, that the optimiser passes over.
  """
  step: float = 0.
  read: float = 0.
  missed: float = 0.
  made: float = 0.
  multiplied: float = 0.
  weights: float = 0.

  @property
  def amounts(self) -> Tuple[float, ...]:
    return dataclasses.astuple(self)

  def cost(self, units: 'Work') -> float:
    """The sum of all that is done, each times its cost."""
    return sum(amount * unit for amount, unit in zip(self.amounts, units.amounts))


# Nanoseconds, fitted to steps of MGCCF and LightGCN on a dozen shapes with the command in docs/performance.md. They
# decide what runs compute, so they are constants and not measured at hand.
_UNITS = {'whole': Work(step=2.03e6, read=.102, missed=.14, multiplied=.0604, weights=7.74),
          'sampled': Work(step=3.33e6, read=.29, made=5.68, multiplied=.0771, weights=6.31)}


def _distinct(size: float, draws: float) -> float:
  """Expected number of different ones among uniform draws."""
  return size * -math.expm1(-draws / size)


def work(config, num_users: int, num_items: int, num_edges: int, num_near: int) -> Dict[str, Work]:
  """What a step does, 'whole' or 'sampled', by the sizes of the graph and of its nearest-neighbour graphs.

  Degrees are taken to be equal, and nodes to be drawn uniformly.
  """
  kind: Any = backbones.REGISTRY[config.backbone]
  model, batch = config.model, config.train.batch_size
  width, draws, nodes = model.embedding_dim, kind.draws(model), num_users + num_items
  degree = num_edges / num_users, num_edges / num_items
  reached = _distinct(num_users, batch), _distinct(num_items, batch * (1 + config.train.num_negatives))
  asked = sum(reached)
  read, made = asked * min(model.num_knn, num_near / nodes), asked * bool(num_near)
  for hop, times in enumerate(draws):
    fanout = model.fanout[min(hop, len(model.fanout) - 1)]
    drawn = [count * min(fanout, mean) for count, mean in zip(reached, degree)]
    read, made = read + times * sum(drawn), made + times * sum(reached)
    # Neighbours of items are users, and the other way round.
    reached = _distinct(num_users, drawn[1]), _distinct(num_items, drawn[0])
  # Forward and back, for both kinds of nodes.
  edges = 4. * len(draws) * num_edges + 2. * num_near
  beyond = sum(max(0., 1. - _CACHE / (4. * width * count)) for count in (num_users, num_items)) / 2
  products = width * width * kind.multiplies
  return {'whole': Work(1., edges * width, beyond * edges * width, 0.,
                        products * nodes * (len(draws) + bool(num_near)), nodes * width),
          'sampled': Work(1., read * width, 0., made * width, products * made, nodes * width)}


def cheaper(found: Dict[str, Work]) -> str:
  """'whole' or 'sampled', from `work`."""
  return min(('whole', 'sampled'), key=lambda name: found[name].cost(_UNITS[name]))


def choose_propagation(config, graph: views.Graph) -> str:
  """'whole' or 'sampled': as configured or, with 'auto', the cheaper one for the graph's shape.

  The estimate is a function of shapes only, so that the same run always chooses the same.
  """
  wanted = config.model.propagation
  if wanted != 'auto':
    return wanted
  near = sum(len(graph.relations[name].table.indices) for name in ('uu', 'ii') if name in graph.relations)
  return cheaper(work(config, graph.num_users, graph.num_items, len(graph.edges.indices), near))
