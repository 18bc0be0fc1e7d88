"""Lists of a large catalogue by an index of its items, with the SavedModel beside it for whatever is not in that."""
import time
from typing import Any, Callable, Mapping, Optional, Tuple

import numpy as np
import tensorflow as tf

from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import approximate, ranking
from graphsane_tf.graph import csr

KINDS = ('exact', 'approximate')
# The longest list that the index is tuned for; longer ones are exact.
LONGEST = 100
_TIMED_USERS = 16
_TIMED_K = 10


def check(kind: str) -> None:
  """Raises a `UserError` if it is no kind of ranking, or its library is missing."""
  if kind not in KINDS:
    raise UserError(f'--ranking={kind}: choose from {", ".join(KINDS)}.')
  if kind == 'approximate':
    approximate.check('--ranking')


class Indexed:
  """The signature `serving_default` of a loaded SavedModel, by an index.

  Exact are the lists of users who are unknown, of more than `LONGEST` items, and those that the index cannot fill.

  Attributes:
    index: of the items.
  """

  def __init__(self, model: Any):
    """Builds the index of the vectors that the model serves."""
    self._model = model
    self._item_ids = model._item_ids.numpy()  # pylint: disable=protected-access
    table = model._seen  # pylint: disable=protected-access
    # The table's last row is that of unknown ids.
    seen = csr.Csr(table._indptr.numpy()[:-1], table._columns.numpy(), len(self._item_ids))  # pylint: disable=protected-access
    scorer = ranking.DotProduct(model.user_vectors.numpy(), model.item_vectors.numpy())
    self._users = np.arange(scorer.num_users)
    self.index = approximate.Index(scorer, self._users, seen, min(LONGEST, scorer.num_items))

  def __call__(self, user_id: tf.Tensor, k: tf.Tensor) -> Mapping[str, tf.Tensor]:
    """What the signature returns: `item_id` [batch, k], `score` [batch, k] and `known` [batch]."""
    numbers = self._model.user_number(user_id).numpy()
    known = numbers >= 0
    if not 0 < int(k) <= LONGEST or not known.any():
      return self._exact(user_id=user_id, k=k)
    if known.all():
      return self._listed(numbers, int(k))
    parts = self._listed(numbers[known], int(k)), self._exact(user_id=tf.boolean_mask(user_id, ~known), k=k)
    # Where each row of the batch is in the two, one below the other.
    place = np.empty(len(numbers), np.int64)
    place[np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])] = np.arange(len(numbers))
    return {name: tf.gather(tf.concat([part[name] for part in parts], axis=0), place) for name in parts[0]}

  def _listed(self, numbers: np.ndarray, k: int) -> Mapping[str, tf.Tensor]:
    """The answer for users who are known, by their numbers [n]."""
    items = np.full((len(numbers), k), b'', object)
    scores = np.full(items.shape, -np.inf, np.float32)
    places, values = self.index.top_k(numbers, min(k, len(self._item_ids)))
    width = places.shape[1]
    items[:, :width], scores[:, :width] = np.where(places >= 0, self._item_ids[places], b''), values
    return {'item_id': tf.constant(items), 'score': tf.constant(scores), 'known': tf.ones(len(numbers), tf.bool)}

  def _exact(self, **inputs) -> Mapping[str, tf.Tensor]:
    return self._model.signatures['serving_default'](**inputs)

  def times(self) -> Tuple[float, float]:
    """Seconds of a list by the index, and of an exact one, each for one user."""
    k, nobody = tf.constant(_TIMED_K), tf.constant([''])
    users = np.resize(self._users, _TIMED_USERS)[:, None]

    def by_index(user):
      self._model.user_number(nobody)
      self._listed(user, _TIMED_K)

    # All scores are computed for a stranger, too.
    actions = [by_index, lambda user: self._exact(user_id=nobody, k=k)]
    spent = []
    for ask in actions:
      ask(users[0])
      began = time.perf_counter()
      for user in users:
        ask(user)
      spent.append((time.perf_counter() - began) / len(users))
    return spent[0], spent[1]


def indexed(model: Any, say: Callable[[str], None]) -> Optional[Indexed]:
  """The index of a loaded SavedModel; None if it has a memory, whose scores are no dot products."""
  if getattr(model, '_memory', None) is not None:
    say('this version ranks with a memory, for which there is no index: it is ranked exactly.')
    return None
  began = time.perf_counter()
  made = Indexed(model)
  built = time.perf_counter() - began
  ours, exact = made.times()
  say(f'the index, built in {built:.1f} s, has {made.index.recall:.3f} of the exact lists of {made.index.length}, with '
      f'{made.index.probes} of {made.index.centres} centres; a list of {_TIMED_K} takes {1e3 * ours:.2g} ms by it and '
      f'{1e3 * exact:.2g} ms exactly' + ('.' if ours < exact else ': --ranking=exact is faster here.'))
  return made
