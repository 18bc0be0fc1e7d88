"""Which worker this is, and what it says when others are missing."""
import json

import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf

from graphsane_tf import workers
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import approximate, ranking
from graphsane_tf.graph import csr
from graphsane_tf.peers import local

_TWO = {'cluster': {'worker': ['127.0.0.1:1000', '127.0.0.1:1001']}, 'task': {'type': 'worker', 'index': 1}}


def _changed(**parts):
  return json.dumps({**_TWO, **parts})


def test_tf_config_names_the_workers():
  assert workers.cluster_of({'TF_CONFIG': json.dumps(_TWO)}) == (2, 1)


@pytest.mark.parametrize('text, words', [
    ('', 'is not set'),
    ('{"cluster"', 'is not JSON'),
    ('[]', 'lacks cluster.worker'),
    (_changed(cluster={}), 'lacks cluster.worker'),
    (_changed(cluster={'worker': []}), 'no list of addresses'),
    (_changed(cluster={**_TWO['cluster'], 'ps': ['127.0.0.1:1002']}), 'names a ps'),
    (_changed(task={'type': 'chief', 'index': 0}), 'names a chief'),
    (_changed(cluster={'worker': ['127.0.0.1']}), "address '127.0.0.1' that is not HOST:PORT"),
    (_changed(cluster={'worker': ['127.0.0.1:1000'] * 2}), 'names an address twice'),
    (_changed(task={'type': 'worker', 'index': 2}), '0 to 1'),
])
def test_a_wrong_tf_config_is_one_sentence(text, words):
  with pytest.raises(UserError) as error:
    workers.cluster_of({'TF_CONFIG': text})
  assert words in str(error.value) and 'TF_CONFIG' in str(error.value)


@pytest.mark.parametrize('size', [0, 1, 2, 7, 100])
@pytest.mark.parametrize('count', [1, 2, 3])
def test_shares_are_all_of_it(size, count):
  parts = [np.arange(size)[workers.Workers(None, count, index).share(size)] for index in range(count)]
  assert np.concatenate(parts).tolist() == list(range(size))
  assert max(map(len, parts)) - min(map(len, parts)) <= 1


class _Fellow(workers.Workers):
  """One of several workers, whose gathering shows its own part."""

  def gather(self, rows):
    return rows


@pytest.mark.parametrize('rank', [ranking.top_k, approximate.top_k])
def test_each_worker_ranks_its_users(rank, monkeypatch):
  if rank is approximate.top_k:
    pytest.importorskip('faiss')
  rng = np.random.default_rng(0)
  scorer = ranking.DotProduct(*(rng.normal(size=(size, 4)).astype(np.float32) for size in (9, 30)))
  seen = csr.from_pairs(np.arange(9), np.arange(9), 9, 30)
  users = np.array([1, 2, 4, 5, 8])
  whole = rank(scorer, users, seen, 3)
  parts = []
  for index in range(2):
    monkeypatch.setattr(workers, '_current', _Fellow(None, 2, index))
    parts.append(rank(scorer, users, seen, 3))
  assert [len(ids) for ids, _ in parts] == [2, 3]
  for place in range(2):
    np.testing.assert_allclose(np.concatenate([part[place] for part in parts]), whole[place], rtol=1e-5)


def test_each_worker_solves_for_its_items(monkeypatch):
  rng = np.random.default_rng(0)
  taken = scipy.sparse.csr_matrix((rng.random((40, 12)) < .3).astype(np.float32))
  together = (taken.T @ taken).tocsr()
  whole = local.local_weights(together, 5, 10.).toarray()

  class Silent(_Fellow):
    """Others' rows are zeros."""

    def gather(self, rows):
      padded = np.zeros((12, *rows.shape[1:]), rows.dtype)
      padded[self.share(12)] = rows
      return padded

  total = np.zeros_like(whole)
  for index in range(3):
    monkeypatch.setattr(workers, '_current', Silent(None, 3, index))
    total += local.local_weights(together, 5, 10.).toarray()
  np.testing.assert_allclose(total, whole, rtol=1e-5)


def test_alone_nothing_is_shared(tmp_path):
  fellows = workers.current()
  assert fellows.is_chief and fellows.name is None
  rows = np.arange(3)
  assert fellows.gather(rows) is rows and fellows.of_chief(rows) is rows
  with fellows.in_turn(), fellows.folder(tmp_path / 'run') as folder:
    assert folder == tmp_path / 'run' and not folder.exists()


def test_a_lost_worker_is_one_sentence():
  lost = tf.errors.UnavailableError(None, None, 'Collective ops is aborted by: Error reported from /job:worker/task:0: '
                                    'The following tasks are unhealthy:\n/job:worker/replica:0/task:1\nmore')
  assert workers.sentence(lost).startswith('worker 1 has ended or cannot be reached any more: start all workers again')
  assert workers.sentence(tf.errors.AbortedError(None, None, '')).startswith('another worker has ended')
