"""A block's model as a SavedModel that answers raw ids."""
import dataclasses
import pathlib
from typing import Any, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import scipy.sparse
import tensorflow as tf

from graphsane_tf import files
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr
from graphsane_tf.memory import mixing
from graphsane_tf.serving.backbone import Blend, Trainable
from graphsane_tf.serving.server import Server
from graphsane_tf.serving.tables import Memory
from graphsane_tf.training.block import Model

Strings = Union[Sequence[str], np.ndarray]

_MAX_SLICE_USERS = 1024
# Floats of one slice's score matrix: 256 MB. With few users the product reads all items for each few of them.
_MAX_SLICE_SCORES = 1 << 26
# Products of one slice's profiles with the memory's weights: about 30 MB.
_MAX_SLICE_PRODUCTS = 1 << 20
# Ridge of `fold_in`, in mean variances of what it maps from.
_FOLD_IN_RIDGE = 1e-3


def export_block(path, user_vectors: np.ndarray, item_vectors: np.ndarray, user_ids: Strings, item_ids: Strings,
                 seen: csr.Csr, popularity: np.ndarray, profile: Optional[scipy.sparse.csr_matrix] = None,
                 weights: Optional[scipy.sparse.csr_matrix] = None, profile_scale: float = 1.,
                 backbone: Optional[Trainable] = None) -> None:
  """Writes a SavedModel that plain TensorFlow can load, serve and train further.

  The score of a user and an item is the dot product of their vectors, plus (profile @ weights) of them if there
  is a memory. Ids are strings, and every answer has `known` (bool [batch]), whether the one asked for was known.

  - `serving_default`: `user_id` [batch] and `k` (int32 scalar) to `item_id` [batch, k] and `score` [batch, k],
    best first. A known user gets the best items among those that they have not seen, equal ones in the order of
    `item_ids`; an unknown one the most popular items, with log(1 + count) as score. Slots beyond the available
    items hold '' and -inf.
  - `recommend`: the same with `exclude` and `allow`, strings [batch or 1, m] padded with '': items that are left
    out, and items of which alone the answer is made (a row without an id restricts nothing).
  - `by_items`: `item_id` [batch, m], padded with '', what somebody has taken, and `k`, to the same answer; their
    vector is made by `fold_in`, their profile has `profile_scale` at each item. `recommend_by_items` takes
    `exclude` and `allow` as well.
  - `similar_items`: `item_id` [batch] and `k` to other items by the cosine of their vectors.
  - `embed_users` of `user_id`, `embed_items` of `item_id`: `embedding` [batch, d], zeros for unknown ids.
  - `score`: `user_id` [batch] and `item_id` [batch] to `score` [batch], zero for unknown ids.

  A batch of any size is answered in slices. The loaded object also has the variables `user_vectors` and
  `item_vectors`, and functions: `user_number` and `item_number` of ids, and `score_pairs` of numbers, through which
  gradients flow to the variables; the signatures answer with what training makes of these. With a backbone it has
  `backbone`, whose `weights` are variables, too; a call of it gives scores of pairs of numbers by propagation over the
  graph, `backbone.represent()` all representations, and `refresh()` makes the vectors of the weights anew.

  Args:
    path: the folder to write; an older export there is replaced when the new one is complete.
    user_vectors: [num_users, d] float32.
    item_vectors: [num_items, d] float32.
    user_ids: [num_users] str, all different.
    item_ids: [num_items] str, all different.
    seen: [num_users, num_items] items to leave out.
    popularity: [num_items] interaction counts.
    profile: [num_users, num_items] float32, what the memory knows of users, or None.
    weights: [num_items, num_items] float32, sparse; given if and only if `profile` is.
    profile_scale: what the profile of somebody known by items alone has at each of these.
    backbone: what the vectors were made by, or None.
  """
  user_vectors = np.asarray(user_vectors, np.float32)
  item_vectors = np.asarray(item_vectors, np.float32)
  popularity = np.asarray(popularity, np.float64)
  _check(user_vectors, item_vectors, user_ids, item_ids, seen, popularity)
  shape = len(user_vectors), len(item_vectors)
  slice_users = max(1, min(_MAX_SLICE_USERS, _MAX_SLICE_SCORES // shape[1]))
  # Columns ascend inside each row, as the search for seen items needs.
  seen_matrix = _sparse(dataclasses.replace(seen, num_columns=shape[1]).matrix(), shape, 'seen items')
  seen_matrix.data[:] = 1.
  memory = None
  if (profile is None) != (weights is None):
    raise UserError('the export needs both profile and weights of a memory, or none of them.')
  if profile is not None and weights is not None:
    profile, weights = _sparse(profile, shape, 'profile'), _sparse(weights, (shape[1], shape[1]), 'weights')
    if weights.nnz:
      memory = Memory(profile, weights, profile_scale)
      products = (profile != 0) @ np.diff(weights.indptr)
      slice_users = max(1, min(slice_users, _MAX_SLICE_PRODUCTS // int(max(products.max(), 1))))
  server = Server(user_vectors, item_vectors, _strings(user_ids), _strings(item_ids), seen_matrix, popularity,
                  fold_in(seen_matrix, user_vectors, item_vectors), memory, slice_users, backbone)
  with files.replaced_directory(path) as temporary:
    tf.saved_model.save(server, str(temporary), signatures=server.signatures())


def export_scorer(path, scorer, user_ids: Strings, item_ids: Strings, seen: csr.Csr, popularity: np.ndarray,
                  model: Optional[Model] = None) -> None:
  """`export_block` of a `ranking.DotProduct`, or of a `mixing.Mixed`, whose memory is exported with it.

  `model` is what made the representations that are ranked by, if they are a trained model's.
  """
  profile = getattr(scorer, 'profile', None)
  scale = float(profile.data.mean()) if profile is not None and profile.nnz else 1.
  parts = getattr(scorer, 'parts', None)
  trainable = None if model is None else Trainable(model.backbone, model.graph, Blend(*parts) if parts else None)
  export_block(path, scorer.user_vectors, scorer.item_vectors, user_ids, item_ids, seen, popularity, profile,
               getattr(scorer, 'weights', None), scale, trainable)


def read_scorer(path) -> ranking.DotProduct:
  """How an export ranks the users whom it knows: a `ranking.DotProduct`, or a `mixing.Mixed` if it has a memory.

  Only variables are read: nothing is traced or run.

  Raises:
    UserError: if they cannot be read.
  """
  try:
    saved = tf.train.load_checkpoint(str(pathlib.Path(path) / 'variables' / 'variables'))
    there = saved.get_variable_to_shape_map()
    read = lambda name: saved.get_tensor(f'{name}/.ATTRIBUTES/VARIABLE_VALUE')
    vectors = read('user_vectors'), read('item_vectors')
    shape = len(vectors[0]), len(vectors[1])

    def table(name: str, rows: int) -> scipy.sparse.csr_matrix:
      columns, values, indptr = (read(f'_memory/{name}/{part}') for part in ('_columns', '_values', '_indptr'))
      # The last row is that of unknown ids, and empty.
      return scipy.sparse.csr_matrix((values, columns, indptr[:-1]), shape=(rows, shape[1]))

    if not any(name.startswith('_memory/') for name in there):
      return ranking.DotProduct(*vectors)
    return mixing.Mixed(*vectors, table('_profile', shape[0]), table('_weights', shape[1]))
  except (tf.errors.OpError, ValueError, IndexError, RuntimeError) as error:
    raise UserError(f'the variables of the export {path} cannot be read ({files.reason(error)}).') from error


def fold_in(seen: scipy.sparse.csr_matrix, user_vectors: np.ndarray, item_vectors: np.ndarray
            ) -> Tuple[np.ndarray, np.ndarray]:
  """The affine map from the mean vector of what somebody has taken to a vector like those of users.

  Ridge regression over the known users: a model's users live in a space of their own, and a mean of item vectors
  would not be of their length.

  Args:
    seen: [num_users, num_items] binary.
    user_vectors: [num_users, d].
    item_vectors: [num_items, d].

  Returns:
    matrix [d, d] and offset [d], float64.
  """
  taken = np.diff(seen.indptr)
  rows = np.flatnonzero(taken)
  width = item_vectors.shape[1]
  if not len(rows):
    return np.eye(width), np.zeros(width)
  means = np.asarray((seen[rows] @ item_vectors) / taken[rows, None], np.float64)
  users = np.asarray(user_vectors[rows], np.float64)
  mean, user_mean = means.mean(axis=0), users.mean(axis=0)
  means -= mean
  gram = means.T @ means
  ridge = _FOLD_IN_RIDGE * np.trace(gram) / width + np.finfo(np.float32).tiny
  matrix = np.linalg.solve(gram + ridge * np.eye(width), means.T @ (users - user_mean))
  return matrix, user_mean - mean @ matrix


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
  return read_answer(model.signatures['serving_default'](user_id=_strings(user_ids), k=tf.constant(k, tf.int32)))


def read_answer(answer: Mapping[str, tf.Tensor]) -> list[list[tuple[str, float]]]:
  """The lists of an answer of a signature: for each row its pairs (item id, score), best first."""
  scores = answer['score'].numpy()
  lengths = (scores > -np.inf).sum(axis=1)
  return [[(item.decode('utf-8'), float(score)) for item, score in zip(row[:length], values)]
          for row, values, length in zip(answer['item_id'].numpy(), scores, lengths)]


def _strings(values: Strings) -> tf.Tensor:
  """[n] string tensor, UTF-8; also for n = 0."""
  return tf.constant(list(values), tf.string, shape=[len(values)])


def _sparse(matrix: scipy.sparse.spmatrix, shape: Tuple[int, int], what: str) -> scipy.sparse.csr_matrix:
  """A float32 CSR matrix with ascending columns in each row, or one sentence why it cannot be."""
  if not scipy.sparse.issparse(matrix) or matrix.shape != shape:
    raise UserError(f'the {what} of an export must be a sparse matrix of {shape[0]} rows and {shape[1]} columns.')
  matrix = scipy.sparse.csr_matrix(matrix, dtype=np.float32, copy=True)
  matrix.sum_duplicates()
  if not np.isfinite(matrix.data).all():
    raise UserError(f'the {what} of an export hold values that are not finite; they cannot be served.')
  return matrix


def _check(user_vectors, item_vectors, user_ids, item_ids, seen, popularity) -> None:
  """Refuses arrays that do not belong together."""
  for name, vectors, ids in (('user', user_vectors, user_ids), ('item', item_vectors, item_ids)):
    if not len(vectors) or len(vectors) != len(ids) or len(set(ids)) != len(ids):
      raise UserError(f'the export needs one vector for each of the different {name} ids; got '
                      f'{len(vectors)} vectors and {len(ids)} ids, {len(set(ids))} different.')
    if not np.isfinite(vectors).all():
      raise UserError(f'the {name} vectors hold values that are not finite; they cannot be served.')
  if len(seen.indptr) != len(user_vectors) + 1 or len(popularity) != len(item_vectors):
    raise UserError(f'the export got seen items of {len(seen.indptr) - 1} users and the popularity of '
                    f'{len(popularity)} items for {len(user_vectors)} users and '
                    f'{len(item_vectors)} items.')
  if len(seen.indices) and not 0 <= seen.indices.min() <= seen.indices.max() < len(item_vectors):
    raise UserError(f'the seen items must be numbers below {len(item_vectors)}.')
