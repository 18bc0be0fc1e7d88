"""One suite for every (kd, replay, backbone): what each must do, whatever it is made of.

A pairwise subset runs by default, the full product with `-m slow`. Methods come from the registries,
so a new one is tested without a change here.
"""
import itertools
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import backbones, config as config_lib, distillation, replay
from graphsane_tf.errors import UserError
from graphsane_tf.serving import export
from graphsane_tf.runs import incremental
from graphsane_tf.testing import distillers, logs, runs
from graphsane_tf.testing.distillers import config_of
from graphsane_tf.training import assembly

_ALL = list(itertools.product(distillation.REGISTRY, replay.REGISTRY, backbones.REGISTRY))
# Every pair of choices occurs: (kd, replay) all of them, and the backbone goes round with both.
_PAIRWISE = [(kd, policy, list(backbones.REGISTRY)[(i + j) % len(backbones.REGISTRY)])
             for i, kd in enumerate(distillation.REGISTRY)
             for j, policy in enumerate(replay.REGISTRY)]
# Each backbone and each replay policy once, with the distillers that ask most of a traced step.
_RUNS = [('graphsail', 'inverse_degree', 'lightgcn'), ('sgct', 'none', 'mgccf'),
         ('lwckd', 'uniform', 'pinsage')]


def _cases(chosen):
  return pytest.mark.parametrize('kd,policy,backbone', [
      pytest.param(*case, marks=[] if case in chosen else pytest.mark.slow, id='-'.join(case))
      for case in _ALL])


@pytest.fixture(name='bench', scope='module')
def _bench(tmp_path_factory):
  return distillers.Bench(tmp_path_factory.mktemp('methods'))


@_cases(_PAIRWISE)
def test_losses_are_finite_and_reach_the_student_only(bench, kd, policy, backbone):
  distillers.check_losses(bench, kd, policy, backbone)


@pytest.mark.parametrize('policy', list(replay.REGISTRY))
def test_replayed_rows_are_trained_on(bench, policy):
  config = config_lib.resolved(config_of('none', policy))
  assert len(assembly.context_of(config, bench.log, 1).users) == 120 + {'none': 0}.get(policy, 108)


@pytest.mark.parametrize('propagation', [
    pytest.param('whole', marks=pytest.mark.slow), 'sampled'])
@_cases([case for case in _PAIRWISE if case[0] != 'none'])
def test_zero_weight_equals_fine_tuning_bit_for_bit(bench, kd, policy, backbone, propagation):
  distillers.check_without_weight(bench, kd, policy, backbone, propagation)


def _own_losses(bench, trainer, backbone):
  return tf.add_n([value for name, value in bench.losses(trainer).items()
                   if name not in bench.plain('none', backbone)])


# What each distiller does with a student that still is its teacher, and with nodes that are new.
_ZERO_AT_TEACHER = ('lsp', 'graphsail')
_EMBEDDINGS_ONLY = {'lsp': {}, 'graphsail': {}, 'sgct': {},
                    'lwckd': {'lwckd__layer1_weight': 0., 'lwckd__final_weight': 0.}}


@pytest.mark.parametrize('backbone', list(backbones.REGISTRY))
@pytest.mark.parametrize('kd', _ZERO_AT_TEACHER)
def test_a_student_equal_to_its_teacher_is_at_the_minimum(bench, kd, backbone):
  trainer, _ = bench.trainer(config_of(kd, 'none', backbone), moved=False)
  with tf.GradientTape() as tape:
    value = _own_losses(bench, trainer, backbone)
  assert float(value) == pytest.approx(0., abs=1e-5)
  for gradient in tape.gradient(value, [trainer.model.backbone.user_table,
                                        trainer.model.backbone.item_table]):
    np.testing.assert_allclose(tf.convert_to_tensor(gradient), 0., atol=1e-4)


@pytest.mark.parametrize('backbone', list(backbones.REGISTRY))
@pytest.mark.parametrize('kd', list(_EMBEDDINGS_ONLY))
def test_new_nodes_are_left_alone(bench, kd, backbone):
  trainer, previous = bench.trainer(config_of(kd, 'none', backbone, **_EMBEDDINGS_ONLY[kd]))
  student = trainer.model.backbone
  assert student.num_users > previous.backbone.num_users
  assert student.num_items > previous.backbone.num_items
  with tf.GradientTape() as tape:
    value = _own_losses(bench, trainer, backbone)
  for gradient, number in zip(tape.gradient(value, [student.user_table, student.item_table]),
                              (previous.backbone.num_users, previous.backbone.num_items)):
    gradient = tf.convert_to_tensor(gradient).numpy()
    assert np.abs(gradient[:number]).sum() > 0 and not gradient[number:].any()


@pytest.fixture(name='base', scope='module')
def _base(tmp_path_factory):
  """Folders of base blocks by backbone, each trained once."""
  folders = {}
  def base(backbone):
    if backbone not in folders:
      folders[backbone] = tmp_path_factory.mktemp('base') / backbone
      incremental.run(config_of('none', 'none', backbone), logs.growing_log(), folders[backbone], blocks=[0],
                      log=lambda _: None)
    return str(folders[backbone])
  return base


@_cases(_RUNS)
def test_a_run_is_exported_and_resumes_to_the_same_numbers(base, tmp_path, kd, policy, backbone):
  config = config_of(kd, policy, backbone, base_from=base(backbone))
  whole, lines = runs.check_resumes(config, logs.growing_log(), tmp_path)
  fields = distillation.REGISTRY[kd].weight_fields
  logged = (tmp_path / 'cut' / 'metrics.jsonl').read_text()
  assert all(f'"{name}' in logged for name in {field.split('.')[0] for field in fields})
  matrix = whole['forgetting']['matrix']
  assert matrix[1][1] == whole['blocks'][1]['test']['recall@20']
  assert whole['forgetting']['average_forgetting'] == pytest.approx(matrix[0][0] - matrix[1][0])
  assert any('average forgetting' in line for line in lines)
  found = [tf.saved_model.load(str(tmp_path / name / 'export' / '1')) for name in ('whole', 'cut')]
  answers = [export.recommend(model, ['u0', 'nobody'], 5) for model in found]
  assert answers[0] == answers[1] and len(answers[0][0]) == 5


def test_full_retrain_starts_afresh_on_all_rows_and_needs_no_block_before(tmp_path):
  config = config_of('none', 'none', 'lightgcn', full_retrain=True, sampler='sane',
                   train__base_epochs=1)
  results = incremental.run(config, logs.growing_log(), tmp_path, blocks=[1], log=lambda _: None)
  assert results['full_retrain']
  assert [entry['train_pairs'] for entry in results['blocks']] == [480]
  assert [entry['epochs'] for entry in results['blocks']] == [1]
  assert '"sane"' in (tmp_path / 'metrics.jsonl').read_text()


@pytest.mark.parametrize('changes', [{'kd': 'sgct'}, {'replay': 'uniform'}])
def test_full_retrain_refuses_distillers_and_replay(tmp_path, changes):
  config = logs.tiny_config(full_retrain=True, **changes)
  with pytest.raises(UserError, match='--full_retrain .* takes no distiller or replay'):
    incremental.run(config, logs.growing_log(), pathlib.Path(tmp_path), log=lambda _: None)
