"""One suite for every (kd, replay, backbone): what each must do, whatever it is made of.

A pairwise subset runs by default, the full product with `-m slow`. Methods come from the registries,
so a new one is tested without a change here.
"""
import functools
import itertools
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import backbones, config as config_lib, distillation, replay
from graphsane_tf.distillation.base import Teacher
from graphsane_tf.errors import UserError
from graphsane_tf.random import Seeds
from graphsane_tf.serving import export
from graphsane_tf.runs import incremental
from graphsane_tf.training import assembly
from graphsane_tf.training.block import new_model
from tests import logs

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


def _log():
  """Blocks of 120 rows after a base of 360; the later ones bring new users and items."""
  rng = np.random.default_rng(5)
  user = np.concatenate([rng.integers(0, 24, 3000), rng.integers(0, 30, 3000)])
  item = np.concatenate([rng.integers(0, 30, 3000), rng.integers(0, 36, 3000)])
  def distinct(part, count, known):
    keys = [k for k in dict.fromkeys((user[part] * 100 + item[part]).tolist()) if k not in known]
    return keys[:count]
  first = distinct(slice(0, 3000), 360, set())
  keys = np.array(first + distinct(slice(3000, None), 240, set(first)))
  return logs.interactions_of(keys // 100, keys % 100)


def _config(kd, policy, backbone, **changes):
  return logs.tiny_config(**{'kd': kd, 'replay': policy, 'backbone': backbone,
                             'replay_options__ratio': .3, 'blocks__num_incremental': 2, **changes})


def _no_weight(kd):
  return {field.replace('.', '__'): 0. for field in distillation.REGISTRY[kd].weight_fields}


@pytest.fixture(name='make', scope='module')
def _make(tmp_path_factory):
  """Makes the trainer of block 1 whose student has moved on from its teacher (or not)."""
  log = _log()
  folder = tmp_path_factory.mktemp('methods')

  def make(config, moved=True):
    config = config_lib.resolved(config)
    previous = new_model(config, assembly.context_of(config, log, 0), 1e-3)
    trainer = assembly.trainer_for(config, log, 1, folder, previous)
    # Fresh weights are tiny: with larger ones every term of a loss counts.
    rng = np.random.default_rng(0)
    old = previous.backbone.named_variables()
    for name, variable in trainer.model.backbone.named_variables().items():
      value = variable.numpy() * 3.
      variable.assign(value)
      old[name].assign(value[:old[name].shape[0]])
      if moved:
        variable.assign_add(.05 * rng.normal(size=value.shape))
    # The teacher copies nothing before it is first asked; the distiller may have asked already.
    teacher = Teacher(previous.backbone, previous.graph)
    trainer.distiller.__init__(config, trainer.context, teacher, (config.seed, 1))
    return trainer, previous

  return make


def _view(trainer, seeds):
  graph = trainer.model.graph
  return graph.whole() if trainer.propagation == 'whole' else graph.sampled(seeds)


def _losses(trainer, size=48):
  seeds = Seeds(tf.constant([3, 4]))
  users, items = trainer.context.users[-size:], trainer.context.items[-size:]
  return trainer.step.losses(_view(trainer, seeds), tf.constant(users), tf.constant(items), seeds)


@pytest.fixture(name='plain', scope='module')
def _plain(make):
  """Losses of fine-tuning by replay policy and backbone, each computed once."""
  @functools.lru_cache(None)
  def plain(policy, backbone):
    trainer, _ = make(_config('none', policy, backbone))
    return {name: float(value) for name, value in _losses(trainer).items()}
  return plain


@_cases(_PAIRWISE)
def test_losses_are_finite_and_reach_the_student_only(make, plain, kd, policy, backbone):
  trainer, previous = make(_config(kd, policy, backbone))
  assert len(trainer.context.users) == 120 + {'none': 0}.get(policy, 108)
  student = trainer.model.backbone.trainable_variables
  teacher = previous.backbone.trainable_variables
  with tf.GradientTape(persistent=True) as tape:
    found = _losses(trainer)
    own = [value for name, value in found.items() if name not in plain(policy, backbone)]
    total, added = tf.add_n(list(found.values())), tf.add_n(own or [tf.zeros([])])
  assert all(np.isfinite(value) for value in found.values())
  gradients = tape.gradient(total, student)
  assert all(np.isfinite(tf.convert_to_tensor(g)).all() for g in gradients if g is not None)
  assert not any(g is not None for g in tape.gradient(total, teacher))
  assert bool(own) == bool(distillation.REGISTRY[kd].weight_fields)
  if own:
    pulled = tape.gradient(added, trainer.model.backbone.user_table)
    assert np.abs(tf.convert_to_tensor(pulled)).sum() > 0
  # A distiller changes no other draw of the step.
  for name, value in plain(policy, backbone).items():
    assert float(found[name]) == value


@pytest.fixture(name='two_steps', scope='module')
def _two_steps(make):
  """Weights after two steps, computed once for each method."""
  @functools.lru_cache(None)
  def two_steps(kd, policy, backbone, propagation):
    config = _config(kd, policy, backbone, model__propagation=propagation, **_no_weight(kd))
    trainer, _ = make(config)
    for step in range(2):
      seeds = Seeds(tf.constant([7, step]))
      rows = slice(48 * step, 48 * (step + 1))
      trainer.step._update(_view(trainer, seeds), tf.constant(trainer.context.users[rows]),
                           tf.constant(trainer.context.items[rows]), seeds)
    return {k: v.numpy() for k, v in trainer.model.backbone.named_variables().items()}
  return two_steps


@pytest.mark.parametrize('propagation', [
    pytest.param('whole', marks=pytest.mark.slow), 'sampled'])
@_cases([case for case in _PAIRWISE if case[0] != 'none'])
def test_zero_weight_equals_fine_tuning_bit_for_bit(two_steps, kd, policy, backbone, propagation):
  expected = two_steps('none', policy, backbone, propagation)
  for name, value in two_steps(kd, policy, backbone, propagation).items():
    np.testing.assert_array_equal(value, expected[name])


def _own_losses(trainer, names):
  return tf.add_n([value for name, value in _losses(trainer).items() if name not in names])


# What each distiller does with a student that still is its teacher, and with nodes that are new.
_ZERO_AT_TEACHER = ('lsp', 'graphsail')
_EMBEDDINGS_ONLY = {'lsp': {}, 'graphsail': {}, 'sgct': {},
                    'lwckd': {'lwckd__layer1_weight': 0., 'lwckd__final_weight': 0.}}


@pytest.mark.parametrize('backbone', list(backbones.REGISTRY))
@pytest.mark.parametrize('kd', _ZERO_AT_TEACHER)
def test_a_student_equal_to_its_teacher_is_at_the_minimum(make, plain, kd, backbone):
  trainer, _ = make(_config(kd, 'none', backbone), moved=False)
  with tf.GradientTape() as tape:
    value = _own_losses(trainer, plain('none', backbone))
  assert float(value) == pytest.approx(0., abs=1e-5)
  for gradient in tape.gradient(value, [trainer.model.backbone.user_table,
                                        trainer.model.backbone.item_table]):
    np.testing.assert_allclose(tf.convert_to_tensor(gradient), 0., atol=1e-4)


@pytest.mark.parametrize('backbone', list(backbones.REGISTRY))
@pytest.mark.parametrize('kd', list(_EMBEDDINGS_ONLY))
def test_new_nodes_are_left_alone(make, plain, kd, backbone):
  trainer, previous = make(_config(kd, 'none', backbone, **_EMBEDDINGS_ONLY[kd]))
  student = trainer.model.backbone
  assert student.num_users > previous.backbone.num_users
  assert student.num_items > previous.backbone.num_items
  with tf.GradientTape() as tape:
    value = _own_losses(trainer, plain('none', backbone))
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
      incremental.run(_config('none', 'none', backbone), _log(), folders[backbone], blocks=[0],
                      log=lambda _: None)
    return str(folders[backbone])
  return base


@_cases(_RUNS)
def test_a_run_is_exported_and_resumes_to_the_same_numbers(base, tmp_path, kd, policy, backbone):
  config = _config(kd, policy, backbone, base_from=base(backbone))
  lines = []

  def copy_after_an_epoch(line):
    if line.startswith('block 1 epoch  1/'):
      shutil.copytree(tmp_path / 'whole', tmp_path / 'cut')

  whole = incremental.run(config, _log(), tmp_path / 'whole', log=copy_after_an_epoch)
  cut = incremental.run(config, _log(), tmp_path / 'cut', log=lines.append)
  # The copy is a run that was killed there: it goes on with the second epoch.
  assert [line[:16] for line in lines if line.startswith('block 1 epoch')] == ['block 1 epoch  2']
  for one, other in zip(whole['blocks'], cut['blocks']):
    assert one['test'] == other['test'] and one['on_blocks'] == other['on_blocks']
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
  config = _config('none', 'none', 'lightgcn', full_retrain=True, sampler='sane',
                   train__base_epochs=1)
  results = incremental.run(config, _log(), tmp_path, blocks=[1], log=lambda _: None)
  assert results['full_retrain']
  assert [entry['train_pairs'] for entry in results['blocks']] == [480]
  assert [entry['epochs'] for entry in results['blocks']] == [1]
  assert '"sane"' in (tmp_path / 'metrics.jsonl').read_text()


@pytest.mark.parametrize('changes', [{'kd': 'sgct'}, {'replay': 'uniform'}])
def test_full_retrain_refuses_distillers_and_replay(tmp_path, changes):
  config = logs.tiny_config(full_retrain=True, **changes)
  with pytest.raises(UserError, match='--full_retrain .* takes no distiller or replay'):
    incremental.run(config, _log(), pathlib.Path(tmp_path), log=lambda _: None)
