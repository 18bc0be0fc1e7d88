"""The model itself in a SavedModel: scored, trained through the graph and refreshed where this package is not."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import config as config_lib
from graphsane_tf.configs import tiny
from graphsane_tf.data import drift
from graphsane_tf.memory import mixing
from graphsane_tf.serving import export
from graphsane_tf.training import assembly
from graphsane_tf.training.block import new_model
from graphsane_tf.training.scoring import Scoring

_PAIRS = [0, 3, 3, 11], [5, 2, 40, 7]
_RATE = 2.
_CLIENT = f"""
import json, sys
import tensorflow as tf
answers = []
for path, users, items in json.load(sys.stdin):
  model = tf.saved_model.load(path)
  weights = list(model.backbone.weights.values())
  pairs = model.user_number(tf.constant(users)), model.item_number(tf.constant(items))
  served = lambda: model.signatures['score'](user_id=tf.constant(users), item_id=tf.constant(items))['score']
  like = lambda: [item.decode() for item in model.signatures['similar_items'](
      item_id=tf.constant(items[:1]), k=tf.constant(5))['item_id'].numpy()[0]]
  before = model.backbone(*pairs), served()
  with tf.GradientTape() as tape:
    loss = -tf.reduce_mean(tf.math.log_sigmoid(model.backbone(*pairs)))
  for weight, gradient in zip(weights, tape.gradient(loss, weights)):
    weight.assign_sub({_RATE} * tf.convert_to_tensor(gradient))
  stale = served()
  model.refresh()
  values = [*before, stale, model.backbone(*pairs), served()]
  answers.append([[value.numpy().tolist() for value in values], like()])
assert not [name for name in sys.modules if 'graphsane' in name or name == 'tensorflow_recommenders']
print(json.dumps(answers))
"""


@pytest.fixture(name='log', scope='module')
def _log():
  return drift.generate('small')


def _built(log, backbone, memory):
  """A model with fresh weights, and how it ranks."""
  config = tiny.get_config()
  config.backbone, config.memory = backbone, memory
  config = config_lib.resolved(config)
  context = assembly.context_of(config, log, 1)
  scoring = Scoring(config, context)
  if memory != 'none':
    scoring.mixture = mixing.Mixture(2., 1., .5)
  model = new_model(config, context, .1)
  for weight in model.backbone.trainable_variables:
    # Far from zero, so that one step makes a difference.
    weight.assign(5. * weight)
  return model, scoring, context


def _scores(model, scoring):
  """What the model and its mixture give the pairs."""
  scorer = scoring(*(np.asarray(part) for part in model.backbone.representer(model.graph)()))
  users, items = _PAIRS
  out = np.empty((len(users), scorer.num_items), np.float32)
  scorer.tile(0, scorer.num_items)(np.array(users), out)
  return model.backbone(tuple(map(tf.constant, _PAIRS))).numpy(), out[np.arange(len(users)), items], scorer


def _cosines_best(scorer, item, k):
  """Numbers of the items that are most alike."""
  vectors = scorer.item_vectors / np.linalg.norm(scorer.item_vectors, axis=1, keepdims=True)
  cosines = vectors @ vectors[item]
  cosines[item] = -np.inf
  return np.argsort(-cosines, kind='stable')[:k]


def test_a_fresh_process_trains_through_the_graph(log, tmp_path):
  cases = [_built(log, 'mgccf', 'none'), _built(log, 'lightgcn', 'ease')]
  wanted, asked = [], []
  ids = [log.user_ids[user] for user in _PAIRS[0]], [log.item_ids[item] for item in _PAIRS[1]]
  for place, (model, scoring, context) in enumerate(cases):
    path = tmp_path / str(place)
    *before, scorer = _scores(model, scoring)
    export.export_scorer(path, scorer, log.user_ids[:context.num_users], log.item_ids[:context.num_items],
                         context.history, context.popularity, model)
    weights = model.backbone.trainable_variables
    with tf.GradientTape() as tape:
      loss = -tf.reduce_mean(tf.math.log_sigmoid(model.backbone(tuple(map(tf.constant, _PAIRS)))))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
      weight.assign_sub(_RATE * tf.convert_to_tensor(gradient))
    *after, scorer = _scores(model, scoring)
    wanted.append([*before, before[1], *after])
    assert np.abs(after[0] - before[0]).min() > 1e-3 and np.abs(after[1] - before[1]).min() > 1e-3
    asked.append((str(path), *ids))
    wanted[-1] = wanted[-1], [log.item_ids[item] for item in _cosines_best(scorer, _PAIRS[1][0], 5)]
  clean = {name: value for name, value in os.environ.items() if name not in ('TF_USE_LEGACY_KERAS', 'PYTHONPATH')}
  done = subprocess.run([sys.executable, '-I', '-c', _CLIENT], cwd=tmp_path, env=clean, capture_output=True, text=True,
                        check=False, input=json.dumps(asked))
  assert done.returncode == 0, done.stderr
  for (values, alike), (told, told_alike) in zip(wanted, json.loads(done.stdout.splitlines()[-1])):
    for value, one in zip(values, told):
      np.testing.assert_allclose(one, value, rtol=1e-4, atol=1e-5)
    assert told_alike == alike


def test_a_peer_has_none(tmp_path, log):
  model, scoring, context = _built(log, 'lightgcn', 'none')
  *_, scorer = _scores(model, scoring)
  export.export_scorer(tmp_path / 'm', scorer, log.user_ids[:context.num_users], log.item_ids[:context.num_items],
                       context.history, context.popularity)
  loaded = tf.saved_model.load(str(tmp_path / 'm'))
  assert getattr(loaded, 'backbone', None) is None and not hasattr(loaded, 'refresh')
