"""Which tests look for faults in which file: `tests.mutation` runs them in this order."""
from typing import List, Tuple

# Whole runs, of a minute and more: only if they are asked for.
_LONG = ('tests/runs/test_incremental.py', 'tests/training/test_methods.py', 'tests/runs/test_folder.py',
         'tests/training/test_learning.py', 'tests/reporting/test_comparison.py',
         'tests/negatives/test_training.py')
# The last for every file.
_FROZEN = 'tests/test_frozen.py'
_UNSOUND = ['tests/runs/test_folder.py::test_unsound_weights_and_gradients_stop_a_block',
            'tests/runs/test_folder.py::test_a_loss_is_compared_with_the_blocks_first_step']

_OBJECTIVE = 'tests/training/test_objective.py'
_STEP = [_OBJECTIVE, 'tests/training/test_step.py', 'tests/training/test_update.py', 'tests/training/test_softmax.py',
         'tests/training/test_kd_strength.py', 'tests/training/test_shared_traces.py', 'tests/memory/test_offsets.py',
         'tests/benchmarking/test_plain.py', 'tests/training/test_methods.py']
_RUN = ['tests/runs/test_incremental.py', 'tests/training/test_learning.py',
        'tests/training/test_methods.py']
_FOLDER = ['tests/training/test_store.py', 'tests/runs/test_damage.py',
           'tests/runs/test_folder.py', 'tests/runs/test_disk.py', *_RUN]
_EDGES = 'tests/negatives/test_edges.py'
_SAMPLER = [_EDGES, 'tests/negatives/test_samplers.py', 'tests/negatives/test_behaviour.py',
            'tests/negatives/test_training.py']
_SANE = ['tests/negatives/test_sane.py', _EDGES, 'tests/negatives/test_adaptive.py',
         'tests/negatives/test_samplers.py', 'tests/training/test_drift_is_found.py',
         'tests/negatives/test_behaviour.py', 'tests/negatives/test_training.py']
_BASE, _CONTRASTIVE, _SAIL, _LSP, _SEEDS = (
    f'tests/distillation/test_{name}.py' for name in ('base', 'contrastive', 'graphsail', 'lsp', 'seeds'))
_METHODS = 'tests/training/test_methods.py'
_AUDIT = 'tests/reporting/test_audit.py'
_LIMITS = 'tests/evaluation/test_limits.py'
_MEMORY = ['tests/memory', 'tests/runs/test_memory_runs.py', 'tests/runs/test_store_memory.py']
_PEERS = ['tests/peers', 'tests/memory']
_SERVED = ['tests/serving/test_export.py', 'tests/serving/test_signatures.py', 'tests/serving/test_http.py',
           'tests/runs/test_updating.py']

