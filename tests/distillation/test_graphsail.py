"""GraphSAIL's three terms against loops over nodes."""
import numpy as np
import pytest

from graphsane_tf.distillation import graphsail
from graphsane_tf.distillation.graphsail import GraphSail
from tests.distillation import oracles

_KINDS = (('user', 'item'), ('item', 'user'))


def _config(**changes):
  return oracles.config(**{
      'graphsail.self_weight': 5., 'graphsail.local_weight': 3., 'graphsail.global_weight': 2.,
      'graphsail.num_clusters': 2, 'graphsail.temperature': .8,
      **{f'graphsail.{name}': value for name, value in changes.items()}})


def test_self_term_gives_each_node_its_own_coefficient():
  case = oracles.Case(_config())
  batch = case.batch()
  expected = 0.
  for kind, ends, nodes in (
      ('user', 0, batch.users.numpy()),
      ('item', 1, np.concatenate([batch.positives.numpy(), batch.negatives.numpy().ravel()]))):
    number = len(case.old_rows[kind])
    before = np.array([sum(e[ends] == n for e in oracles.OLD) for n in range(number)])
    now = before + [sum(e[ends] == n for e in oracles.NEW) for n in range(number)]
    coefficient = before / now
    coefficient = coefficient / np.sqrt((coefficient ** 2).sum())
    for node in nodes:
      if node < number:
        gap = case.rows[kind][node] - case.old_rows[kind][node]
        expected += coefficient[node] * (gap ** 2).sum()
  expected *= 5. / len(oracles.NEW)
  assert case.losses(GraphSail)['graphsail_self'] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize('square', ['inside', 'outside'])
def test_local_term_squares_inside_or_outside_the_mean_over_old_neighbourhoods(square):
  case = oracles.Case(_config(square=square))
  expected = 0.
  for kind, other in _KINDS:
    gaps = []
    for node in range(len(case.old_rows[kind])):
      near = oracles.neighbours(kind, node)
      before, now = (rows[kind][node] @ rows[other][near].mean(axis=0)
                     for rows in (case.old_rows, case.rows))
      gaps.append(before - now)
    expected += np.mean(np.square(gaps)) if square == 'inside' else np.mean(gaps) ** 2
  assert case.losses(GraphSail)['graphsail_local'] == pytest.approx(3. * expected, rel=1e-4)


@pytest.mark.parametrize('teacher_first', [True, False])
def test_global_term_is_four_divergences_over_moving_anchors(teacher_first):
  case = oracles.Case(_config(teacher_first=teacher_first))
  distiller = GraphSail(case.config, case.context, case.teacher, (0, 1))
  cluster = {kind: distiller._cluster[kind].numpy() for kind, _ in _KINDS}
  expected = 0.
  for kind, _ in _KINDS:
    for other, _ in _KINDS:
      values = []
      for node in range(len(case.old_rows[kind])):
        shares = []
        for rows in (case.old_rows, case.rows):
          old = rows[other][:len(cluster[other])]
          centres = np.stack([old[cluster[other] == k].mean(axis=0) for k in range(2)])
          shares.append(oracles.softmax(centres @ rows[kind][node] / .8))
        p, q = shares if teacher_first else shares[::-1]
        values.append(oracles.kl(p, q))
      expected += np.mean(values)
  found = case.losses(GraphSail)['graphsail_global']
  assert found == pytest.approx(2. * expected, rel=1e-4)


def test_clusters_are_those_of_kmeans_on_the_teacher_and_fixed():
  case = oracles.Case(_config())
  first, again = (GraphSail(case.config, case.context, case.teacher, (0, 1)) for _ in range(2))
  for kind, _ in _KINDS:
    assert set(first._cluster[kind].numpy()) == {0, 1}
    np.testing.assert_array_equal(first._cluster[kind], again._cluster[kind])


def test_every_term_is_zero_where_the_student_is_its_teacher():
  for value in oracles.Case(_config(), shift=0.).losses(GraphSail).values():
    assert value == pytest.approx(0., abs=1e-6)


def test_a_node_without_new_interactions_is_held_most():
  coefficient = graphsail.self_coefficients(np.array([4., 4., 1.]), np.array([4., 8., 10.]))
  assert coefficient[0] > coefficient[1] > coefficient[2] > 0.
  assert np.linalg.norm(coefficient) == pytest.approx(1.)
