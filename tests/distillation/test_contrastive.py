"""SGCT and LWC-KD against loops over anchors."""
import dataclasses
import types

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.distillation import personal
from graphsane_tf.distillation.contrastive import Sgct, contrastive_loss, random_places
from graphsane_tf.distillation.lwckd import LwcKd
from graphsane_tf.graph import csr
from graphsane_tf.random import Seeds
from tests.distillation import oracles


def test_relations_between_nodes_of_a_kind_have_their_own_numbers_of_draws():
  config = oracles.config(**{'lwckd.num_positives': 2, 'lwckd.num_negatives': 3, 'lwckd.num_knn_positives': 4,
                             'lwckd.num_knn_negatives': 5})
  distiller = types.SimpleNamespace(options=config.lwckd)
  assert {relation: LwcKd.draws(distiller, relation) for relation in LwcKd.relations} == {
      'ui': (2, 3), 'iu': (2, 3), 'uu': (4, 5), 'ii': (4, 5)}


def _anchor_loss(anchor, positives, negatives, temperature):
  scores = np.exp(np.concatenate([positives, negatives]) @ anchor / temperature)
  return -np.log(scores[:len(positives)] / scores.sum()).mean()


def test_denominator_is_the_anchors_own_with_positives_and_empty_slots_left_out():
  rng = np.random.default_rng(0)
  anchors, positives, negatives = (rng.normal(size=shape).astype(np.float32) for shape in (
      (3, 4), (3, 2, 4), (3, 5, 4)))
  positive_mask = np.array([[1, 1], [1, 0], [0, 0]], np.float32)
  negative_mask = np.array([[1] * 5, [1, 1, 0, 1, 0], [1] * 5], np.float32)
  near, far = (np.einsum('nd,nkd->nk', anchors, rows) for rows in (positives, negatives))
  each = [_anchor_loss(anchors[n], positives[n][positive_mask[n] > 0],
                       negatives[n][negative_mask[n] > 0], .5) for n in range(2)]
  found = contrastive_loss(near, positive_mask, far, negative_mask, .5)
  assert float(found) == pytest.approx(np.mean(each), rel=1e-5)
  weight = tf.constant([3., 1., 9.])
  found = contrastive_loss(near, positive_mask, far, negative_mask, .5, weight)
  assert float(found) == pytest.approx((3 * each[0] + each[1]) / 4, rel=1e-5)


def _expected(case, relations, layer, draws, temperature):
  """The loop: anchors of the batch, ids drawn by the distiller, rows of the models themselves."""
  kinds = {'u': 'user', 'i': 'item'}
  batch = case.batch()
  teacher = case.old_backbone.layers_of_all(case.teacher.graph)
  total = 0.
  for relation in relations:
    kind, other = (kinds[end] for end in relation)
    (positives, positive_mask), (negatives, negative_mask) = (
        [part.numpy() for part in pair] for pair in draws[relation])
    nodes = getattr(batch, f'distinct_{kind}s').numpy()
    nodes = nodes[nodes < len(case.old_rows[kind])]
    student = getattr(case.student.layers_of_all(case.graph), kind)[layer].numpy()
    rows = getattr(teacher, other)[layer].numpy()
    values = [
        _anchor_loss(student[node], rows[positives[n][positive_mask[n] > 0]],
                     rows[negatives[n][negative_mask[n] > 0]], temperature)
        for n, node in enumerate(nodes) if positive_mask[n].any()]
    total += np.mean(values)
  return total


def _draws(distiller, batch):
  seeds = batch.seeds.child('distiller')
  return {name: distiller._draw(name, batch, seeds) for name in distiller.relations}


def test_sgct_matches_the_loop_over_old_anchors():
  case = oracles.Case(oracles.config(**{'sgct.weight': 2., 'sgct.temperature': .6}), scale=.5)
  distiller = Sgct(case.config, case.context, case.teacher, (0, 1))
  expected = _expected(case, ('ui', 'iu'), 0, _draws(distiller, case.batch()), .6)
  assert case.losses(Sgct) == {'sgct': pytest.approx(2. * expected, rel=1e-5)}


def test_lwckd_matches_the_loop_over_layers_relations_and_anchors():
  case = oracles.Case(oracles.config(**{
      'lwckd.layer0_weight': 3., 'lwckd.layer1_weight': 2., 'lwckd.final_weight': .5}), scale=.5)
  distiller = LwcKd(case.config, case.context, case.teacher, (0, 1))
  draws = _draws(distiller, case.batch())
  found = case.losses(LwcKd)
  for name, layer, weight in (
      ('lwckd_layer0', 0, 3.), ('lwckd_layer1', 1, 2.), ('lwckd_final', -1, .5)):
    expected = _expected(case, ('ui', 'iu', 'uu', 'ii'), layer, draws, .5)
    assert found[name] == pytest.approx(weight * expected, rel=1e-4)


