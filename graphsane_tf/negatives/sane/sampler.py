"""The sampler: reservoirs of every user, rebuilt every few epochs, and draws from them."""
from typing import Dict, Optional

import numpy as np
import tensorflow as tf

from graphsane_tf import clustering, workers
from graphsane_tf.evaluation import ranking
from graphsane_tf.graph import csr
from graphsane_tf.negatives.base import Draw, NegativeSampler, Report
from graphsane_tf.negatives.dns import hardest_choice, hardest_probabilities
from graphsane_tf.negatives.ranked import ItemTable, Rankings
from graphsane_tf.negatives.sane import device, posterior
from graphsane_tf.negatives.sane.bands import BANDS
from graphsane_tf.negatives.sane.interests import Categories, SoftCategories
from graphsane_tf.negatives.sane.shifts import SHIFTS
from graphsane_tf.random import Seeds

# Probability of an item in a softmax's correction at least; a millionth of a reservoir's mass is noise.
_SMALLEST = 1e-6


class Sane(NegativeSampler):
  """Top-ranked unobserved items of each user, drawn by category with a shift-aware posterior.

  Users with pairs in the block have a slot each. A slot holds the `size` unobserved items from the
  band's first rank on, and the running sum of their probabilities, from which draws are made by
  inversion. Users the model did not know before the block get uniform negatives instead.

  Its parts can be replaced (`--sane_variant=adaptive` replaces the first three):
    band: where the reservoirs begin (`bands`).
    shift: what a user's interest shift is, and the prior (`shifts`).
    balance > 0: what stands in many reservoirs is drawn less readily (`posterior.balancing_weights`).
      BPR's scores follow how often an item is taken over how often it is a negative: without this, items
      that are popular everywhere would be pushed down for everybody, rather than what is hard for this
      user.
    candidates > 1: a slot draws that many items, and the step keeps the one that is hardest by then.
    soft_membership: in which categories an item counts (`interests`).
  """

  loss_name = 'sane'
  flags = ('clusters', 'sane_variant')
  host = ('context', 'seed', 'users', 'band', 'shift', 'interests', 'scorer', 'scorer_before')

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    options = config.sane
    self.refresh_epochs = options.refresh_epochs
    self.chooses = options.candidates > 1
    users = np.unique(context.users)
    users = users[users < context.num_old_users]
    self.users = tf.constant(users, tf.int32)
    self.clusters = clustering.REGISTRY[config.clusters](config, context, seed)
    self.interests = (SoftCategories if options.soft_membership else Categories)(
        self.clusters, context.num_items)
    self.band = BANDS[options.band](config, context, seed)
    self.shift = SHIFTS[options.shift](config, context, seed, self.interests)
    self._current = context.block.select(users)
    self._previous = self.shift.earlier.select(users)
    self._rankings = Rankings(
        users, context.history if options.exclude_history else context.positives, config.train.ranking)
    self.table = ItemTable(users, self.size, context.positives)
    self.cumulative = tf.Variable(tf.zeros(self.table.items.shape), trainable=False,
                                  name='reservoir_cumulative')
    # Only what is learned is a variable, and in checkpoints.
    self.balancing = tf.Variable(np.ones(context.num_items, np.float32), trainable=False,
                                 name='balancing') if options.balance else None
    # Under these names version 0.1 kept in its checkpoints what the parts own.
    for name, owner, attribute in (('_first', self.band, 'first'), ('category', self.interests, 'category'),
                                   ('concentration', self.shift, 'concentration'),
                                   ('membership', self.interests, 'membership')):
      if hasattr(owner, attribute):
        setattr(self, name, getattr(owner, attribute))

  @classmethod
  def check(cls, config, interactions):
    clustering.REGISTRY[config.clusters].check(interactions)

  @property
  def items(self) -> tf.Variable:
    """[num_slots, size] int32 the reservoirs."""
    return self.table.items

  @property
  def first_rank(self) -> int:
    """First rank of the reservoirs, from 1."""
    return self.band.first_rank

  @property
  def size(self) -> int:
    """|Q|."""
    return self.band.size

  def study(self, before):
    self.band.study(before, self.scorer_before)

  def report(self):
    users = {}
    if self.shift.tells:
      moved = [self.explain(start, stop)['shift'] for start, stop in self.table.chunks(8 * self.size)]
      users['shifted'] = self.table.users[np.concatenate(moved).any(axis=1)] if moved else self.table.users
    return Report({**self.band.report(), **self.shift.report()}, users)

  def rank(self, user_vectors, item_vectors):
    return self._rankings.rank(user_vectors, item_vectors, self.first_rank - 1 + self.size, self.scorer)

  def refresh(self, user_vectors, item_vectors, epoch):
    """Algorithm 1: clusters, then reservoir and probabilities of every slot."""
    self.interests.assign(item_vectors, epoch)
    first = self.first_rank - 1
    items = self._rankings.take(user_vectors, item_vectors, first + self.size, self.scorer)[:, first:]
    self.table.assign(items)
    if self.balancing is not None:
      self.balancing.assign(posterior.balancing_weights(
          items, self.context.positives.degree[self.table.users], self.context.num_items,
          self.config.sane.balance))
    if epoch == 0:
      self.shift.fit()
    fellows = workers.current()
    own = fellows.share(self.table.num_slots)
    for start, stop in self.table.chunks(self.size * self.interests.floats_an_item, own):
      self.cumulative[start:stop].assign(self.running_sums(start, stop))
    if fellows.count > 1 and self.table.num_slots:
      self.cumulative.assign(fellows.gather(self.cumulative[own].numpy()))

  def running_sums(self, start: int, stop: int, on_device: Optional[bool] = None):
    """[n, size] float32 running sums of the probabilities of slots start to stop - 1.

    Args:
      start, stop: the slots.
      on_device: whether TensorFlow's device computes them; None asks whether that is a GPU. A shift by evidence
        and soft memberships are the host's in any case.
    """
    options = self.config.sane
    on_device = ranking.has_gpu() if on_device is None else on_device
    if not on_device or options.shift != 'printed' or options.soft_membership:
      return np.cumsum(self.explain(start, stop)['probability'], axis=1, dtype=np.float32)
    category, number = self.interests.category, self.interests.num_categories
    current, previous = (device.histogram(edges, start, stop, category, number)
                         for edges in (self._current, self._previous))
    return device.cumulative(self.items[start:stop], self.table.count[start:stop], category, current, previous, options,
                             self.balancing)

  def _histogram(self, edges: csr.Csr, start: int, stop: int) -> np.ndarray:
    """[n, K] interactions of slots start to stop - 1 in each category."""
    rows = np.repeat(np.arange(stop - start), np.diff(edges.indptr[start:stop + 1]))
    return self.interests.histogram(
        rows, edges.indices[edges.indptr[start]:edges.indptr[stop]], stop - start)

  def explain(self, start: int, stop: int) -> Dict[str, np.ndarray]:
    """Every quantity of section 5.2 for slots start to stop - 1."""
    current = self._histogram(self._current, start, stop)
    previous = self._histogram(self._previous, start, stop)
    items = self.items[start:stop].numpy()
    held = np.arange(self.size) < self.table.count[start:stop].numpy()[:, None]
    weight = valid = held.astype(np.float32)
    counts = self.interests.count_reservoir(items, valid)
    shift, alpha = self.shift.prior(current, previous, counts, valid.sum(axis=1, keepdims=True))
    if self.config.sane.uniform_theta:
      theta = item_theta = np.full_like(alpha, 1. / alpha.shape[1])
    else:
      theta = posterior.posterior_mean(alpha, counts)
      item_theta = self.shift.item_theta(theta, counts)
    if self.balancing is not None:
      weight = valid * self.balancing.numpy()[items]
    probability = posterior.item_probabilities(self.interests.of_items(item_theta, items), weight)
    return {
        'current': current, 'previous': previous, 'shift': shift, 'alpha': alpha, 'counts': counts,
        'theta': theta, 'category': self.interests.category.numpy()[items], 'probability': probability}

  def draw(self, users: tf.Tensor, positives: tf.Tensor, seeds: Seeds) -> Draw:
    """Equation 10: items with replacement, the multinomial N_u of the derivation."""
    del positives

    def place(random, count, row):
      del count
      cumulative = tf.gather(self.cumulative, row)
      point = random * cumulative[:, -1:]
      # The first item whose running sum exceeds the point.
      return tf.searchsorted(cumulative, point, side='right')

    def log_probability(places, count, row):
      del count
      cumulative = tf.gather(self.cumulative, row)
      below = tf.gather(tf.pad(cumulative, [[0, 0], [1, 0]]), places, batch_dims=1)
      share = (tf.gather(cumulative, places, batch_dims=1) - below) / cumulative[:, -1:]
      # Differences of running sums have rounding errors: an item that was drawn is not impossible.
      return tf.math.log(tf.maximum(share, _SMALLEST))

    draws = self.num_slots * self.config.sane.candidates
    return Draw(*self.table.draw(users, draws, seeds, place, log_probability))

  def choose(self, positive, candidate, draw, seeds):
    return hardest_choice(candidate, draw, self.num_slots)

  def probabilities(self, user, positive, scores):
    def by_place(slot, count):
      cumulative = self.cumulative[slot, :count].numpy().astype(np.float64)
      return np.diff(cumulative, prepend=0.) / cumulative[-1]
    return hardest_probabilities(
        scores, self.table.probabilities(user, by_place), self.config.sane.candidates)

  def losses(self, batch):
    return self.clusters.losses(batch)
