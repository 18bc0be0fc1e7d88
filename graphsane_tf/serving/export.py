"""A block's model as a SavedModel that answers raw user ids with raw item ids."""
import pathlib
from typing import Any, Sequence, Union

import numpy as np
import tensorflow as tf
import tensorflow_recommenders as tfrs

from graphsane_tf import files
from graphsane_tf.errors import UserError
from graphsane_tf.graph import csr

Strings = Union[Sequence[str], np.ndarray]

_MAX_SLICE_USERS = 1024
_MAX_SLICE_SCORES = 1 << 24  # Floats of one slice's score matrix: 64 MB.


class _Server(tf.Module):
  """Tables and the serving function. It holds no Keras object, only the layer's variables."""

  def __init__(self, user_vectors, item_vectors, user_ids, item_ids, seen, popularity):
    """See `export_block` for the arguments."""
    super().__init__()
    layer = tfrs.layers.factorized_top_k.BruteForce()
    self._num_items = len(item_vectors)
    layer.index(item_vectors, tf.range(self._num_items))
    self._layer_variables = layer.variables
    self._retrieve = lambda queries, k: layer(queries, k=k)
    self._slice_users = max(1, min(_MAX_SLICE_USERS, _MAX_SLICE_SCORES // self._num_items))
    self._user_number = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    self._user_number.insert(_strings(user_ids), tf.range(len(user_ids), dtype=tf.int64))
    self._user_vectors = tf.Variable(user_vectors, trainable=False)
    self._item_ids = tf.Variable(_strings(item_ids), trainable=False)
    self._indptr = tf.Variable(seen.indptr, trainable=False)
    self._seen = tf.Variable(seen.indices, trainable=False)
    order = np.argsort(-popularity, kind='stable')
    self._popular = tf.Variable(order.astype(np.int32), trainable=False)
    self._popular_scores = tf.Variable(
        np.log1p(popularity[order]).astype(np.float32), trainable=False)

  @tf.function(input_signature=[
      tf.TensorSpec([None], tf.string, 'user_id'), tf.TensorSpec([], tf.int32, 'k')])
  def serve(self, user_id, k):
    """Recommends for user_id [batch]: item_id [batch, k] strings, score [batch, k] float32."""
    k = tf.maximum(k, 0)
    batch = tf.shape(user_id)[0]
    slices = tf.maximum(1, -(-batch // self._slice_users))
    ids = tf.TensorArray(tf.string, slices, infer_shape=False, element_shape=[None, None])
    scores = tf.TensorArray(tf.float32, slices, infer_shape=False, element_shape=[None, None])
    for part in tf.range(slices):
      tf.autograph.experimental.set_loop_options(parallel_iterations=1)
      start = part * self._slice_users
      part_ids, part_scores = self._recommend(user_id[start:start + self._slice_users], k)
      ids = ids.write(part, part_ids)
      scores = scores.write(part, part_scores)
    return {'item_id': tf.reshape(ids.concat(), [batch, k]),
            'score': tf.reshape(scores.concat(), [batch, k])}

  def _recommend(self, user_id, k):
    """The answer for one slice: item ids [n, k] and scores [n, k]."""
    users = self._user_number.lookup(user_id)
    known = users >= 0
    length = tf.minimum(k, self._num_items)
    scores, items = self._rank(tf.maximum(users, 0), known, length)
    popular = tf.broadcast_to(self._popular[:length], tf.shape(items))
    popular_scores = tf.broadcast_to(self._popular_scores[:length], tf.shape(scores))
    items = tf.where(known[:, None], items, popular)
    scores = tf.where(known[:, None], scores, popular_scores)
    ids = tf.where(scores > -np.inf, tf.gather(self._item_ids, items), '')
    padding = [[0, 0], [0, k - length]]
    return (tf.pad(ids, padding, constant_values=''),
            tf.pad(scores, padding, constant_values=-np.inf))

  def _rank(self, users, known, length):
    """Unseen items by the layer's score; of equal ones the lower item number comes first.

    The layer is asked for as many more items as the slice's busiest user has seen, so that enough remain.

    Args:
      users: [n] int64 user numbers.
      known: [n] bool; the rows of unknown users are ranked as if nothing were seen.
      length: int32, at most the number of items.

    Returns:
      scores [n, length], -inf where a seen item had to be taken, and item numbers [n, length].
    """
    start, stop = tf.gather(self._indptr, users), tf.gather(self._indptr, users + 1)
    count = tf.where(known, stop - start, 0)
    busiest = tf.cast(tf.reduce_max(tf.concat([count, [0]], axis=0)), tf.int32)
    depth = tf.minimum(length + busiest, self._num_items)
    scores, items = self._retrieve(tf.gather(self._user_vectors, users), depth)

    # The seen pairs as sorted keys row * num_items + item; the last one matches nothing.
    row = tf.range(tf.shape(users, out_type=tf.int64)[0])
    shift = tf.repeat(start - tf.cumsum(count, exclusive=True), count)
    place = shift + tf.range(tf.size(shift, out_type=tf.int64))
    keys = tf.repeat(row, count) * self._num_items + tf.gather(self._seen, place)
    keys = tf.concat([keys, [tf.int64.max]], axis=0)
    asked = tf.reshape(row[:, None] * self._num_items + tf.cast(items, tf.int64), [-1])
    seen = tf.gather(keys, tf.searchsorted(keys, asked)) == asked
    scores = tf.where(tf.reshape(seen, tf.shape(scores)), -np.inf, scores)
    scores, order = tf.math.top_k(scores, length)
    return scores, tf.gather(items, order, batch_dims=1)


def export_block(path, user_vectors: np.ndarray, item_vectors: np.ndarray, user_ids: Strings, item_ids: Strings,
                 seen: csr.Csr, popularity: np.ndarray) -> None:
  """Writes a SavedModel that plain TensorFlow can load and serve.

  Its `serving_default` takes `user_id` (string [batch]) and `k` (int32 scalar) and returns
  `item_id` (string [batch, k]) and `score` (float32 [batch, k]), best first. A known user gets the
  items with the largest dot products among those that they have not seen, equal ones in the order of
  `item_ids`. An unknown user gets the most popular items, with score log(1 + count). Slots beyond
  the available items hold '' and -inf. A batch of any size is answered in slices of at most 1,024
  users.

  Args:
    path: the folder to write; an older export there is replaced when the new one is complete.
    user_vectors: [num_users, d] float32.
    item_vectors: [num_items, d] float32.
    user_ids: [num_users] str, all different.
    item_ids: [num_items] str, all different.
    seen: [num_users, num_items] items to leave out.
    popularity: [num_items] interaction counts.
  """
  user_vectors = np.asarray(user_vectors, np.float32)
  item_vectors = np.asarray(item_vectors, np.float32)
  indptr, indices = (np.asarray(part, np.int64) for part in (seen.indptr, seen.indices))
  popularity = np.asarray(popularity, np.float64)
  _check(user_vectors, item_vectors, user_ids, item_ids, indptr, indices, popularity)
  # Sorted inside each user, as the search for seen items needs.
  owner = np.repeat(np.arange(len(user_vectors)), np.diff(indptr))
  indices = indices[np.lexsort((indices, owner))]
  seen = csr.Csr(indptr, indices, len(item_vectors))
  server = _Server(user_vectors, item_vectors, user_ids, item_ids, seen, popularity)
  with files.replaced_directory(path) as temporary:
    tf.saved_model.save(server, str(temporary), signatures={'serving_default': server.serve})


def recommend(model: Any, user_ids: Sequence[str], k: int) -> list[list[tuple[str, float]]]:
  """Asks an export for recommendations.

  Args:
    model: the folder of an export, or the object that `tf.saved_model.load` gave for it.
    user_ids: [batch] raw user ids.
    k: how many items to ask for.

  Returns:
    For each user at most k pairs (item id, score), best first.
  """
  if isinstance(model, (str, pathlib.Path)):
    if not tf.saved_model.contains_saved_model(str(model)):
      raise UserError(f'{model} is not an exported model: it holds no SavedModel.')
    model = tf.saved_model.load(str(model))
  answer = model.signatures['serving_default'](
      user_id=_strings(user_ids), k=tf.constant(k, tf.int32))
  scores = answer['score'].numpy()
  lengths = (scores > -np.inf).sum(axis=1)
  return [[(item.decode('utf-8'), float(score)) for item, score in zip(row[:length], values)]
          for row, values, length in zip(answer['item_id'].numpy(), scores, lengths)]


def _strings(values: Strings) -> tf.Tensor:
  """[n] string tensor, UTF-8; also for n = 0."""
  return tf.constant(list(values), tf.string, shape=[len(values)])


def _check(user_vectors, item_vectors, user_ids, item_ids, indptr, indices, popularity) -> None:
  """Refuses arrays that do not belong together."""
  for name, vectors, ids in (('user', user_vectors, user_ids), ('item', item_vectors, item_ids)):
    if not len(vectors) or len(vectors) != len(ids) or len(set(ids)) != len(ids):
      raise UserError(f'the export needs one vector for each of the different {name} ids; got '
                      f'{len(vectors)} vectors and {len(ids)} ids, {len(set(ids))} different.')
    if not np.isfinite(vectors).all():
      raise UserError(f'the {name} vectors hold values that are not finite; they cannot be served.')
  if len(indptr) != len(user_vectors) + 1 or len(popularity) != len(item_vectors):
    raise UserError(f'the export got seen items of {len(indptr) - 1} users and the popularity of '
                    f'{len(popularity)} items for {len(user_vectors)} users and '
                    f'{len(item_vectors)} items.')
  if len(indices) and not 0 <= indices.min() <= indices.max() < len(item_vectors):
    raise UserError(f'the seen items must be numbers below {len(item_vectors)}.')
