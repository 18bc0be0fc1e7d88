"""On the planted log, the shift and the prior point at the users who moved and what they left."""
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.config import resolved
from graphsane_tf.data import drift
from graphsane_tf.negatives.sane import Sane
from tests import logs


@pytest.mark.parametrize('block', [1, 2, 3])
def test_movers_have_the_largest_shift_and_their_lost_category_the_largest_alpha(block):
  log, truth = drift.generate('default'), drift.truth('default')
  context = logs.context_of(log, block, dim=4)
  config = resolved(logs.tiny_config(sampler='sane', clusters='categories'))
  sampler = Sane(config, context, (0, block))
  sampler.refresh(tf.random.stateless_normal([context.num_users, 4], [0, 1]),
                  tf.random.stateless_normal([context.num_items, 4], [0, 2]), 0)
  number = len(sampler.users)
  explained = sampler.explain(0, number)
  users = sampler.users.numpy()
  size = np.abs(explained['shift']).sum(1)
  moved = truth.move_time[users] == block
  stayed = ~truth.mover[users]
  # The chance that a mover's shift is larger than a stayer's.
  larger = np.mean(size[moved][:, None] > size[stayed][None, :])
  assert larger > .95
  top = np.argsort(-size)[:moved.sum() // 2]
  assert moved[top].mean() > .9
  lost = explained['alpha'][moved].argmax(1) == truth.lost_category[users][moved]
  # By chance it would be one in ten; users with few rows in the block before can miss.
  assert lost.mean() > .8
