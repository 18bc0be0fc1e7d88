"""SANE: a personalised negative reservoir, with a prior from the interest shift (section 5)."""
from typing import Dict

import numpy as np
import scipy.special
import tensorflow as tf

from graphsane_tf import clustering
from graphsane_tf.graph import csr
from graphsane_tf.negatives import evidence
from graphsane_tf.negatives.base import Draw, NegativeSampler
from graphsane_tf.negatives.dns import hardest_choice, hardest_probabilities
from graphsane_tf.negatives.ranked import ItemTable, Rankings, start_rank
from graphsane_tf.random import Seeds, host_generator


# A learned band begins in this share of the catalogue, or where a fixed one does.
_DEEPEST_SHARE = .1


def shares(weight: np.ndarray) -> np.ndarray:
  """[n, K] non-negative weights over their row sums, as H / |H|; rows of zeros stay zero."""
  total = weight.sum(axis=1, keepdims=True)
  return weight / np.where(total > 0., total, 1.)


def interest_shift(current: np.ndarray, previous: np.ndarray) -> np.ndarray:
  """shift(u, t-1, t): difference of the normalised histograms, [n, K].

  A user without interactions in one of the two blocks shows no shift: his row is zero.
  """
  known = (current > 0.).any(axis=1) & (previous > 0.).any(axis=1)
  return np.where(known[:, None], shares(current) - shares(previous), np.float32(0.))


def prior(shift: np.ndarray, strength: float, size: float, temperature: float = 1.,
          sign: int = -1) -> np.ndarray:
  """alpha = lambda Q softmax(-shift), equation 6, [n, K].

  The equations of the posterior in the paper drop the minus; it belongs everywhere.
  """
  return strength * size * scipy.special.softmax(sign * shift / temperature, axis=1)


def posterior_mean(alpha: np.ndarray, counts: np.ndarray) -> np.ndarray:
  """theta = (alpha + c) / sum(alpha + c), equation 9, [n, K]."""
  return shares(alpha + counts)


def item_probabilities(theta: np.ndarray, category: np.ndarray, valid: np.ndarray) -> np.ndarray:
  """p(j) = theta_g(j) / sum over the reservoir, equation 10.

  Args:
    theta: [n, K] posterior means.
    category: [n, Q] int category g(j) of each reservoir item.
    valid: [n, Q] float32, 0 where the slot holds no item; other values weigh the items.

  Returns:
    [n, Q] probabilities, a row of zeros where the reservoir is empty.
  """
  # Like np.take_along_axis, which takes several times as long.
  cell = np.arange(len(theta))[:, None] * theta.shape[1] + category
  return shares(valid * theta.ravel()[cell])


def balancing_weights(items: np.ndarray, pairs: np.ndarray, num_items: int,
                      balance: float) -> np.ndarray:
  """n_j^-balance, with n_j the pairs whose users have item j in their reservoirs.

  Args:
    items: [n, Q] reservoirs, -1 where there is no item.
    pairs: [n] pairs of each user.
    num_items: size of the catalogue.
    balance: 0 weighs all items equally.

  Returns:
    [num_items] float64; 1 for items that are in no reservoir.
  """
  held = items >= 0
  rows = np.broadcast_to(pairs[:, None], items.shape)[held]
  return np.maximum(np.bincount(items[held], rows, num_items), 1.) ** -balance


