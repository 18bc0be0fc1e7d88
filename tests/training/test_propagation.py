"""Whole or sampled: the rule with its figures done by hand."""
import numpy as np
import pytest

from graphsane_tf.config import default_config, resolved
from graphsane_tf.errors import UserError
from graphsane_tf.graph import csr, views
from graphsane_tf.training.propagation import choose_propagation


def _graph(num_users, num_items, degree, num_knn=0):
  """Every user has the same number of items, one behind the other."""
  users = np.repeat(np.arange(num_users), degree)
  items = (users * 7 + np.tile(np.arange(degree), num_users)) % num_items
  return views.Graph(csr.from_pairs(users, items, num_users, num_items), num_knn)


def _choice(graph, propagation='auto', batch_size=1, num_negatives=2, fanout=(2, 3)):
  config = default_config()
  config.model.propagation, config.model.fanout = propagation, fanout
  config.train.batch_size, config.train.num_negatives = batch_size, num_negatives
  config.train.num_sampler_negatives = 1
  return choose_propagation(resolved(config), graph)


def test_what_is_asked_for_is_done():
  graph = _graph(10, 10, 2)
  assert _choice(graph, 'whole') == 'whole' and _choice(graph, 'sampled') == 'sampled'
  with pytest.raises(UserError, match="'some'; it must be auto, whole or sampled"):
    _choice(graph, 'some')


# A pair and its two negatives ask for 4 nodes, which reach 4 + 4 * 2 = 12: 4 * 2 + 12 * 3 = 44 draws,
# 286 rows at 6.5 each. The whole graph reads 4 rows an edge.
@pytest.mark.parametrize('num_users,degree,expected', [
    (71, 1, 'whole'), (72, 1, 'sampled'), (35, 2, 'whole'), (36, 2, 'sampled')])
def test_the_cheaper_of_the_two(num_users, degree, expected):
  assert _choice(_graph(num_users, 100, degree)) == expected


# Twice the pairs: 8 nodes, 24 reached, 16 + 72 = 88 draws, 572 rows.
@pytest.mark.parametrize('num_users,expected', [(143, 'whole'), (144, 'sampled')])
def test_batches_count(num_users, expected):
  assert _choice(_graph(num_users, 200, 1), batch_size=2) == expected


# Fan-outs 3 and 1: 4 nodes, 16 reached, 12 + 16 = 28 draws, 182 rows.
@pytest.mark.parametrize('num_users,expected', [(45, 'whole'), (46, 'sampled')])
def test_each_fan_out_has_its_own_hop(num_users, expected):
  assert _choice(_graph(num_users, 100, 1), fanout=(3, 1)) == expected


def test_no_more_nodes_are_asked_for_than_there_are():
  """400 of 40 nodes are 40, which reach 40 more: 40 + 80 = 120 draws, 780 rows."""
  assert _choice(_graph(20, 20, 10), batch_size=100, fanout=(1, 1)) == 'sampled'  # 800 rows.
  assert _choice(_graph(20, 20, 9), batch_size=100, fanout=(1, 1)) == 'whole'  # 720 rows.


def test_near_nodes_count_twice_an_edge():
  """Stars: 12 users share one item, so each is near to all others: 132 entries, 264 rows more."""
  edges = csr.from_pairs(np.arange(12), np.zeros(12, int), 12, 1)
  # 13 nodes, 4 asked for, 12 reached of 13: 44 draws, 286 rows; 48 rows, or 312 with the near ones.
  assert _choice(views.Graph(edges, 0)) == 'whole'
  assert _choice(views.Graph(edges, 11)) == 'sampled'
  assert _choice(views.Graph(edges, 9)) == 'whole'  # 108 entries: 48 + 216 = 264.
