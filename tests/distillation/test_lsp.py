"""LSP_s against loops over nodes and neighbours."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.distillation.divergence import softmax_divergence
from graphsane_tf.distillation.lsp import Lsp
from tests.distillation import oracles


@pytest.mark.parametrize('teacher_first', [True, False])
def test_matches_the_loop_over_nodes(teacher_first):
  case = oracles.Case(oracles.config(**{'lsp.weight': 3., 'lsp.teacher_first': teacher_first,
                                        'lsp.temperature': .7}))
  expected = 0.
  # Old nodes of the batch: every user but 4, every item but 5; the draw of 10 takes all neighbours.
  for kind, other, nodes in (('user', 'item', [0, 1, 2, 3]), ('item', 'user', [0, 1, 3, 4])):
    values = []
    for node in nodes:
      near = oracles.neighbours(kind, node)
      p, q = (oracles.softmax(rows[other][near] @ rows[kind][node] / .7)
              for rows in (case.old_rows, case.rows))
      values.append(oracles.kl(p, q) if teacher_first else oracles.kl(q, p))
    expected += np.mean(values)
  assert case.losses(Lsp) == {'lsp': pytest.approx(3. * expected, rel=1e-5)}


def test_is_zero_where_the_student_is_its_teacher():
  assert oracles.Case(oracles.config(), shift=0.).losses(Lsp)['lsp'] == pytest.approx(0., abs=1e-6)


def test_divergence_leaves_empty_slots_and_rows_out():
  teacher = tf.constant([[1., 2., 100.], [0., 0., 0.]])
  student = tf.Variable([[2., 1., -100.], [1., 2., 3.]])
  mask = tf.constant([[1., 1., 0.], [0., 0., 0.]])
  with tf.GradientTape() as tape:
    value = softmax_divergence(teacher, student, mask)
  expected = oracles.kl(oracles.softmax([1, 2]), oracles.softmax([2, 1]))
  np.testing.assert_allclose(value, [expected, 0.], rtol=1e-5)
  gradient = tape.gradient(value, student).numpy()
  assert np.isfinite(gradient).all()
  assert gradient[0, 2] == 0. and not gradient[1].any()
