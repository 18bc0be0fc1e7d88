"""The protocol audit: its first line is the run's own result, and each switch does what it says."""
import inspect
import types

import numpy as np
import pytest

from graphsane_tf import config
from graphsane_tf.evaluation import protocol
from graphsane_tf.reporting import audit
from graphsane_tf.graph import csr
from graphsane_tf.runs import incremental
from tests import logs

pytestmark = pytest.mark.usefixtures('short_exports')


@pytest.fixture(scope='module', name='run')
def _run(tmp_path_factory):
  settings = logs.tiny_config(blocks__num_incremental=2, model__dropout=.4, model__fanout=(2, 2),
                              seed=1)
  run = incremental.IncrementalRun(settings, logs.random_log(900, 40, 60),
                                   tmp_path_factory.mktemp('audit') / 'run', log=lambda line: None)
  run.run()
  return run


def test_table(run):
  found = audit.audit(run, [1])
  own = run.results()['blocks'][1]['test']['recall@20']
  lines = {line[0]: dict(zip(found['heads'], line)) for line in found['cells']}
  assert list(lines) == [name for name, _ in audit.VARIANTS]
  np.testing.assert_allclose(lines['as measured here']['block 1'], own)
  # Random rows: the graph with the answers in it is the only way to find them.
  assert lines['graph with held-out edges']['average'] != own
  assert lines['sampling and dropout at evaluation']['span of draws'] > 0
  assert lines['seen items scored 0']['span of draws'] is None


def test_leaky_edges():
  edges = csr.from_pairs(np.array([0, 1]), np.array([1, 0]), 2, 3)
  found = audit.leaky_edges(edges, np.array([0, 1, 2, 0]), np.array([2, 0, 1, 5]))
  assert sorted(zip(found.rows().tolist(), found.indices.tolist())) == [(0, 1), (0, 2), (1, 0)]


def test_zero_mask_keeps_seen_items_in_the_ranking():
  users, items = np.array([[1.]]), np.array([[3.], [-1.], [2.], [-2.]])
  seen = csr.from_pairs(np.array([0]), np.array([0]), 1, 4)
  np.testing.assert_array_equal(
      audit.zero_masked_top(users, items, np.array([0]), seen, 5), [[2, 0, 1, 3, -1]])


def test_noise_is_a_function_of_its_seed(run):
  model = run.load_model(1)
  represent = audit.noisy_representer(model.backbone, model.graph)
  first, same, other = (represent(np.array(seed, np.int32)) for seed in ((1, 2), (1, 2), (3, 4)))
  for a, b, c in zip(first, same, other):
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)
  assert len(first[0]) == model.graph.num_users and len(first[1]) == model.graph.num_items


def test_the_graph_with_held_out_edges_has_nearest_neighbours_as_the_models_has(run, monkeypatch):
  made, kind = [], audit.views.Graph
  monkeypatch.setattr(audit.views, 'Graph', lambda edges, knn: made.append(knn) or kind(edges, knn))
  audit.audit_block(run, 1, [('leaky', audit.Switches(leaky_graph=True))])
  # The run's own graph, when its model is loaded, and then the other.
  assert run.config.model.num_knn > 0 and made[-1] == run.config.model.num_knn


def test_all_three_are_all_of_them():
  assert dict(audit.VARIANTS)['all three'] == audit.Switches(leaky_graph=True, zero_mask=True, noise=True)


def test_recall_where_nobody_is_known_is_zero():
  empty = types.SimpleNamespace(metrics={})
  run = types.SimpleNamespace(evaluate=lambda *arguments: empty)
  assert audit._recall(run, None, slice(0, 0), (np.ones((1, 1)), np.ones((1, 1))), False) == 0.
  run.interactions = types.SimpleNamespace(user=np.array([1]), item=np.array([0]))
  context = types.SimpleNamespace(num_users=1, history=csr.from_pairs([], [], 1, 1))
  assert audit._recall(run, context, slice(0, 1), (np.ones((1, 1)), np.ones((1, 1))), True) == 0.


def test_nothing_else_has_the_switches():
  names = audit.Switches.__dataclass_fields__
  assert not any(name in inspect.getsource(config) for name in names)
  assert not set(names) & set(inspect.signature(protocol.evaluate_block).parameters)


def test_what_a_model_knows_beyond_popularity(run):
  found = {line[0]: line[1:] for line in audit.beyond_popularity(run, [1])['cells']}
  context, rows = run.context(1), run.stream.block(1).test
  results = run.results()['blocks']
  assert found['the model'] == [results[1]['test']['recall@20']] * 2
  assert found['the untouched base'][0] == pytest.approx(results[0]['on_blocks']['recall'][1])
  seen = [set(context.history.indices[context.history.indptr[user]:context.history.indptr[user + 1]].tolist())
          for user in range(context.num_users)]
  log = run.interactions

  def recall(scores, num_users):
    """Of one order of items for everybody."""
    values = []
    for user in np.unique(log.user[rows]):
      if user < num_users:
        order = [item for item in np.argsort(-scores, kind='stable') if item not in seen[user]][:20]
        held = set(log.item[rows][log.user[rows] == user].tolist())
        values.append(len(held & set(order)) / len(held))
    return np.mean(values)

  vectors = [np.asarray(part) for part in audit._vectors(run.load_model(1))]
  assert found['the same, every user the mean user'][0] == pytest.approx(
      recall(vectors[1] @ vectors[0].mean(axis=0), context.num_users))
  for name, first, last in (('popularity of all rows so far', 0, context.num_rows),
                            ("popularity of the block's own rows", context.own.start, context.num_rows)):
    counts = np.bincount(log.item[first:last], minlength=context.num_items)
    assert found[name][0] == pytest.approx(recall(counts, context.num_users))
  base = run.context(0)
  counts = np.bincount(log.item[:base.num_rows], minlength=base.num_items)[:base.num_items]
  assert found['popularity of the base block'][0] == pytest.approx(recall(counts, base.num_users))
