"""Chooses between whole-graph and sampled propagation."""
from typing import Dict

from graphsane_tf.graph import views

# What a row read by a sampled step costs, over one read by a whole step. It is measured with MGCCF, d = 128 and batch
# 2048: at Gowalla's size a step takes as long either way, at Taobao14's a third less when sampled.
_SAMPLED_ROW = 6.5


def rows_read(config, num_nodes: int, num_edges: int, num_near: int) -> Dict[str, float]:
  """Rows that a step reads, 'whole' or 'sampled', given how many nodes, edges and nearest neighbours there are.

  Neighbours of every node, forward and back, against draws of the nodes reached.
  """
  hop1, hop2 = config.model.fanout
  asked = min(num_nodes, config.train.batch_size * (config.train.num_negatives + 2))
  reached = asked + min(num_nodes, asked * hop1)
  return {'whole': 4 * num_edges + 2 * num_near, 'sampled': asked * hop1 + reached * hop2}


def cheaper(rows: Dict[str, float]) -> str:
  """'whole' or 'sampled', from `rows_read`."""
  return 'whole' if rows['whole'] <= _SAMPLED_ROW * rows['sampled'] else 'sampled'


def choose_propagation(config, graph: views.Graph) -> str:
  """'whole' or 'sampled': as configured or, with 'auto', the cheaper one for the graph's shape.

  The estimate is a function of shapes only, so that the same run always chooses the same.
  """
  wanted = config.model.propagation
  if wanted != 'auto':
    return wanted
  near = sum(len(graph.relations[name].table.indices) for name in ('uu', 'ii') if name in graph.relations)
  return cheaper(rows_read(config, graph.num_users + graph.num_items, len(graph.edges.indices), near))
