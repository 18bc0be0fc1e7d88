"""What is served does not depend on how it was trained: a reservoir cannot make answers slower."""
import collections

from tensorflow.core.protobuf import saved_model_pb2

from tests.runs import small_runs


def _operations(folder):
  """How often each kind of operation is in a SavedModel, in all of its functions."""
  saved = saved_model_pb2.SavedModel.FromString((folder / 'saved_model.pb').read_bytes())
  graph = saved.meta_graphs[0].graph_def
  return collections.Counter(node.op for function in [graph, *graph.library.function]
                             for node in (function.node_def if hasattr(function, 'node_def') else function.node))


def test_a_saved_model_has_no_part_of_a_sampler(tmp_path):
  found = {}
  for sampler in ('uniform', 'sane'):
    small_runs.run(tmp_path / sampler, small_runs.settings(sampler=sampler, clusters='kmeans'))
    found[sampler] = _operations(tmp_path / sampler / 'export' / '1')
  assert found['sane'] == found['uniform'] and found['sane']['TopKV2']
