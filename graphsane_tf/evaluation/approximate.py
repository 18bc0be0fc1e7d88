"""Approximate top-k of dot products by an index of the items, for large catalogues: `ranking.top_k` otherwise."""
import importlib.util
from typing import Optional, Tuple

import numpy as np

from graphsane_tf import parallel, workers
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr
from graphsane_tf.random import host_generator

# Share of the exact lists that is found on a sample; the index looks at more and more items until it is.
RECALL = .95
_SAMPLE = 64
# Items of a list of the index that its centre is learned from.
_ITEMS_A_CENTRE = 40
_USER_CHUNK = 4096


def check(option: str = '--config.train.ranking') -> None:
  """Raises a `UserError` if the library of the index is missing, which an option of the command line asks for."""
  if importlib.util.find_spec('faiss') is None:
    raise UserError(f"{option.lstrip('-')}=approximate needs faiss: pip install 'graphsane_tf[ann]', or set "
                    f'{option}=exact.')


class Index:
  """Items by the nearest of sqrt(num_items) centres; a query looks at the items of the best few centres.

  Attributes:
    recall: share of the exact lists that it has found on a sample.
    centres: how many there are.
    probes: centres that a query looks at.
    length: of the lists that it was tuned for.
  """

  def __init__(self, scorer: ranking.DotProduct, users: np.ndarray, seen: csr.Csr, k: int):
    """Builds the index, and finds out how many centres a query must look at.

    Args:
      scorer: the vectors.
      users: [n] int, a sample of which is compared with exact lists.
      seen: as in `ranking.top_k`.
      k: length of the lists wanted.
    """
    import faiss  # pylint: disable=import-outside-toplevel

    check()
    self._scorer, self._seen, self.length = scorer, seen, k
    items = np.ascontiguousarray(scorer.item_vectors)
    centres = self.centres = max(int(scorer.num_items ** .5), 1)
    faiss.omp_set_num_threads(parallel.cores())
    self._index = faiss.IndexIVFFlat(faiss.IndexFlatIP(items.shape[1]), items.shape[1], centres,
                                     faiss.METRIC_INNER_PRODUCT)
    rng = host_generator(scorer.num_items, name='index')
    count = min(scorer.num_items, _ITEMS_A_CENTRE * centres)
    self._index.train(items[np.sort(rng.choice(scorer.num_items, count, replace=False))])
    self._index.add(items)
    sample = np.sort(rng.choice(users, min(_SAMPLE, len(users)), replace=False))
    exact, _ = ranking.top_k(scorer, sample, seen, k)
    self.probes = 1
    while True:
      self._index.nprobe = self.probes
      self.recall = recall(self._lists(sample, k)[0], exact)
      if self.recall >= RECALL or self.probes >= centres:
        break
      self.probes = min(2 * self.probes, centres)

  def _lists(self, users: np.ndarray, k: int) -> Tuple[np.ndarray, np.ndarray]:
    """ids [n, k] int32 and scores [n, k] float32, -1 and -inf beyond what is found."""
    starts, stops = self._seen.indptr[users], self._seen.indptr[users + 1]
    counts = stops - starts
    # What the user has seen may all stand before the first one that they have not.
    depth = min(k + int(counts.max(initial=0)), self._scorer.num_items)
    scores, ids = self._index.search(np.ascontiguousarray(self._scorer.user_vectors[users]), depth)
    row, item = ranking.seen_pairs(self._seen, users)
    pairs = np.arange(len(users))[:, None] * self._scorer.num_items + ids
    known = np.isin(pairs, row.astype(np.int64) * self._scorer.num_items + item) | (ids < 0)
    # The unseen ones move to the front, in their order.
    order = np.argsort(known, axis=1, kind='stable')[:, :k]
    known = np.take_along_axis(known, order, axis=1)
    ids, scores = np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)
    return np.where(known, -1, ids).astype(np.int32), np.where(known, np.float32(-np.inf), scores)

  def top_k(self, users: np.ndarray, k: Optional[int] = None) -> Tuple[np.ndarray, np.ndarray]:
    """As `ranking.top_k`, k being `length` unless given; whoever's list the index cannot fill has the exact one."""
    k = self.length if k is None else k
    ids = np.full((len(users), k), -1, np.int32)
    scores = np.full(ids.shape, -np.inf, np.float32)
    degree = self._seen.degree[users]
    # Users with as many seen items go together: the deepest list decides what a chunk costs.
    order = np.argsort(degree, kind='stable')
    for start in range(0, len(users), _USER_CHUNK):
      part = order[start:start + _USER_CHUNK]
      found = self._lists(users[part], k)
      ids[part, :found[0].shape[1]], scores[part, :found[1].shape[1]] = found
    short = np.flatnonzero((ids >= 0).sum(axis=1) < np.minimum(k, self._scorer.num_items - degree))
    if len(short):
      ids[short], scores[short] = ranking.top_k(self._scorer, users[short], self._seen, k)
    return ids, scores


def recall(found: np.ndarray, exact: np.ndarray) -> float:
  """Share of the exact lists [n, k] that is in those found [n, k]; -1 stands for none."""
  hits = sum(len(np.intersect1d(one[one >= 0], other)) for one, other in zip(found, exact))
  return hits / max(int((exact >= 0).sum()), 1)


def top_k(scorer: ranking.Scorer, users: np.ndarray, seen: csr.Csr, k: int) -> Tuple[np.ndarray, np.ndarray]:
  """`ranking.top_k` by an index built for the call; scores that are no dot products are ranked exactly."""
  users = np.asarray(users)
  # A subclass adds something to the dot products.
  if type(scorer) is not ranking.DotProduct or not len(users) or not scorer.num_items:  # pylint: disable=unidiomatic-typecheck
    return ranking.top_k(scorer, users, seen, k)
  ids, scores = workers.in_shares(lambda some: Index(scorer, users, seen, k).top_k(some), users)
  return ids, scores
