"""What must hold for every distiller; each check raises AssertionError where it does not."""
import pathlib
from typing import Dict, Tuple

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import config as config_lib
from graphsane_tf import distillation
from graphsane_tf.distillation.base import Teacher
from graphsane_tf.random import Seeds
from graphsane_tf.testing import logs
from graphsane_tf.training import assembly
from graphsane_tf.training.block import BlockTrainer, Model, new_model


def config_of(kd: str, replay: str = 'none', backbone: str = 'lightgcn', **changes):
  """A small configuration; `changes` are dotted fields with __ for dots."""
  return logs.tiny_config(**{'kd': kd, 'replay': replay, 'backbone': backbone, 'replay_options__ratio': .3,
                             'blocks__num_incremental': 2, **changes})


class Bench:
  """Makes trainers of block 1; what several checks compare with is computed once.

  Attributes:
    log: a log whose block 1 brings new users and items.
  """

  def __init__(self, folder: pathlib.Path):
    """Takes a folder, in which nothing is written."""
    self.log = logs.growing_log()
    self._folder = folder
    self._plain: Dict[Tuple[str, str], Dict[str, float]] = {}
    self._weights: Dict[Tuple[str, ...], Dict[str, np.ndarray]] = {}

  def trainer(self, config, moved: bool = True) -> Tuple[BlockTrainer, Model]:
    """The trainer of block 1 and the model before; the student has moved on from its teacher, or not."""
    config = config_lib.resolved(config)
    previous = new_model(config, assembly.context_of(config, self.log, 0), 1e-3)
    trainer = assembly.trainer_for(config, self.log, 1, self._folder, previous)
    # Fresh weights are tiny: with larger ones every term of a loss counts.
    rng = np.random.default_rng(0)
    old = previous.backbone.named_variables()
    for name, variable in trainer.model.backbone.named_variables().items():
      value = variable.numpy() * 3.
      variable.assign(value)
      old[name].assign(value[:old[name].shape[0]])
      if moved:
        variable.assign_add(.05 * rng.normal(size=value.shape))
    # The teacher has copied the model before these changes.
    teacher = Teacher(previous.backbone, previous.graph)
    trainer.distiller.__init__(config, trainer.context, teacher, (config.seed, 1))
    return trainer, previous

  def losses(self, trainer: BlockTrainer, size: int = 48) -> Dict[str, tf.Tensor]:
    """Named losses of a batch."""
    seeds = Seeds(tf.constant([3, 4]))
    users, items = trainer.context.users[-size:], trainer.context.items[-size:]
    return trainer.step.losses(_view(trainer, seeds), tf.constant(users), tf.constant(items), seeds)

  def plain(self, replay: str, backbone: str) -> Dict[str, float]:
    """Losses of fine-tuning."""
    key = replay, backbone
    if key not in self._plain:
      trainer, _ = self.trainer(config_of('none', replay, backbone))
      self._plain[key] = {name: float(value) for name, value in self.losses(trainer).items()}
    return self._plain[key]

  def without_weight(self, kd: str, replay: str, backbone: str, propagation: str) -> Dict[str, np.ndarray]:
    """The student after two steps with all of the distiller's weights 0."""
    key = kd, replay, backbone, propagation
    if key not in self._weights:
      fields = {field.replace('.', '__'): 0. for field in distillation.REGISTRY[kd].weight_fields}
      trainer, _ = self.trainer(config_of(kd, replay, backbone, model__propagation=propagation, **fields))
      for step in range(2):
        seeds = Seeds(tf.constant([7, step]))
        rows = slice(48 * step, 48 * (step + 1))
        trainer.step._update(  # pylint: disable=protected-access
            _view(trainer, seeds), tf.constant(trainer.context.users[rows]),
            tf.constant(trainer.context.items[rows]), seeds)
      self._weights[key] = {name: value.numpy() for name, value in trainer.model.backbone.named_variables().items()}
    return self._weights[key]


def _view(trainer: BlockTrainer, seeds: Seeds):
  graph = trainer.model.graph
  return graph.whole() if trainer.propagation == 'whole' else graph.sampled(seeds)


def check_losses(bench: Bench, kd: str, replay: str = 'none', backbone: str = 'lightgcn') -> None:
  """Losses are finite, pull at the student only, and change no other draw of the step."""
  trainer, _ = bench.trainer(config_of(kd, replay, backbone))
  plain = bench.plain(replay, backbone)
  student = trainer.model.backbone.trainable_variables
  teacher = trainer.distiller.teacher
  before = teacher.get_weights()
  with tf.GradientTape(persistent=True) as tape:
    losses = bench.losses(trainer)
    own = [value for name, value in losses.items() if name not in plain]
    total, added = tf.add_n(list(losses.values())), tf.add_n(own or [tf.zeros([])])
  assert all(np.isfinite(value) for value in losses.values())
  gradients = tape.gradient(total, student)
  assert all(np.isfinite(tf.convert_to_tensor(g)).all() for g in gradients if g is not None)
  assert not teacher.trainable_variables, 'the teacher must stay frozen'
  for value, old in zip(teacher.get_weights(), before):
    np.testing.assert_array_equal(value, old)
  assert bool(own) == bool(distillation.REGISTRY[kd].weight_fields), 'name the weights in weight_fields'
  if own:
    pulled = [g for g in tape.gradient(added, student) if g is not None]
    assert sum(np.abs(tf.convert_to_tensor(g)).sum() for g in pulled) > 0
  for name, value in plain.items():
    assert float(losses[name]) == value, f'the distiller changes the draws behind the loss {name}'


def check_without_weight(bench: Bench, kd: str, replay: str = 'none', backbone: str = 'lightgcn',
                         propagation: str = 'sampled') -> None:
  """With all of `weight_fields` 0, training is fine-tuning, bit for bit."""
  expected = bench.without_weight('none', replay, backbone, propagation)
  for name, value in bench.without_weight(kd, replay, backbone, propagation).items():
    np.testing.assert_array_equal(value, expected[name])


class Suite:
  """What must hold for every distiller; a subclass is parametrised with `name`."""

  @pytest.fixture
  def bench(self, tmp_path):
    return Bench(tmp_path)

  @pytest.mark.parametrize('backbone', ['lightgcn', 'mgccf'])
  def test_losses_are_finite_and_reach_the_student_only(self, name, bench, backbone):
    check_losses(bench, name, backbone=backbone)

  @pytest.mark.parametrize('backbone', ['lightgcn', 'mgccf'])
  def test_zero_weight_equals_fine_tuning(self, name, bench, backbone):
    check_without_weight(bench, name, backbone=backbone)