class Sane(NegativeSampler):
  """Top-ranked unobserved items of each user, drawn by category with a shift-aware posterior.

  Users with pairs in the block have a slot each. A slot holds the `size` unobserved items from rank
  `start_rank` on, and the running sum of their probabilities, from which draws are made by
  inversion. Users the model did not know before the block get uniform negatives instead.

  With `soft_membership` an item counts in every cluster by its membership c_jk: in the histograms,
  in the counts of the reservoir, and as theta_j = sum_k c_jk theta_k in equation 10. With one-hot
  memberships that is the paper's rule.

  Parts can be replaced (`--sane_variant=adaptive` replaces all but the last):
    band = 'learned': the first rank is where the take rate of the block's own items, ranked by the
      model before it, has fallen to `max_risk` times that of ranks 1 to 20.
    shift = 'evidence': the shift of a user is a posterior mean, and only a shift that is likelier than
      none counts. alpha_k = lambda c_k tilt_k, with tilt_k proportional to exp(-shift_k / T) and mean 1
      over the reservoir, and an item's probability is its category's theta over the category's c:
      without a shift all items of the reservoir are equally likely.
    balance > 0: what stands in many reservoirs is drawn less readily (`balancing_weights`). BPR's scores
      follow how often an item is taken over how often it is a negative: without this, items that are
      popular everywhere would be pushed down for everybody, rather than what is hard for this user.
    candidates > 1: a slot draws that many items, and the step keeps the one that is hardest by then.
  """

  loss_name = 'sane'
  flags = ('clusters', 'sane_variant')

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    options = config.sane
    self.refresh_epochs = options.refresh_epochs
    self.clusters = clustering.REGISTRY[config.clusters](config, context, seed)
    users = np.unique(context.users)
    users = users[users < context.num_old_users]
    self.users = tf.constant(users, tf.int32)
    self._current = context.block.select(users)
    self._by_evidence = options.shift == 'evidence'
    before = context.before if self._by_evidence else context.previous
    self._previous = before.select(users)
    if self._by_evidence:
      self._taken_before = np.bincount(before.indices, minlength=context.num_items)
    self.chooses = options.candidates > 1
    self._rankings = Rankings(
        users, context.history if options.exclude_history else context.positives)
    first = start_rank(options, context.num_items)
    self.studies = options.band == 'learned'
    self.size = max(min(options.size, context.num_items - (0 if self.studies else first - 1)), 1)
    # Only what is learned is a variable, and in checkpoints.
    self._first, self.concentration, self.balancing = (
        tf.Variable(value, trainable=False, name=name) if used else value
        for name, value, used in (('first_rank', first, self.studies),
                                  ('concentration', 0., self._by_evidence),
                                  ('balancing', np.ones(context.num_items, np.float32),
                                   options.balance > 0)))
    self.risk = None
    self.table = ItemTable(users, self.size, context.positives)
    self.cumulative = tf.Variable(tf.zeros(self.table.items.shape), trainable=False,
                                  name='reservoir_cumulative')
    self.category = tf.Variable(tf.zeros([context.num_items], tf.int32), trainable=False,
                                name='item_category')
    self.membership = None
    if options.soft_membership:
      self.membership = tf.Variable(tf.zeros([context.num_items, self.clusters.num_clusters]),
                                    trainable=False, name='item_membership')

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
    return int(self._first)

  def study(self, user_vectors, item_vectors):
    """Learns the band from the old model's ranks of the block's items among unobserved ones.

    Args:
      user_vectors: [num_old_users, D] final representations of the model before the block.
      item_vectors: [num_old_items, D] likewise.
    """
    context = self.context
    number, depth = len(user_vectors), len(item_vectors)
    block, before = context.block.rows(), context.before
    users, items = block, context.block.indices
    known = (users < number) & (items < depth) & ~before.contains(users, items)
    if not known.any():
      return
    users, items, count = evidence.sampled_pairs(
        host_generator(*self.seed, name='risk'), users[known], items[known])
    ranks = evidence.pair_ranks(user_vectors, item_vectors, users, items, before.cut(number, depth))
    self.risk = evidence.risk_curve(ranks, count, depth)
    first = self.risk.first_rank(self.config.sane.max_risk)
    # A risk that does not fall earlier than that belongs to a model that knows nothing of the block.
    if first <= max(_DEEPEST_SHARE * context.num_items, 1.):
      self._first.assign(max(1, min(first, context.num_items - self.size + 1)))

  def report(self):
    found = {'first_rank': self.first_rank, 'size': self.size}
    if self._by_evidence:
      found['concentration'] = float(self.concentration)
    if self.risk is not None:
      found['risk'] = {
          'first_rank': self.risk.first.tolist(), 'rate': self.risk.rate.tolist(),
          'passed': self.risk.passed.tolist(), 'uniform': self.risk.uniform}
    return found

  def rank(self, user_vectors, item_vectors):
    return self._rankings.rank(user_vectors, item_vectors, self.first_rank - 1 + self.size)

  def refresh(self, user_vectors, item_vectors, epoch):
    """Algorithm 1: clusters, then reservoir and probabilities of every slot."""
    if self.membership is None:
      self.category.assign(self.clusters.assign(item_vectors, epoch))
    else:
      membership = self.clusters.memberships(item_vectors, epoch)
      self.membership.assign(membership)
      self.category.assign(tf.argmax(membership, axis=1, output_type=tf.int32))
    first = self.first_rank - 1
    items = self._rankings.take(user_vectors, item_vectors, first + self.size)[:, first:]
    self.table.assign(items)
    if self.config.sane.balance:
      self.balancing.assign(balancing_weights(
          items, self.context.positives.degree[self.table.users], self.context.num_items,
          self.config.sane.balance))
    if self._by_evidence and epoch == 0:
      self._fit_concentration()
    width = self.size * (self.clusters.num_clusters if self.membership is not None else 8)
    for start, stop in self.table.chunks(width):
      probability = self.explain(start, stop)['probability']
      self.cumulative[start:stop].assign(np.cumsum(probability, axis=1, dtype=np.float32))

  def shifted_users(self):
    if not self._by_evidence:
      return None
    moved = [self.explain(start, stop)['shift'] for start, stop in self.table.chunks(8 * self.size)]
    return self.table.users[np.concatenate(moved).any(axis=1)] if moved else self.table.users

  def valid(self, start, stop) -> np.ndarray:
    """[n, Q] float32, 1 where a reservoir of slots start to stop - 1 holds an item."""
    count = self.table.count[start:stop].numpy()
    return (np.arange(self.size) < count[:, None]).astype(np.float32)

  def _histogram(self, edges: csr.Csr, start, stop) -> np.ndarray:
    """[n, K] interactions of each slot in each category."""
    first, last = edges.indptr[start], edges.indptr[stop]
    items = edges.indices[first:last]
    rows = np.repeat(np.arange(stop - start), np.diff(edges.indptr[start:stop + 1]))
    if self.membership is not None:
      return tf.math.unsorted_segment_sum(
          tf.gather(self.membership, items), rows, stop - start).numpy()
    return _count(rows, self.category.numpy()[items], None, stop - start,
                  self.clusters.num_clusters)

  def _all_counts(self, rows: slice) -> np.ndarray:
    """[num_users, K] interactions of every user in each category, in some rows of the history."""
    users, items = self.context.rows(rows)
    return _count(users, self.category.numpy()[items], None, self.context.num_users,
                  self.clusters.num_clusters)

  def _fit_concentration(self):
    """How closely users keep to their long-run shares, from the rows just before the block."""
    stop = self.context.num_history_rows
    cut = max(stop - len(self.context.block.indices), stop // 2)
    recent, earlier = self._all_counts(slice(cut, stop)), self._all_counts(slice(0, cut))
    both = np.flatnonzero((recent.sum(axis=1) > 0) & (earlier.sum(axis=1) > 0))
    both = host_generator(*self.seed, name='concentration').permutation(both)[:evidence.MAX_USERS]
    shares_before = evidence.smoothed_shares(earlier[both], earlier.sum(axis=0))
    self.concentration.assign(evidence.fit_concentration(recent[both], shares_before))

  def _tilted(self, current, previous, counts):
    """shift and alpha of the users with evidence of a shift; the others' alpha is lambda c."""
    options = self.config.sane
    total = np.bincount(self.category.numpy(), self._taken_before, current.shape[1])
    long_run = evidence.smoothed_shares(previous, total)
    shift, real = evidence.evidence_shift(current, long_run, float(self.concentration))
    real &= (current.sum(axis=1) > 0) & (previous.sum(axis=1) > 0)
    shift = np.where(real[:, None], shift, 0.).astype(np.float32)
    tilt = np.exp(options.prior_sign * shift / options.temperature)
    return shift, options.strength * self.size * shares(counts * tilt)

  def explain(self, start: int, stop: int) -> Dict[str, np.ndarray]:
    """Every quantity of section 5.2 for slots start to stop - 1."""
    options = self.config.sane
    number = self.clusters.num_clusters
    current = self._histogram(self._current, start, stop)
    previous = self._histogram(self._previous, start, stop)
    items, valid = self.items[start:stop].numpy(), self.valid(start, stop)
    category = self.category.numpy()[items]
    if self.membership is None:
      counts = _count(np.arange(stop - start)[:, None], category, valid, stop - start, number)
    else:
      membership = tf.gather(self.membership, items)
      counts = tf.einsum('nq,nqk->nk', valid, membership).numpy()
    if self._by_evidence:
      shift, alpha = self._tilted(current, previous, counts)
    else:
      shift = interest_shift(current, previous)
      alpha = prior(shift, options.strength, self.size, options.temperature, options.prior_sign)
    theta = posterior_mean(alpha, counts)
    if options.uniform_theta:
      theta = np.full_like(theta, 1. / number)
    each = theta
    if self._by_evidence and not options.uniform_theta:
      each = theta / np.where(counts > 0., counts, np.inf)
    weight = valid * self.balancing.numpy()[items] if options.balance else valid
    if self.membership is None:
      probability = item_probabilities(each, category, weight)
    else:
      probability = shares(weight * tf.einsum(
          'nqk,nk->nq', membership, each.astype(np.float32)).numpy())
    return {
        'current': current, 'previous': previous, 'shift': shift, 'alpha': alpha, 'counts': counts,
        'theta': theta, 'category': category, 'probability': probability}

  def draw(self, users: tf.Tensor, positives: tf.Tensor, seeds: Seeds) -> Draw:
    """Equation 10: items with replacement, the multinomial N_u of the derivation."""
    del positives

    def place(random, count, row):
      del count
      cumulative = tf.gather(self.cumulative, row)
      point = random * cumulative[:, -1:]
      # The first item whose running sum exceeds the point.
      return tf.searchsorted(cumulative, point, side='right')

    number = self.num_slots * self.config.sane.candidates
    return Draw(*self.table.draw(users, number, seeds, place))

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


def _count(rows, columns, weight, num_rows, num_columns) -> np.ndarray:
  """[num_rows, num_columns] float32 sums of `weight` (None: 1) by row and column."""
  cell = rows * num_columns + columns
  found = np.bincount(cell.ravel(), None if weight is None else weight.ravel(),
                      num_rows * num_columns)
  return found.reshape(num_rows, num_columns).astype(np.float32)
