"""Which tests look for faults in which file: `tests.mutation` runs them in this order."""
from typing import List, Tuple

_OBJECTIVE = 'tests/training/test_objective.py'
_STEP = [_OBJECTIVE, 'tests/training/test_step.py', 'tests/benchmarking/test_plain.py',
         'tests/training/test_methods.py']
_RUN = ['tests/training/test_incremental.py', 'tests/training/test_methods.py',
        'tests/training/test_learning.py']
_SAMPLER = ['tests/negatives/test_samplers.py', 'tests/negatives/test_behaviour.py',
            'tests/negatives/test_training.py']
_SANE = ['tests/negatives/test_sane.py', 'tests/negatives/test_adaptive.py',
         'tests/negatives/test_samplers.py', 'tests/training/test_drift_is_found.py',
         'tests/negatives/test_behaviour.py', 'tests/negatives/test_training.py']
_DISTILLER = ['tests/distillation', 'tests/training/test_methods.py']

_TESTS = {
    'training/batch.py': [_OBJECTIVE, 'tests/distillation', *_STEP[1:]],
    'training/block.py': ['tests/training/test_stopping.py', 'tests/training/test_block.py',
                          'tests/training/test_profile.py', *_RUN],
    'training/context.py': ['tests/training/test_context.py', 'tests/negatives/test_sane.py',
                            'tests/negatives/test_adaptive.py', 'tests/replay', *_RUN],
    'training/folder.py': _RUN,
    'training/grid.py': ['tests/training/test_grid.py', 'tests/test_reproduce.py'],
    'training/incremental.py': ['tests/training/test_on_blocks.py', *_RUN],
    'training/memory.py': ['tests/training/test_memory.py', 'tests/training/test_incremental.py'],
    'training/optimizers.py': [_OBJECTIVE, 'tests/training/test_incremental.py'],
    'training/overrides.py': ['tests/training/test_overrides.py', 'tests/training/test_grid.py',
                              'tests/reporting/test_comparison.py'],
    'training/propagation.py': ['tests/training/test_propagation.py', *_STEP],
    'training/screen.py': ['tests/training/test_screen.py', 'tests/training/test_incremental.py'],
    'training/scores.py': ['tests/training/test_scores.py', *_STEP],
    'training/step.py': _STEP,
    'training/store.py': ['tests/training/test_store.py', *_RUN],
    'training/tuning.py': ['tests/training/test_tuning.py'],
    'training/workdir.py': ['tests/training/test_workdir.py', 'tests/training/test_incremental.py',
                            'tests/test_run_incremental.py'],
    'negatives/base.py': ['tests/negatives/test_samplers.py', _OBJECTIVE,
                          'tests/negatives/test_behaviour.py'],
    'negatives/ranked.py': ['tests/negatives/test_ranked.py', *_SANE],
    'negatives/sane': _SANE,
    'negatives/sane/evidence.py': ['tests/negatives/test_adaptive.py', *_SANE],
    'negatives/uniform.py': ['tests/negatives/test_uniform.py', _OBJECTIVE, *_SAMPLER],
    'distillation/base.py': _DISTILLER,
    'clustering': ['tests/clustering', 'tests/negatives/test_sane.py',
                   'tests/benchmarking/test_plain.py', 'tests/negatives/test_training.py'],
    'evaluation/audit.py': ['tests/evaluation/test_limits.py', 'tests/evaluation/test_audit.py'],
    'evaluation/forgetting.py': ['tests/evaluation/test_forgetting.py',
                                 'tests/evaluation/test_limits.py',
                                 'tests/training/test_on_blocks.py'],
    'evaluation/metrics.py': ['tests/evaluation/test_metrics.py', 'tests/evaluation/test_limits.py',
                              'tests/evaluation/test_protocol.py'],
    'evaluation/protocol.py': ['tests/evaluation/test_protocol.py', 'tests/evaluation/test_limits.py',
                               'tests/training/test_on_blocks.py'],
    'evaluation/ranking.py': ['tests/evaluation/test_ranking.py', 'tests/evaluation/test_limits.py',
                              'tests/evaluation/test_protocol.py',
                              'tests/negatives/test_ranked.py'],
    'evaluation/significance.py': ['tests/evaluation/test_significance.py',
                                   'tests/reporting/test_comparison.py'],
    'data/blocks.py': ['tests/data/test_blocks.py', 'tests/training/test_on_blocks.py'],
}


def tests_of(path: str) -> Tuple[List[str], str]:
  """Tests that look for faults in a file of the package, the likeliest first, and pytest's -k."""
  name = path.removeprefix('graphsane_tf/')
  folder, _, file = name.rpartition('/')
  if name in _TESTS or folder in _TESTS:
    return list(dict.fromkeys(_TESTS.get(name) or _TESTS[folder])), ''
  if folder == 'negatives':
    return _SAMPLER, file.removesuffix('.py')
  return _DISTILLER, ''
