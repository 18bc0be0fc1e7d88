"""Terms of the train step against NumPy."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.config import resolved
from graphsane_tf.random import Seeds
from graphsane_tf.training.block import BlockTrainer, new_model
from graphsane_tf.training.store import BlockStore
from tests import logs


@pytest.mark.parametrize('propagation', ['whole', 'sampled'])
def test_proximity_is_between_each_node_and_its_partner(tmp_path, propagation):
  log = logs.random_log()
  # Fan-outs beyond every degree: a sampled view sees what a whole one does.
  config = resolved(logs.tiny_config(model__dropout=0., model__propagation=propagation,
                                     model__fanout=(60, 60), model__proximity=.25))
  context = logs.context_of(log, 1)
  trainer = BlockTrainer(config, context, new_model(config, logs.context_of(log, 0), 1e-3),
                         BlockStore(tmp_path, 1), log=lambda line: None)
  backbone, graph = trainer.model.backbone, trainer.model.graph
  for variable in backbone.trainable_variables:
    variable.assign(np.random.default_rng(1).normal(size=variable.shape) * .5)
  drawn = []
  partners = backbone.partners

  def recorded(*arguments):
    drawn.append(partners(*arguments))
    return drawn[0]

  backbone.partners = recorded
  seeds = Seeds(tf.constant([3, 4]))
  view = graph.whole() if propagation == 'whole' else graph.sampled(seeds)
  users, items = context.users[:24], context.items[:24]
  found = trainer.step.losses(view, tf.constant(users), tf.constant(items), seeds)
  finals = backbone.representer(graph)()
  tables = backbone.user_table, backbone.item_table
  total = 0.
  for nodes, (partner, present), *layers in zip((users, items), drawn[0], finals, tables):
    assert (np.asarray(partner) != nodes)[np.asarray(present) > 0].all()
    for table in layers:
      gap = np.asarray(table)[nodes] - np.asarray(table)[np.asarray(partner)]
      total += (np.asarray(present)[:, None] * gap ** 2).sum()
  assert float(found['proximity']) == pytest.approx(.25 * total / 24, rel=1e-4)
