"""What is promised about backbones and teachers as Keras models, beyond the behaviour suites."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.distillation.base import Teacher
from graphsane_tf.errors import UserError
from graphsane_tf.testing.backbones import small

PAIRS = np.array([5, 2, 0]), np.array([4, 1, 1])
NAMES = ('mgccf', 'lightgcn', 'pinsage')


def test_a_model_without_a_graph_says_so():
  backbone, _ = small('lightgcn')
  with pytest.raises(UserError, match=r'call model\.connect\(graph\) first'):
    backbone(PAIRS)


@pytest.mark.parametrize('name', NAMES)
def test_weights_have_the_names_that_checkpoints_know(name, tmp_path):
  """backbone/NAME since version 0.1; nothing else may enter, or a run could no longer be resumed."""
  backbone, graph = small(name)
  tf.train.Checkpoint(backbone=backbone.connect(graph)).write(str(tmp_path / 'now'))
  found = {key.split('/.ATTRIBUTES')[0] for key in tf.train.load_checkpoint(
      str(tmp_path / 'now')).get_variable_to_shape_map() if not key.startswith('_')}
  assert found == {f'backbone/{key}' for key in backbone.named_variables()}
  assert list(backbone.named_variables())[:2] == ['user_table', 'item_table']
  # As it was written before weights were Keras's own: plain variables by attribute.
  old = tf.train.Checkpoint(backbone=tf.Module())
  for key, value in backbone.named_variables().items():
    setattr(old.backbone, key, tf.Variable(value + 1.))
  old.write(str(tmp_path / 'old'))
  before = [value.numpy() for value in backbone.trainable_variables]
  tf.train.Checkpoint(backbone=backbone).read(str(tmp_path / 'old')).assert_existing_objects_matched()
  for value, start in zip(backbone.trainable_variables, before):
    np.testing.assert_array_equal(value, start + 1.)


def test_dropout_is_on_in_training_only():
  backbone, graph = small('mgccf', dropout=.5)
  backbone.connect(graph)
  assert np.any(backbone(PAIRS, training=True).numpy() != backbone(PAIRS).numpy())


def test_predict_gives_the_scores_of_call():
  backbone, graph = small('mgccf')
  backbone.connect(graph)
  pairs = tf.data.Dataset.from_tensor_slices((PAIRS,)).batch(2)
  np.testing.assert_allclose(backbone.predict(pairs, verbose=0), backbone(PAIRS), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('name', NAMES)
def test_a_saved_model_scores_pairs_and_can_be_trained_further(name, tmp_path):
  backbone, graph = small(name)
  backbone.connect(graph)
  expected = backbone(PAIRS).numpy()
  backbone.score = tf.function(lambda users, items: backbone((users, items)), autograph=False, input_signature=[
      tf.TensorSpec([None], tf.int32, 'users'), tf.TensorSpec([None], tf.int32, 'items')])
  tf.saved_model.save(backbone, str(tmp_path / 'model'), signatures=backbone.score)
  loaded = tf.saved_model.load(str(tmp_path / 'model'))
  users, items = (tf.constant(part, tf.int32) for part in PAIRS)
  np.testing.assert_allclose(loaded.score(users, items), expected, rtol=1e-5, atol=1e-6)
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(loaded.score(users, items))
  with tf.GradientTape() as own_tape:
    own = tf.reduce_sum(backbone((users, items)))
  found = {v.name: g for v, g in zip(loaded.trainable_variables, tape.gradient(loss, loaded.trainable_variables))}
  for variable, gradient in zip(backbone.trainable_variables, own_tape.gradient(own, backbone.trainable_variables)):
    np.testing.assert_allclose(found[variable.name], gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('name', NAMES)
def test_a_teacher_is_a_frozen_copy(name, tmp_path):
  backbone, graph = small(name)
  teacher = Teacher(backbone, graph)
  scores = teacher(PAIRS).numpy()
  np.testing.assert_array_equal(scores, backbone.connect(graph)(PAIRS))
  assert not teacher.trainable_variables
  assert len(teacher.non_trainable_variables) == len(backbone.trainable_variables) > 0
  user_rows, item_rows = (teacher.layers_of(kind)[-1].numpy() for kind in ('user', 'item'))
  np.testing.assert_allclose(scores, (user_rows[PAIRS[0]] * item_rows[PAIRS[1]]).sum(axis=1), rtol=1e-4, atol=1e-5)
  for weight in backbone.weights:
    weight.assign_add(tf.ones_like(weight))
  np.testing.assert_array_equal(teacher(PAIRS), scores)
  with tf.GradientTape() as tape:
    total = tf.reduce_sum(teacher(PAIRS)) + tf.reduce_sum(teacher.embedding('user'))
  assert all(g is None for g in tape.gradient(total, teacher.variables))
  teacher.save_weights(str(tmp_path / 'teacher'))
  other = Teacher(backbone, graph)
  other.load_weights(str(tmp_path / 'teacher'))
  np.testing.assert_array_equal(other(PAIRS), scores)
  teacher.summary(print_fn=lambda line: None)