# A file, or the folder of files that have no line of their own.
_TESTS = {
    'training/assembly.py': ['tests/training/test_block.py', 'tests/runs/test_on_blocks.py', *_RUN,
                             'tests/runs/test_tuning.py'],
    'training/block.py': ['tests/training/test_block.py', 'tests/training/test_stopping.py',
                          'tests/training/test_epoch_zero.py', 'tests/training/test_kd_strength.py',
                          'tests/runs/test_profile.py', *_UNSOUND, 'tests/runs/test_folder.py', *_RUN],
    'training/optimizers.py': [_OBJECTIVE, 'tests/training/test_new_rows.py', 'tests/training/test_update.py',
                               'tests/runs/test_incremental.py'],
    'training/propagation.py': ['tests/training/test_propagation.py', *_STEP],
    'training/step.py': _STEP,
    'training/softmax.py': ['tests/training/test_softmax.py', *_STEP],
    'training/scoring.py': ['tests/memory', 'tests/runs/test_memory_runs.py'],
    'training/store.py': _FOLDER,
    'graph/scores.py': ['tests/graph/test_scores.py', *_STEP],
    'runs/capacity.py': ['tests/runs/test_capacity.py', *_RUN],
    'runs/folder.py': _FOLDER,
    'runs/grid.py': ['tests/runs/test_grid.py', 'tests/test_reproduce.py'],
    'runs/incremental.py': ['tests/runs/test_on_blocks.py', 'tests/runs/test_damage.py', *_RUN,
                            'tests/runs/test_folder.py'],
    'runs/overrides.py': ['tests/runs/test_overrides.py', 'tests/runs/test_grid.py',
                          'tests/reporting/test_comparison.py'],
    'runs/screen.py': ['tests/runs/test_screen_text.py', 'tests/runs/test_screen.py'],
    'runs/tuning.py': ['tests/runs/test_search.py', 'tests/runs/test_tuning.py'],
    'runs/workdir.py': ['tests/runs/test_workdir.py', 'tests/runs/test_incremental.py'],
    'runs/gate.py': ['tests/runs/test_gate.py', 'tests/runs/test_updating.py'],
    'runs/changes.py': ['tests/runs/test_gate.py', 'tests/runs/test_updating.py'],
    'runs/soak.py': ['tests/runs/test_soak.py'],
    'runs/profile.py': ['tests/runs/test_profile.py'],
    'runs/board.py': ['tests/runs/test_profile.py', *_RUN],
    **dict.fromkeys([f'runs/{name}.py' for name in ('attempt', 'forgetting', 'source', 'status', 'store', 'updating')],
                    ['tests/runs/test_updating.py', 'tests/runs/test_store_memory.py']),
    'negatives/base.py': [_EDGES, 'tests/negatives/test_samplers.py', _OBJECTIVE,
                          'tests/negatives/test_behaviour.py'],
    'negatives/ranked.py': ['tests/negatives/test_ranked.py', *_SANE],
    'negatives/sane': _SANE,
    'negatives/sane/evidence.py': ['tests/negatives/test_adaptive.py', *_SANE],
    'graph/draws.py': ['tests/graph/test_draws.py', _OBJECTIVE, 'tests/negatives/test_samplers.py',
                       'tests/negatives/test_behaviour.py'],
    'distillation/base.py': [_BASE, _SAIL, _LSP, _CONTRASTIVE, _METHODS],
    'distillation/contrastive.py': [_CONTRASTIVE, _SEEDS, _METHODS],
    'distillation/divergence.py': [_LSP, _SAIL, _METHODS],
    'distillation/graphsail.py': [_SAIL, _SEEDS, _METHODS],
    'distillation/lsp.py': [_LSP, _METHODS],
    'distillation/lwckd.py': [_CONTRASTIVE, _METHODS],
    'distillation/personal.py': [_SEEDS, _CONTRASTIVE, _METHODS],
    'distillation': ['tests/distillation', _METHODS],
    'clustering': ['tests/clustering', 'tests/negatives/test_sane.py',
                   'tests/benchmarking/test_plain.py', 'tests/negatives/test_training.py'],
    'evaluation/approximate.py': ['tests/evaluation/test_approximate.py'],
    'evaluation/forgetting.py': ['tests/evaluation/test_forgetting.py', _LIMITS,
                                 'tests/runs/test_on_blocks.py'],
    'evaluation/metrics.py': ['tests/evaluation/test_metrics.py', _LIMITS,
                              'tests/evaluation/test_protocol.py'],
    'evaluation/protocol.py': ['tests/evaluation/test_protocol.py', _LIMITS,
                               'tests/runs/test_on_blocks.py'],
    'evaluation/ranking.py': ['tests/evaluation/test_protocol.py', _LIMITS,
                              'tests/negatives/test_ranked.py', 'tests/evaluation/test_ranking.py'],
    'evaluation/significance.py': ['tests/evaluation/test_significance.py',
                                   'tests/reporting/test_comparison.py'],
    'graph/topk.py': ['tests/graph/test_topk.py', 'tests/graph/test_topk_parts.py', 'tests/graph/test_knn.py',
                      'tests/negatives/test_ranked.py', 'tests/evaluation/test_protocol.py'],
    'reporting/audit.py': [_LIMITS, f'{_AUDIT}::test_leaky_edges',
                           f'{_AUDIT}::test_recall_where_nobody_is_known_is_zero', _AUDIT],
    'blocks/batch.py': [_OBJECTIVE, 'tests/distillation', *_STEP[1:]],
    'blocks/context.py': ['tests/blocks', 'tests/negatives/test_sane.py', 'tests/replay'],
    'runs/cluster.py': ['tests/runs/test_cluster.py'],
    'runs/forecast.py': ['tests/runs/test_forecast.py'],
    'blocks/stream.py': ['tests/blocks', 'tests/runs/test_on_blocks.py'],
    'memory': _MEMORY,
    'memory/statistics.py': ['tests/memory/test_statistics.py', *_MEMORY],
    'memory/offsets.py': ['tests/memory/test_offsets.py', *_MEMORY],
    'peers': _PEERS,
    'replay': ['tests/replay'],
    **dict.fromkeys([f'serving/{name}.py' for name in ('export', 'tables')], _SERVED),
    'serving/versions.py': ['tests/serving/test_versions.py', 'tests/runs/test_updating.py'],
    'serving': ['tests/serving/test_http.py', 'tests/test_store_serving.py', 'tests/test_servers.py'],
}


def tests_of(path: str, long: bool = False) -> Tuple[List[str], str]:
  """Tests that look for faults in a file of the package, the likeliest first, and pytest's -k.

  Args:
    path: the file, from the project's folder.
    long: whole runs, too.
  """
  name = path.removeprefix('graphsane_tf/')
  folder, _, file = name.rpartition('/')
  if name in _TESTS or folder in _TESTS:
    tests = dict.fromkeys([*(_TESTS.get(name) or _TESTS[folder]), _FROZEN])
    return [test for test in tests if long or test not in _LONG], ''
  if folder != 'negatives':
    raise ValueError(f'{path} has no line in _TESTS.')
  # A sampler's own tests have its name in theirs.
  return [test for test in _SAMPLER if long or test not in _LONG], f"{file.removesuffix('.py')} or test_edges"