def test_anchors_are_a_few_of_the_old_nodes_the_same_for_every_layer():
  case = oracles.Case(oracles.config(**{'sgct.num_anchors': 2}), scale=.5)
  distiller = Sgct(case.config, case.context, case.teacher, (0, 1))
  batch = case.batch()
  for kind in ('user', 'item'):
    everyone = batch.old(kind, 0, case.teacher)[0].numpy()
    nodes, rows = distiller._anchors(kind, 0, batch)
    assert len(nodes) == 2 < len(everyone) and set(nodes.numpy()) < set(everyone)
    np.testing.assert_allclose(rows, case.rows[kind][nodes.numpy()])
    np.testing.assert_array_equal(distiller._anchors(kind, 1, batch)[0], nodes)
  everyone = oracles.Case(oracles.config(**{'sgct.num_anchors': 99}), scale=.5).losses(Sgct)
  assert everyone == oracles.Case(oracles.config(), scale=.5).losses(Sgct)


def test_every_old_node_of_a_batch_is_equally_likely_an_anchor():
  """Also one whose pairs are most of the batch, which stands among the first distinct nodes nearly always."""
  case = oracles.Case(oracles.config(**{'sgct.num_anchors': 1}), scale=.5)
  distiller = Sgct(case.config, case.context, case.teacher, (0, 1))
  batch = case.batch()
  old = batch.old('user', 0, case.teacher)[0].numpy()

  @tf.function(autograph=False)
  def anchor(seed):
    return distiller._anchors('user', 0, dataclasses.replace(batch, seeds=Seeds(seed)))[0]

  draws = 1_200
  drawn = [anchor(tf.constant([5, number])).numpy()[0] for number in range(draws)]
  counts = np.bincount(drawn, minlength=old.max() + 1)
  share = 1 / len(old)
  assert np.all(np.abs(counts[old] - draws * share) < 5 * np.sqrt(draws * share * (1 - share))), counts


def test_random_places_are_distinct_and_ascending():
  places = [random_places(tf.constant(10), 4, tf.constant([1, number])).numpy() for number in range(200)]
  assert all(len(set(row)) == 4 and list(row) == sorted(row) for row in places)
  assert set(np.concatenate(places)) == set(range(10))
  np.testing.assert_array_equal(random_places(tf.constant(3), 4, tf.constant([0, 0])), [0, 1, 2])
  assert len(random_places(tf.constant(0), 4, tf.constant([0, 0]))) == 0


def test_positives_are_the_teachers_neighbours_and_negatives_are_not():
  case = oracles.Case(oracles.config())
  distiller = LwcKd(case.config, case.context, case.teacher, (0, 1))
  batch = case.batch()
  for relation, ((positives, present), (negatives, valid)) in _draws(distiller, batch).items():
    kind = 'user' if relation[0] == 'u' else 'item'
    nodes = batch.old(kind, 0, case.teacher)[0].numpy()
    table = case.teacher.relation(relation).table
    for n, node in enumerate(nodes):
      near = set(table.indices[table.indptr[node]:table.indptr[node + 1]].tolist())
      assert set(positives[n].numpy()[present[n].numpy() > 0]) <= near
      others = set(negatives[n].numpy()[valid[n].numpy() > 0])
      assert not others & near
      if relation in ('uu', 'ii'):
        assert node not in others


def test_nearest_neighbours_are_built_for_a_backbone_without_them():
  case = oracles.Case(oracles.config())
  assert 'uu' not in case.teacher.graph.relations
  table = case.teacher.relation('uu').table
  # Users 0 and 1 share items 0 and 2, user 2 shares item 1 with 0 and item 3 with 3.
  assert 1 in table.indices[table.indptr[0]:table.indptr[1]]
  assert case.teacher.relation('uu') is case.teacher.relation('uu')


def test_teacher_layers_are_its_true_outputs_even_if_first_asked_for_in_a_function():
  case = oracles.Case(oracles.config())
  tf.function(lambda: case.teacher.layers_of('user')[1] + case.teacher.embedding('user'))()
  expected = case.old_backbone.layers_of_all(case.teacher.graph)
  for kind in ('user', 'item'):
    for found, layer in zip(case.teacher.layers_of(kind), getattr(expected, kind)):
      assert found.numpy() is not None
      np.testing.assert_allclose(found, layer)


def test_interest_shift_is_half_the_distance_of_the_shares():
  before = csr.from_pairs(np.array([0, 0, 1, 2]), np.array([0, 1, 2, 0]), 4, 4)
  now = csr.from_pairs(np.array([0, 1, 1, 3]), np.array([1, 2, 3, 0]), 4, 4)
  shift = personal.interest_shift(before, now, np.array([0, 0, 1, -1]))
  # User 0 stays in cluster 0, user 1 in 1 (item 3 has none), users 2 and 3 have one side only.
  np.testing.assert_allclose(shift, 0.)
  shift = personal.interest_shift(before, now, np.array([0, 1, 1, 0]))
  np.testing.assert_allclose(shift, [.5, .5, 0., 0.])


def test_personal_strength_weighs_users_by_their_shift():
  options = oracles.config(**{'personal.strength': 4., 'personal.num_clusters': 3})
  case = oracles.Case(options, scale=.5)
  weight = personal.user_weights(options.personal, case.context, case.teacher, (0, 1))
  assert weight.mean() == pytest.approx(1.) and len(set(weight.tolist())) > 1
  plain = oracles.Case(oracles.config(), scale=.5).losses(Sgct)['sgct']
  assert case.losses(Sgct)['sgct'] != pytest.approx(plain, rel=1e-6)
