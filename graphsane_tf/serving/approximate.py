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
    length, numbers = int(k), self._model.user_number(user_id).numpy()
    known = numbers >= 0
    if not 0 < length <= LONGEST or not known.any():
      return self._exact(user_id=user_id, k=k)
    items = np.full((len(numbers), length), b'', object)
    scores = np.full(items.shape, -np.inf, np.float32)
    places, values = self.index.top_k(numbers[known], min(length, len(self._item_ids)))
    width = places.shape[1]
    items[known, :width] = np.where(places >= 0, self._item_ids[places], b'')
    scores[known, :width] = values
    if not known.all():
      strangers = self._exact(user_id=tf.boolean_mask(user_id, ~known), k=k)
      items[~known], scores[~known] = strangers['item_id'].numpy(), strangers['score'].numpy()
    return {'item_id': tf.constant(items), 'score': tf.constant(scores), 'known': tf.constant(known)}

  def _exact(self, **inputs) -> Mapping[str, tf.Tensor]:
    return self._model.signatures['serving_default'](**inputs)

  def times(self) -> Tuple[float, float]:
    """Seconds of a list by the index, and of an exact one, each for one user."""
    k = tf.constant(_TIMED_K)
    users = np.resize(self._users, _TIMED_USERS)[:, None]
    # All scores are computed for a stranger, too.
    actions = [lambda user: self.index.top_k(user, _TIMED_K), lambda user: self._exact(user_id=tf.constant(['']), k=k)]
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
