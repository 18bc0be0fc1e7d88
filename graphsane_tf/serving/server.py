"""What a SavedModel is made of: the model's variables, tables, and functions of raw ids."""
from typing import Callable, Optional

import numpy as np
import tensorflow as tf
import tensorflow_recommenders as tfrs

from graphsane_tf.serving import selection
from graphsane_tf.serving.backbone import Trainable
from graphsane_tf.serving.tables import Memory, Table, row_numbers

_IDS = tf.TensorSpec([None], tf.string)
_LISTS = tf.TensorSpec([None, None], tf.string)
_K = tf.TensorSpec([], tf.int32, 'k')


_ROWS = tf.TensorSpec([None, None], tf.float32)
_FLOAT, _INT32, _INT64, _BOOL = (tf.TensorSpec([None], kind) for kind in (tf.float32, tf.int32, tf.int64, tf.bool))
# With a memory, so many users are answered in two slices side by side.
_SIDE_BY_SIDE = 16


def _named(spec: tf.TensorSpec, name: str) -> tf.TensorSpec:
  return tf.TensorSpec(spec.shape, spec.dtype, name)


def _traced(*signature: tf.TensorSpec) -> Callable:
  """Nothing here needs AutoGraph, which takes longer than the tracing."""
  return tf.function(input_signature=signature, autograph=False)


class _Exact(tfrs.layers.factorized_top_k.BruteForce):
  """TensorFlow Recommenders' exact retrieval on variables of ours: what fine-tuning changes is what is served."""

  def index(self, candidates, identifiers=None):
    self._candidates, self._identifiers = candidates, identifiers
    return self

  def call(self, queries, k=None, left_out=None):
    """Scores [n, k] and identifiers [n, k], without the places `left_out` of `selection.without`."""
    scores = selection.without(self._compute_score(queries, self._candidates), left_out)
    values, places = selection.best(scores, k)
    return values, tf.gather(self._identifiers, places)


