"""A model on every block's test rows, against a loop over users."""
import numpy as np
import pytest

from graphsane_tf import config as config_lib
from graphsane_tf.blocks.stream import BlockStream
from graphsane_tf.evaluation import ranking
from graphsane_tf.runs import incremental
from tests import logs


@pytest.mark.parametrize('model', [0, 1, 2])
def test_what_was_seen_is_what_was_seen_at_the_tested_block(model):
  log = logs.random_log(rows=900, users=40, items=60)
  run = incremental.IncrementalRun.__new__(incremental.IncrementalRun)
  run.config = config_lib.resolved(logs.tiny_config())
  run.interactions, run.stream = log, BlockStream(log)
  block = run.stream.block(model)
  rng = np.random.default_rng(model)
  users, items = (rng.normal(size=(n, 4)).astype(np.float32)
                  for n in (block.num_users, block.num_items))
  scorer = ranking.DotProduct(users, items)
  own = run.evaluate(run.context(model), block.test, scorer).metrics
  found = run._on_blocks(block, own, scorer)
  for index in range(run.stream.num_blocks):
    other = run.stream.block(index)
    number = min(block.num_items, other.num_items)
    recalls = []
    for user in np.unique(log.user[other.test]):
      if user < min(block.num_users, other.num_users):
        held = set(log.item[other.test][log.user[other.test] == user])
        seen = log.item[:other.train.stop][log.user[:other.train.stop] == user]
        scores = items[:number] @ users[user]
        scores[seen[seen < number]] = -np.inf
        top = [i for i in np.argsort(-scores)[:20] if np.isfinite(scores[i])]
        recalls.append(len(held & set(top)) / len(held))
    assert found['recall'][index] == pytest.approx(np.mean(recalls), abs=1e-6)
    assert 0. < found['chance'][index] < 1.
