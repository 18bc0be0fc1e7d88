"""NSCaching: a small cache of hard negatives for each user, renewed by importance sampling."""
import numpy as np
import tensorflow as tf

from graphsane_tf.negatives import ranked
from graphsane_tf.negatives.base import Draw, NegativeSampler
from graphsane_tf.random import host_seed

# Items for each entry of a cache up to which all items are scored.
_WHOLE = 64


def renewed(cache: tf.Tensor, valid: tf.Tensor, scores: tf.Tensor, size: int, temperature: float,
            seed: tf.Tensor) -> tf.Tensor:
  """Draws a new cache from the old one and its candidates, without replacement.

  An item is drawn with probability proportional to exp(score / temperature), by adding Gumbel noise
  and keeping the largest sums.

  Args:
    cache: [n, m] int32 items, old cache and candidates.
    valid: [n, m] bool, whether the entry is an item; of equal items one is taken.
    scores: [n, m] float32.
    size: entries of the new cache.
    temperature: of the softmax.
    seed: [2] int32.

  Returns:
    [n, size] int32, -1 at the end where there are fewer items.
  """
  noise = tf.random.stateless_uniform(tf.shape(scores), seed, minval=np.finfo(np.float32).tiny)
  sums = scores / temperature - tf.math.log(-tf.math.log(noise))
  order = tf.argsort(tf.where(valid, cache, np.iinfo(np.int32).max), axis=1, stable=True)
  cache = tf.gather(cache, order, batch_dims=1)
  repeated = tf.pad(cache[:, 1:] == cache[:, :-1], [[0, 0], [1, 0]])
  keep = tf.logical_and(tf.gather(valid, order, batch_dims=1), tf.logical_not(repeated))
  sums = tf.where(keep, tf.gather(sums, order, batch_dims=1), -np.inf)
  top = tf.math.top_k(sums, size)
  return tf.where(tf.math.is_finite(top.values), tf.gather(cache, top.indices, batch_dims=1), -1)


class NSCaching(NegativeSampler):
  """Uniform draws from the user's cache of N1 unobserved items.

  Publication: Zhang, Yao, Shao, Chen, "NSCaching: simple and efficient negative sampling for
  knowledge graph embedding", ICDE 2019. A cache of N1 entities for each (head, relation); a
  negative is drawn from it uniformly; it is renewed by drawing N1 of the cache and N2 fresh uniform
  candidates without replacement, with probabilities softmax(score), so that it keeps hard negatives
  yet moves.

  Adaptation: a cache for each user; ids of items, none of the current block's positives. All caches
  are renewed between epochs (the publication's lazy update, every `refresh_epochs`) and kept from
  one epoch to the next; an empty one fills up with uniform candidates.
  """

  loss_name = 'nscaching'

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    self._options = config.nscaching
    self.refresh_epochs = self._options.refresh_epochs
    users = np.unique(context.users)
    width = min(self._options.size, context.num_items)
    self.table = ranked.ItemTable(users, width, context.positives)

  def refresh(self, user_vectors, item_vectors, epoch):
    seed = tf.constant(host_seed(*self.seed, epoch, name='nscaching'))
    # Scoring every item is one matrix product, which beats gathering rows unless the catalogue is
    # many times larger than the cache.
    width = self.table.width + self._options.candidates
    whole = self.context.num_items <= _WHOLE * width
    floats = self.context.num_items if whole else width * user_vectors.shape[1]
    for chunk, (start, stop) in enumerate(self.table.chunks(floats)):
      self._renew(user_vectors, item_vectors, start, stop, whole,
                  tf.random.experimental.stateless_fold_in(seed, chunk))

  def _renew(self, user_vectors, item_vectors, start, stop, whole, seed):
    """Renews slots start to stop - 1."""
    table = self.table
    users = tf.constant(table.users[start:stop], tf.int32)
    fresh, free = table.uniform.draw(users, self._options.candidates, seed)
    cache = tf.concat([table.items[start:stop], fresh], axis=1)
    held = tf.sequence_mask(table.count[start:stop], table.width)
    valid = tf.concat([held, free > 0], axis=1)
    rows = tf.gather(user_vectors, users)
    if whole:
      scores = tf.gather(tf.matmul(rows, item_vectors, transpose_b=True), cache, batch_dims=1)
    else:
      scores = tf.linalg.matvec(tf.gather(item_vectors, cache), rows)
    items = renewed(cache, valid, scores, table.width, self._options.temperature,
                    tf.random.experimental.stateless_fold_in(seed, 1))
    table.items[start:stop].assign(tf.maximum(items, 0))
    table.count[start:stop].assign(tf.reduce_sum(tf.cast(items >= 0, tf.int32), axis=1))

  def draw(self, users, positives, seeds):
    return Draw(*self.table.draw(
        users, self.num_slots, seeds, ranked.uniform_place, ranked.uniform_log_probability))

  def probabilities(self, user, positive, scores):
    return self.table.probabilities(user, ranked.uniform_by_place)