class Server(tf.Module):
  """Variables, tables and functions. It holds no Keras object, so it loads in plain TensorFlow.

  Attributes:
    user_vectors: [num_users, d], item_vectors: [num_items, d], the vectors that are served, as variables.
    backbone: what they were made by, with its weights and graph; None if they are no backbone's.
    refresh: makes these vectors of the backbone's weights anew; only there with a backbone.
  """

  def __init__(self, user_vectors, item_vectors, user_ids, item_ids, seen, popularity, fold_in,
               memory: Optional[Memory], slice_users: int, backbone: Optional[Trainable] = None):
    """Takes what `export.export_block` has checked.

    Args:
      user_vectors: [num_users, d] float32.
      item_vectors: [num_items, d] float32.
      user_ids: [num_users] string tensor.
      item_ids: [num_items] string tensor.
      seen: [num_users, num_items] scipy CSR matrix, items to leave out.
      popularity: [num_items] counts.
      fold_in: see `export.fold_in`.
      memory: adds to the scores of the vectors, or None.
      slice_users: how many are answered at a time.
      backbone: what the vectors were made by, or None.
    """
    super().__init__()
    self.user_vectors = tf.Variable(user_vectors, name='user_vectors')
    self.item_vectors = tf.Variable(item_vectors, name='item_vectors')
    self._num_items = len(item_vectors)
    self._slice_users = slice_users
    self._item_numbers = tf.Variable(np.arange(self._num_items, dtype=np.int32), trainable=False)
    layer = _Exact().index(self.item_vectors, self._item_numbers)
    self._retrieve = lambda queries, k, left_out: layer(queries, k=k, left_out=left_out)
    self._users, self._items = (_number_table(ids) for ids in (user_ids, item_ids))
    self._item_ids = tf.Variable(item_ids, trainable=False)
    self._seen = Table(seen)
    self._inverse_norms = tf.Variable(_inverse_norms(item_vectors), trainable=False)
    self._fold_in = [tf.Variable(part.astype(np.float32), trainable=False) for part in fold_in]
    self._memory = memory
    order = np.argsort(-popularity, kind='stable')
    place = np.empty(self._num_items, np.float32)
    place[order] = np.arange(self._num_items)
    self._popular = tf.Variable(order.astype(np.int32), trainable=False)
    # Minus the place in that order: counts whose logarithms are equal in float32 keep their order.
    self._popular_rank = tf.Variable(-place, trainable=False)
    self._popular_score = tf.Variable(np.log1p(popularity).astype(np.float32), trainable=False)
    self.backbone = backbone
    if backbone is not None:
      self.refresh = tf.function(lambda: self._take(*backbone.served()), input_signature=[], autograph=False)

  def _take(self, user_vectors, item_vectors) -> None:
    """Serves other vectors [num_users, d] and [num_items, d] from now on."""
    self.user_vectors.assign(user_vectors)
    self.item_vectors.assign(item_vectors)
    self._inverse_norms.assign(_inverse_norms(item_vectors))

  # Numbers of raw ids, and the differentiable score of pairs of numbers: what a training step needs.

  @_traced(_named(_IDS, 'user_id'))
  def user_number(self, user_id):
    """[n] int64, -1 if unknown."""
    return self._users.lookup(user_id)

  @_traced(_named(_IDS, 'item_id'))
  def item_number(self, item_id):
    """[n] int64, -1 if unknown."""
    return self._items.lookup(item_id)

  @_traced(_named(_INT64, 'user_number'), _named(_INT64, 'item_number'))
  def score_pairs(self, user_number, item_number):
    """[n] float32 scores of pairs of numbers, with gradients for `user_vectors` and `item_vectors`."""
    score = tf.reduce_sum(tf.gather(self.user_vectors, user_number) * tf.gather(self.item_vectors, item_number), axis=1)
    return score + self._memory.pairs(user_number, item_number) if self._memory else score

  # Signatures.

  @_traced(_named(_IDS, 'user_id'), _K)
  def serve(self, user_id, k):
    """For user_id [batch]: item_id [batch, k] string, score [batch, k] float32 and known [batch] bool."""
    return self._answer(*self._of_users(user_id), k)

  @_traced(_named(_IDS, 'user_id'), _K, _named(_LISTS, 'exclude'), _named(_LISTS, 'allow'))
  def recommend(self, user_id, k, exclude, allow):
    """`serve` without the items of exclude, and of those in allow alone; see `_lists` for their shape."""
    return self._answer(*self._of_users(user_id), k, exclude, allow)

  @_traced(_named(_LISTS, 'item_id'), _K)
  def by_items(self, item_id, k):
    """For people who have taken item_id [batch, m] (padded with ''): what `serve` returns; known if one item is."""
    return self._answer(*self._of_items(item_id), k)

  @_traced(_named(_LISTS, 'item_id'), _K, _named(_LISTS, 'exclude'), _named(_LISTS, 'allow'))
  def recommend_by_items(self, item_id, k, exclude, allow):
    """`by_items` with the lists of `recommend`."""
    return self._answer(*self._of_items(item_id), k, exclude, allow)

  @_traced(_named(_IDS, 'item_id'), _K)
  def similar_items(self, item_id, k):
    """Other items by the cosine of their vectors: item_id [batch, k], score [batch, k], known [batch]."""
    items = self._items.lookup(item_id)
    known, place = items >= 0, tf.maximum(items, 0)
    count = tf.size(items, out_type=tf.int64)
    vectors = tf.gather(self.item_vectors, place) * tf.gather(self._inverse_norms, place)[:, None]
    itself = tf.range(count) * self._num_items + place
    # Without profiles, and all items are allowed.
    none = tf.zeros(tf.stack([count + 1]), tf.int64)
    ids, scores = self._in_all(vectors, none, tf.zeros([0], tf.int32), tf.zeros([0]), known, itself,
                               tf.range(count + 1), k, tf.zeros_like(known), none[:0], none, self._inverse_norms)
    return {'item_id': tf.where(known[:, None], ids, ''), 'score': tf.where(known[:, None], scores, -np.inf),
            'known': known}

  @_traced(_named(_IDS, 'user_id'))
  def embed_users(self, user_id):
    """embedding [batch, d] float32, zero for an unknown user, and known [batch]."""
    return _embedded(self.user_vectors, self._users.lookup(user_id))

  @_traced(_named(_IDS, 'item_id'))
  def embed_items(self, item_id):
    """embedding [batch, d] float32, zero for an unknown item, and known [batch]."""
    return _embedded(self.item_vectors, self._items.lookup(item_id))

  @_traced(_named(_IDS, 'user_id'), _named(_IDS, 'item_id'))
  def score(self, user_id, item_id):
    """score [batch] of pairs, seen ones too; zero with known [batch] False if one of the two is unknown."""
    users, items = self._users.lookup(user_id), self._items.lookup(item_id)
    known = (users >= 0) & (items >= 0)
    scores = self.score_pairs(tf.maximum(users, 0), tf.maximum(items, 0))
    return {'score': tf.where(known, scores, 0.), 'known': known}

  def signatures(self):
    """Functions by the name of their signature."""
    return {'serving_default': self.serve, 'recommend': self.recommend, 'by_items': self.by_items,
            'recommend_by_items': self.recommend_by_items, 'similar_items': self.similar_items,
            'embed_users': self.embed_users, 'embed_items': self.embed_items, 'score': self.score}

  # What the signatures share: those who are asked for, and their lists.

  def _of_users(self, user_id):
    """Those who are asked for: vectors [n, d], profile, known [n], keys and splits of what they have seen."""
    users = self._users.lookup(user_id)
    known = users >= 0
    rows = tf.where(known, users, self._seen.none)
    splits, items = self._seen.columns(rows)
    keys = row_numbers(splits) * self._num_items + tf.cast(items, tf.int64)
    profile = self._memory.of_users(rows) if self._memory else None
    return tf.gather(self.user_vectors, tf.maximum(users, 0)), profile, known, keys, splits

  def _of_items(self, item_id):
    """The same for people of whom only items are known, which are left out as seen ones are."""
    keys, splits = self._keys(item_id)
    items = keys % self._num_items
    taken = tf.SparseTensor(tf.stack([keys // self._num_items, items], axis=1), tf.ones_like(items, tf.float32),
                            [tf.size(splits, out_type=tf.int64) - 1, self._num_items])
    number = tf.cast(splits[1:] - splits[:-1], tf.float32)[:, None]
    mean = tf.sparse.sparse_dense_matmul(taken, self.item_vectors) / tf.maximum(number, 1.)
    matrix, offset = self._fold_in
    profile = self._memory.of_items(splits, tf.cast(items, tf.int32)) if self._memory else None
    return tf.matmul(mean, matrix) + offset, profile, number[:, 0] > 0, keys, splits

  def _answer(self, vectors, profile, known, keys, splits, k, exclude=None, allow=None):
    """What a signature returns.

    Args:
      vectors: [n, d].
      profile: splits [n + 1], items [p] and weights [p] for the memory, or None.
      known: [n] bool; others get popular items.
      keys: [m] int64, ascending: row * num_items + item of what is left out.
      splits: [n + 1] int64, where the rows begin in `keys`.
      k: int32, as asked.
      exclude, allow: [rows, a] string, or None for both.
    """
    if exclude is None and profile is None:
      ids, scores = self._by_layer(vectors, known, keys, splits, k)
    else:
      count = tf.size(known, out_type=tf.int64)
      none = tf.zeros(tf.stack([count + 1]), tf.int64)
      restricted, allowed, allowed_splits = tf.zeros_like(known), none[:0], none
      if exclude is not None:
        keys = tf.sort(tf.concat([keys, self._keys(self._lists(exclude, count))[0]], axis=0))
        splits = self._splits(keys, count)
        allow = self._lists(allow, count)
        restricted = tf.reduce_any(allow != '', axis=1)
        allowed, allowed_splits = self._keys(allow)
      profile = (none, tf.zeros([0], tf.int32), tf.zeros([0])) if profile is None else profile
      ids, scores = self._in_all(vectors, *profile, known, keys, splits, k, restricted, allowed, allowed_splits,
                                 tf.zeros([0]))
    return {'item_id': ids, 'score': scores, 'known': known}

  # Each is traced once for all signatures.

  @_traced(_ROWS, _BOOL, _INT64, _INT64, _K)
  def _by_layer(self, vectors, known, keys, splits, k):
    """Ranks by the layer: ids [n, k] and scores [n, k]; arguments as in `_answer`."""

    def answer(rows, left_out, length):
      scores, items = self._retrieve(vectors[rows], length, left_out)
      there = known[rows][:, None]
      # Of unknown people nothing is known that could be left out.
      return tf.where(there, scores, -tf.cast(tf.range(length), tf.float32)), tf.where(
          there, items, self._popular[:length])

    return self._sliced(answer, known, keys, splits, k)

  @_traced(_ROWS, _INT64, _INT32, _FLOAT, _BOOL, _INT64, _INT64, _K, _BOOL, _INT64, _INT64, _FLOAT)
  def _in_all(self, vectors, profile_splits, profile_items, profile_weights, known, keys, splits, k, restricted,
              allowed, allowed_splits, scale):
    """Ranks by the scores of all items: ids [n, k] and scores [n, k]; arguments as in `_answer`, and further:

    Args:
      restricted: [n] bool, whether only allowed items may come.
      allowed: [a] int64 keys of these, ascending.
      allowed_splits: [n + 1] int64.
      scale: [num_items] float32, factors of the dot products; [0] for none.
    """

    def restrict(scores, rows):
      begins = allowed_splits[rows.start:rows.stop + 1]
      may = tf.raw_ops.RaggedBincount(
          splits=begins - begins[0], values=tf.cast(allowed[begins[0]:begins[-1]] % self._num_items, tf.int32),
          size=self._num_items, weights=tf.zeros([0]), binary_output=True)
      return tf.where((may > 0) | ~restricted[rows][:, None], scores, -np.inf)

    def answer(rows, left_out, length):
      scores = tf.matmul(vectors[rows], self.item_vectors, transpose_b=True)
      scores = tf.cond(tf.size(scale) > 0, lambda: scores * scale, lambda: scores)
      if self._memory:
        begins = profile_splits[rows.start:rows.stop + 1]
        part = slice(begins[0], begins[-1])
        scores += self._memory.scores((begins - begins[0], profile_items[part], profile_weights[part]))
      there = known[rows]
      scores = tf.cond(tf.reduce_all(there), lambda: scores,
                       lambda: tf.where(there[:, None], scores, self._popular_rank))
      scores = tf.cond(tf.reduce_any(restricted), lambda: restrict(scores, rows), lambda: scores)
      scores = selection.without(tf.ensure_shape(scores, [None, self._num_items]), left_out)
      return selection.best(scores, length)

    return self._sliced(answer, known, keys, splits, k)

  def _sliced(self, answer: Callable, known, keys, splits, k):
    """Ranks at most `_slice_users` at a time, so that the scores of a large batch are never held at once.

    Of equal scores the lower item number comes first.

    Args:
      answer: function of a slice of rows, the places of what is left out (`selection.without`) and the number of
        items to retrieve, that returns scores and items of these; minus the place in the order of popularity is
        the score for unknown people.
      known, keys, splits, k: as in `_answer`.

    Returns:
      ids [n, k] and scores [n, k]; '' and -inf where there is no item.
    """
    batch, k = tf.size(known, out_type=tf.int64), tf.maximum(k, 0)
    length = tf.minimum(k, self._num_items)
    slices = tf.maximum(-(-batch // self._slice_users), 1)
    if self._memory:
      # Its operations use one core each: two slices of the same size are computed side by side.
      slices = tf.where(batch < _SIDE_BY_SIDE, slices, slices + slices % 2)
    size = tf.maximum(-(-batch // slices), 1)
    slices = tf.maximum(-(-batch // size), 1)

    def body(part, ids, scores):
      first = part * size
      rows = slice(first, tf.minimum(first + size, batch))
      begins = splits[rows.start:rows.stop + 1]
      own = keys[begins[0]:begins[-1]] - first * self._num_items
      part_scores, items = answer(rows, own, length)
      there = part_scores > -np.inf
      popular = tf.where(there, tf.gather(self._popular_score, items), -np.inf)
      part_scores = tf.where(known[rows][:, None], part_scores, popular)
      part_ids = tf.where(there, tf.gather(self._item_ids, items), '')
      place = tf.cast(part, tf.int32)
      return part + 1, ids.write(place, part_ids), scores.write(place, part_scores)

    arrays = [tf.TensorArray(kind, tf.cast(slices, tf.int32), infer_shape=False, element_shape=[None, None])
              for kind in (tf.string, tf.float32)]
    _, ids, scores = tf.while_loop(lambda part, *_: part < slices, body, (tf.constant(0, tf.int64), *arrays),
                                   parallel_iterations=2 if self._memory else 1)
    shape = tf.stack([tf.cast(batch, tf.int32), length])
    padding = [[0, 0], [0, k - length]]
    return (tf.pad(tf.reshape(ids.concat(), shape), padding, constant_values=''),
            tf.pad(tf.reshape(scores.concat(), shape), padding, constant_values=-np.inf))

  @_traced(_LISTS)
  def _keys(self, item_id):
    """Known ones of item_id [n, m]: keys row * num_items + item, ascending, different, and splits [n + 1]."""
    items = tf.ensure_shape(self._items.lookup(item_id), [None, None])
    count = tf.shape(item_id, out_type=tf.int64)[0]
    keys = tf.range(count)[:, None] * self._num_items + items
    keys = tf.unique(tf.sort(tf.boolean_mask(keys, items >= 0))).y
    return keys, self._splits(keys, count)

  def _splits(self, keys, count):
    """[count + 1] int64 where rows begin in ascending keys."""
    return tf.searchsorted(keys, tf.range(count + 1) * self._num_items, out_type=tf.int64)

  @_traced(_LISTS, tf.TensorSpec([], tf.int64))
  def _lists(self, lists, batch):
    """Lists [rows, m] of raw ids, padded with '', as [batch, m]: one row is for all, none is no list."""
    rows = tf.shape(lists, out_type=tf.int64)[0]
    lists = tf.cond(rows > 0, lambda: lists, lambda: tf.fill([1, 1], ''))
    return tf.broadcast_to(lists, tf.stack([batch, tf.shape(lists, out_type=tf.int64)[1]]))


def _inverse_norms(vectors) -> tf.Tensor:
  """[n] float32, one over the lengths of vectors [n, d]; 1 for those of length 0."""
  norms = tf.norm(vectors, axis=1)
  return 1. / tf.where(norms > 0, norms, 1.)


def _embedded(vectors, numbers):
  known = numbers >= 0
  return {'embedding': tf.where(known[:, None], tf.gather(vectors, tf.maximum(numbers, 0)), 0.), 'known': known}


def _number_table(ids):
  """From an id to its place in ids [n]; -1 for others."""
  table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
  table.insert(ids, tf.range(tf.size(ids, out_type=tf.int64)))
  return table
