"""The scale of distillers: the ratio of gradients asked for is the one that is measured."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.random import Seeds
from graphsane_tf.testing import distillers, logs, runs
from graphsane_tf.training.store import fresh_state

_STRENGTH = .3
_OWN = ('bpr', 'sane', 'softmax', 'l2', 'proximity', 'clustering')


def _ratio(trainer, order, seed, steps, ranking):
  """Norm of the distiller's gradient over that of the ranking losses, means over some steps, by hand."""
  backbone, size = trainer.model.backbone, trainer._config.train.batch_size
  norms = np.zeros(2)
  for index in steps:
    rows = order[index * size:(index + 1) * size]
    seeds = Seeds(tf.random.experimental.stateless_fold_in(seed, index))
    view = distillers._view(trainer, seeds)
    with tf.GradientTape(persistent=True) as tape:
      losses = trainer.step.losses(view, tf.constant(trainer.context.users[rows]),
                                   tf.constant(trainer.context.items[rows]), seeds)
      parts = [tf.add_n([value for name, value in losses.items() if chosen(name)])
               for chosen in (lambda name: name not in _OWN, ranking.__contains__)]
    for part, loss in enumerate(parts):
      gradients = tape.gradient(loss, [backbone.user_table, backbone.item_table])
      squares = [np.square(tf.convert_to_tensor(gradient).numpy(), dtype=np.float64).sum() for gradient in gradients]
      norms[part] += np.sqrt(sum(squares))
  return norms[0] / norms[1]


@pytest.mark.parametrize('kd,ranking,moved,changes', [
    # Without the trial its gradient would be nearly zero, because the student begins as its teacher.
    ('graphsail', ('bpr',), False, {'train__batch_size': 16}),
    ('sgct', ('bpr', 'sane'), True, {'sampler': 'sane'}),
    ('lsp', ('softmax',), True, {'sampler': 'sane', 'train__loss': 'softmax'})])
def test_the_measured_ratio_is_the_one_asked_for(tmp_path, kd, ranking, moved, changes):
  bench = distillers.Bench(tmp_path)
  trainer, _ = bench.trainer(distillers.config_of(kd, kd_strength=_STRENGTH, **changes), moved)
  twin, _ = bench.trainer(distillers.config_of(kd, **changes), moved)
  for each in (trainer, twin):
    each.sampler.refresh(*each.represent(), 0)
  variables = [*trainer.step.variables, *trainer.model.optimizer.variables()]
  before, state = [variable.numpy() for variable in variables], fresh_state()
  trainer._weigh_distiller(0, state)
  for variable, value in zip(variables, before):
    np.testing.assert_array_equal(variable, value)
  assert state['kd_scale'] == float(trainer.step.kd_scale) != 1.
  # The twin makes the same steps with the weights as they are configured; the ratio is that at their end.
  order, seed, total = twin.plan(0)
  twin.run_steps(order, seed, 0, total)
  for variable, value in zip(trainer.step.variables, twin.step.variables):
    variable.assign(value)
  steps = range(max(0, total - 8), total)
  assert _ratio(trainer, order.numpy(), seed, steps, ranking) == pytest.approx(_STRENGTH, rel=.02)
  assert not .9 < _ratio(twin, order.numpy(), seed, steps, ranking) / _STRENGTH < 1.1


def test_a_scale_that_is_known_is_kept(tmp_path):
  trainer, _ = distillers.Bench(tmp_path).trainer(distillers.config_of('sgct', kd_strength=_STRENGTH))
  state = {**fresh_state(), 'kd_scale': 2.5}
  trainer._weigh_distiller(0, state)
  assert float(trainer.step.kd_scale) == state['kd_scale'] == 2.5 and trainer.step.num_traces == 0


@pytest.mark.parametrize('kd', ['sgct', 'none'])
def test_without_strength_there_is_no_scale(tmp_path, kd):
  assert logs.default_config().kd_strength == 0.
  trainer, _ = distillers.Bench(tmp_path).trainer(distillers.config_of(kd))
  state = fresh_state()
  trainer._weigh_distiller(0, state)
  assert trainer.step.kd_scale is None and 'kd_scale' not in state


def test_a_distiller_without_weight_stays_without(tmp_path):
  lines = []
  trainer, _ = distillers.Bench(tmp_path).trainer(distillers.config_of('sgct', kd_strength=.3, sgct__weight=0.))
  trainer._log = lines.append
  state = fresh_state()
  trainer._weigh_distiller(0, state)
  assert state['kd_scale'] == 1. and lines[-1] == 'block 1: distillation has no gradient that could be scaled'


def test_a_killed_run_with_every_option_ends_with_the_same_numbers(tmp_path):
  config = logs.tiny_config(
      backbone='lightgcn', kd='sgct', kd_strength=.2, sampler='sane', train__loss='softmax',
      train__new_row_moments='corrected', train__epoch_zero=True, blocks__num_incremental=2)
  whole, lines = runs.check_resumes(config, logs.growing_log(), tmp_path)
  scale = whole['blocks'][1]['kd_scale']
  assert scale > 0 and 'kd_scale' not in whole['blocks'][0]
  # The scale was in the state; and it is the same when block 1 is trained anew.
  assert not any('distillation counts' in line for line in lines)
