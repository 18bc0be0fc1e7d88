"""Training learns: recall on later rows, against chance and against the model before training."""
import numpy as np
import pytest

from graphsane_tf.data import drift
from graphsane_tf.runs import incremental
from graphsane_tf.training.block import SELECTION_METRIC, BlockTrainer, new_model
from graphsane_tf.training.store import BlockStore
from tests import logs

pytestmark = pytest.mark.usefixtures('short_exports')

_METHODS = {'fine-tuning': {}, 'sgct-sane': {'kd': 'sgct', 'sampler': 'sane'}}


class _Drift:
  """Blocks 0 and 1 of the small planted log."""

  def __init__(self, folder, **changes):
    config = logs.tiny_config(
        **{'model__embedding_dim': 16, 'train__batch_size': 256, 'train__base_epochs': 4,
           'train__epochs': 4, 'train__base_learning_rate': 1e-2, 'train__learning_rate': 1e-2,
           **changes})
    self.run = incremental.IncrementalRun(config, drift.generate('small'), folder,
                                          log=lambda line: None)

  def recall(self, index, user_vectors, item_vectors) -> float:
    """Recall@20 on the block's test rows, by a loop over users."""
    block, log = self.run.stream.block(index), self.run.interactions
    scores = np.asarray(user_vectors) @ np.asarray(item_vectors).T
    scores[log.user[:block.train.stop], log.item[:block.train.stop]] = -np.inf
    top = np.argsort(-scores, axis=1)[:, :20]
    held = {}
    for user, item in zip(log.user[block.test], log.item[block.test]):
      held.setdefault(user, []).append(item)
    return float(np.mean([len(set(top[user]) & set(items)) / len(items)
                          for user, items in held.items() if user < block.num_users]))

  def chance(self, index) -> float:
    """What 20 random items find, at most: those of the user with the fewest items left unseen."""
    block, log = self.run.stream.block(index), self.run.interactions
    seen = np.bincount(log.user[:block.train.stop], minlength=block.num_users)
    return 20. / (block.num_items - seen.max())

  def untrained(self, index):
    """A model with fresh weights, and its recall."""
    model = new_model(self.run.config, self.run.context(index), 1e-3)
    return model, self.recall(index, *model.backbone.representer(model.graph)())


@pytest.fixture(name='base', scope='module')
def _base(tmp_path_factory):
  """Folder of a trained base block."""
  folder = tmp_path_factory.mktemp('base') / 'run'
  _Drift(folder).run.run([0])
  return folder


@pytest.mark.parametrize('method', list(_METHODS))
def test_a_run_recommends_far_better_than_chance(base, tmp_path, method):
  job = _Drift(tmp_path / 'run', base_from=str(base), **_METHODS[method])
  blocks = job.run.run([0, 1])['blocks']
  for entry in blocks:
    model = job.run.load_model(entry['block'])
    recall = job.recall(entry['block'], *model.backbone.representer(model.graph)())
    assert recall == pytest.approx(entry['test'][SELECTION_METRIC], abs=.01)
    assert recall > 2.5 * job.chance(entry['block'])
    assert recall > 2.5 * job.untrained(entry['block'])[1]


@pytest.mark.parametrize('method', list(_METHODS))
def test_an_incremental_block_alone_learns(tmp_path, method):
  """It starts from a model that knows nothing, so what it knows in the end is its own."""
  job = _Drift(tmp_path / 'run', train__batch_size=64, train__epochs=6, train__min_epochs=6,
               **_METHODS[method])
  trainer = BlockTrainer(job.run.config, job.run.context(1), job.untrained(0)[0],
                         BlockStore(tmp_path, 1), log=lambda line: None)
  before = job.recall(1, *trainer.represent())
  losses = []
  trainer.train(lambda users, items, lists: {SELECTION_METRIC: job.recall(1, users, items)},
                lambda record: losses.append(record['losses']))
  after = job.recall(1, *trainer.represent())
  assert after > 2. * before and after > 2. * job.chance(1)
  assert losses[-1]['bpr'] < .7 * losses[0]['bpr']
