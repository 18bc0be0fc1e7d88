"""Forgetting and transfer on a matrix done by hand, and the random ranking by enumeration."""
import itertools

import numpy as np
import pytest

from graphsane_tf.evaluation import forgetting
from graphsane_tf.graph import csr


def test_figures_of_a_matrix_done_by_hand():
  recall = np.array([[.30, .20, .10],
                     [.50, .25, .15],
                     [.40, .45, .35]])
  chance = np.full((3, 3), .05)
  found = forgetting.summarise(recall, chance)
  # Block 0: best .50, now .40. Block 1: best .25 before the last, now .45.
  assert found['average_forgetting'] == pytest.approx(((.50 - .40) + (.25 - .45)) / 2)
  assert found['backward_transfer'] == pytest.approx(((.40 - .30) + (.45 - .25)) / 2)
  assert found['forward_transfer'] == pytest.approx(((.20 - .05) + (.15 - .05)) / 2)


def test_unfinished_and_missing_blocks_are_left_out():
  entries = {0: {'recall': [.3, .2, None], 'chance': [.1, .1, .1]},
             1: {'recall': [.2, .4, .3], 'chance': [.1, .1, .1]}}
  found = forgetting.report(entries, 3, 'recall@20')
  assert found['matrix'] == [[.3, .2, None], [.2, .4, .3], [None] * 3]
  assert found['average_forgetting'] == pytest.approx(.1)
  assert found['backward_transfer'] == pytest.approx(-.1)
  assert found['forward_transfer'] == pytest.approx(.1)
  only = forgetting.report({0: entries[0]}, 3, 'recall@20')
  assert only['average_forgetting'] is only['backward_transfer'] is only['forward_transfer'] is None
  assert forgetting.report({}, 2, 'recall@20')['forward_transfer'] is None


def test_random_recall_is_the_mean_over_all_orders():
  # Four items are ranked. User 0 has seen item 1 (and item 4, not ranked) and takes 0, 3 and 4; user
  # 1 has seen nothing and takes 2; user 2 is not known.
  seen = csr.from_pairs(np.array([0, 0]), np.array([1, 4]), 3, 5)
  user, item = np.array([0, 0, 0, 1, 2]), np.array([0, 3, 4, 2, 0])
  expected = []
  for unseen, held in (([0, 2, 3], {0, 3, 4}), ([0, 1, 2, 3], {2})):
    expected.append(np.mean([len(held & set(order[:2])) / len(held)
                             for order in itertools.permutations(unseen)]))
  found = forgetting.random_recall(seen, user, item, 2, 4, 2)
  assert found == pytest.approx(np.mean(expected))
  assert forgetting.random_recall(seen, user[-1:], item[-1:], 2, 4, 2) == 0.
