"""Whole or sampled: the work of a step, counted by hand, and the rule."""
import math

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.backbones import REGISTRY
from graphsane_tf.config import default_config, resolved
from graphsane_tf.errors import UserError
from graphsane_tf.graph import csr, views
from graphsane_tf.random import Seeds
from graphsane_tf.training import propagation


def _config(batch_size=10, num_negatives=3, fanout=(4, 2), **fields):
  config = default_config()
  config.update_from_flattened_dict({
      'train.batch_size': batch_size, 'train.num_negatives': num_negatives, 'train.num_sampler_negatives': 1,
      'model.fanout': fanout, 'model.embedding_dim': 8, **{name.replace('__', '.'): value
                                                           for name, value in fields.items()}})
  return resolved(config)


def _graph(num_users, num_items, degree, num_knn=0):
  """Every user has the same number of items, one behind the other."""
  users = np.repeat(np.arange(num_users), degree)
  items = (users * 7 + np.tile(np.arange(degree), num_users)) % num_items
  return views.Graph(csr.from_pairs(users, items, num_users, num_items), num_knn)


def test_what_is_asked_for_is_done():
  graph = _graph(10, 10, 2)
  for wanted in ('whole', 'sampled'):
    assert propagation.choose_propagation(_config(model__propagation=wanted), graph) == wanted
  with pytest.raises(UserError, match="'some'; it must be auto, whole or sampled"):
    _config(model__propagation='some')


def _distinct(size, draws):
  return size * (1 - math.exp(-draws / size))


def test_work_of_mgccf_by_hand():
  """10 users and 40 items of pairs; 1000 users have 6 items each, 500 items 12 users; 15 nearest of each node."""
  found = propagation.work(_config(model__num_knn=15), 1000, 500, 6000, 20 * 1500)
  users, items = _distinct(1000, 10), _distinct(500, 40)
  more_users, more_items = _distinct(1000, 4 * items), _distinct(500, 4 * users)
  read = 15 * (users + items) + 4 * (users + items) + 2 * (more_users + more_items)
  made = 2 * (users + items) + more_users + more_items
  sampled, whole = found['sampled'], found['whole']
  assert sampled.amounts == pytest.approx((1, 8 * read, 0, 8 * made, 64 * made, 12_000))
  # Two layers, forward and back, on both sides; no table is larger than the cache.
  assert whole.amounts == pytest.approx((1, 8 * (8 * 6000 + 2 * 30_000), 0, 0, 64 * 1500 * 3, 12_000))


def test_work_of_lightgcn_by_hand():
  """Each of three layers has its own draws, and no row meets a matrix; a user has 3 items, fewer than the fan-out."""
  found = propagation.work(_config(backbone='lightgcn', model__num_layers=3), 1000, 500, 3000, 0)
  near = [_distinct(1000, 10), _distinct(500, 40)]
  read = made = 0.
  for times, fanouts in ((3, (3, 4)), (2, (2, 2)), (1, (2, 2))):
    drawn = [fanout * count for fanout, count in zip(fanouts, near)]
    read, made = read + times * sum(drawn), made + times * sum(near)
    near = [_distinct(1000, drawn[1]), _distinct(500, drawn[0])]
  assert found['sampled'].amounts == pytest.approx((1, 8 * read, 0, 8 * made, 0, 12_000))
  assert found['whole'].amounts == pytest.approx((1, 8 * 12 * 3000, 0, 0, 0, 12_000))


def test_rows_of_large_tables_are_missed():
  """The users' table is 16 MB, of which half is beyond the cache; the items' fits it."""
  found = propagation.work(_config(backbone='lightgcn'), 500_000, 1000, 600_000, 0)['whole']
  assert found.missed == pytest.approx(found.read / 4)


def test_costs_are_sums():
  done = propagation.Work(1., 2., 3., 4., 5., 6.)
  assert done.cost(propagation.Work(10., 20., 30., 40., 50., 60.)) == 10 + 40 + 90 + 160 + 250 + 360


@pytest.mark.parametrize('backbone,users,items,edges,expected', [
    # As measured, see docs/performance.md: whole steps read few edges, or tables are small.
    ('mgccf', 1_500, 1_200, 18_741, 'whole'), ('lightgcn', 30_000, 41_000, 834_099, 'whole'),
    ('mgccf', 60_000, 40_000, 395_943, 'sampled'), ('mgccf', 8_800, 39_000, 472_270, 'sampled'),
    ('lightgcn', 2_000, 2_000, 229_537, 'sampled'), ('lightgcn', 1_000_000, 500_000, 100_000_000, 'sampled')])
def test_the_cheaper_of_the_two(backbone, users, items, edges, expected):
  config = default_config()
  config.backbone, config.model.embedding_dim = backbone, 128 if backbone == 'mgccf' else 64
  near = 15 * (users + items) if REGISTRY[backbone].uses_knn else 0
  assert propagation.cheaper(propagation.work(resolved(config), users, items, edges, near)) == expected


def test_the_choice_knows_the_graph(monkeypatch):
  """Sizes are those of the graph, with its nearest neighbours."""
  seen = []
  monkeypatch.setattr(propagation, 'work', lambda config, *sizes: seen.append(sizes) or {
      'whole': propagation.Work(step=1.), 'sampled': propagation.Work(step=100.)})
  # Stars: 12 users share one item, so each is near to all others.
  edges = csr.from_pairs(np.arange(12), np.zeros(12, int), 12, 1)
  assert propagation.choose_propagation(_config(), views.Graph(edges, 11)) == 'whole'
  assert seen == [(12, 1, 12, 132)]


def test_lightgcn_tells_how_often_it_draws(monkeypatch):
  """`Backbone.draws` counts the draws of a sampled view, on each side."""
  config = _config(backbone='lightgcn', model__num_layers=3)
  kind, drawn = REGISTRY['lightgcn'], []
  original = views.SampledView.draw
  monkeypatch.setattr(views.SampledView, 'draw', lambda *arguments: drawn.append(arguments) or original(*arguments))
  seeds = Seeds(tf.constant([1, 2]))
  kind(30, 20, config.model, (0, 0)).encode(
      _graph(30, 20, 3).sampled(seeds), tf.range(5), tf.range(4), seeds, training=True)
  assert len(drawn) == 2 * sum(kind.draws(config.model)) == 12
