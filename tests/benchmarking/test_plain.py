"""The step written twice: the real one against the plain one, which shares nothing with it but draws."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_benchmark import plain, training
from graphsane_tf.random import Seeds
from graphsane_tf.training import assembly
from tests import logs

_BATCH = 10


def _log():
  """Later rows bring new users and items."""
  rng = np.random.default_rng(5)
  keys = np.concatenate([rng.permutation(16 * 20), 10_000 + rng.permutation(8 * 12)])
  user, item = np.where(keys < 10_000, [keys // 20, keys % 20],
                        [12 + (keys - 10_000) // 12, 14 + (keys - 10_000) % 12])
  pairs = list(dict.fromkeys(zip(user[150:], item[150:])))
  return logs.interactions_of(*np.array(pairs).T)


@pytest.fixture(name='make', scope='module')
def _make():
  """Makes trainers of block 1 with weights that every term feels, and plain steps of the same parts."""
  log = _log()

  def make(propagation, folder, **changes):
    # Nothing is dropped and every neighbour drawn, so that both see the same.
    config = training.config_of(**{
        'train__batch_size': _BATCH, 'model__dropout': 0., 'model__fanout': (30, 30),
        'model__num_knn': 30, 'model__embedding_dim': 6, 'model__propagation': propagation,
        'model__l2': .1, 'model__proximity': .05, 'clustering__beta': 3., **changes})
    previous = training.previous_of(log, 1, config)
    rng = np.random.default_rng(4)
    for variable in previous.backbone.trainable_variables:
      variable.assign(rng.normal(size=variable.shape) * .5)
    trainer = assembly.trainer_for(config, log, 1, folder / propagation, previous)
    for variable in trainer.model.backbone.trainable_variables:
      variable.assign(rng.normal(size=variable.shape) * .5)
    trainer.sampler.refresh(*trainer.represent(), 0)
    other = plain.PlainStep(config, trainer.context, trainer.model.graph, trainer.model.backbone,
                            trainer.sampler, trainer.distiller.teacher, trainer.model.optimizer)
    return trainer, other

  return make


def _values(losses, gradients):
  return ({name: float(value) for name, value in losses.items()},
          [tf.convert_to_tensor(gradient).numpy() for gradient in gradients])


def _gradients(make_losses, variables):
  with tf.GradientTape() as tape:
    losses = make_losses()
    total = sum(losses.values())
  return _values(losses, tape.gradient(total, variables))


@pytest.mark.parametrize('propagation', ['whole', 'sampled'])
def test_losses_and_gradients_are_the_plain_steps(make, tmp_path, propagation):
  trainer, other = make(propagation, tmp_path)
  context, variables = trainer.context, trainer.step.variables
  assert len(variables) == 9  # Tables, six matrices and the clusters' centres.
  users, items = (tf.constant(part, tf.int32) for part in (context.users, context.items))
  # Some users and items are new to the teacher, and some occur several times.
  for nodes, old in ((users, context.num_old_users), (items, context.num_old_items)):
    assert len(np.unique(nodes)) < len(nodes) and np.min(nodes) < old <= np.max(nodes)

  def losses():
    seeds = Seeds(tf.constant([3, 4]))
    graph = trainer.model.graph
    view = graph.whole() if propagation == 'whole' else graph.sampled(seeds.child('view'))
    return trainer.step.losses(view, users, items, seeds)

  found, gradients = _gradients(losses, variables)
  expected, plain_gradients = _gradients(
      lambda: other.losses(users, items, Seeds(tf.constant([3, 4]))), variables)
  assert found == pytest.approx(expected, rel=1e-4) and min(expected.values()) > 1e-3
  for variable, one, two in zip(variables, gradients, plain_gradients):
    assert np.abs(two).max() > 1e-3
    np.testing.assert_allclose(one, two, rtol=2e-3, atol=2e-5, err_msg=variable.name)


def test_two_compiled_steps_lead_to_the_same_weights(make, tmp_path):
  results = []
  for propagation, kind in (('whole', 'real'), ('sampled', 'plain')):
    trainer, other = make(propagation, tmp_path)
    run = trainer.run_steps if kind == 'real' else other.compile()
    order = np.arange(len(trainer.context.users), dtype=np.int32)[::-1].copy()
    total = run(tf.constant(order), tf.constant([1, 2]), tf.constant(1), tf.constant(2)).numpy()
    results.append((total if kind == 'plain' else total[-1],
                    [variable.numpy() for variable in trainer.step.variables]))
  assert trainer.step.loss_names == []  # The plain step has not used the real one.
  (total, weights), (plain_total, plain_weights) = results
  assert total == pytest.approx(plain_total, rel=1e-4)
  for one, two in zip(weights, plain_weights):
    np.testing.assert_allclose(one, two, rtol=0., atol=2e-4)
