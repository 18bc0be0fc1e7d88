"""What the case study (section 6, appendix F) measures in a run: interest shifts, and what is drawn."""
from typing import Any, Dict, List

import numpy as np
import sklearn.cluster
import tensorflow as tf

from graphsane_tf import negatives
from graphsane_tf.graph import csr
from graphsane_tf.graph.draws import Complement, Membership
from graphsane_tf.random import Seeds, host_seed
from graphsane_tf.runs.incremental import IncrementalRun
from graphsane_tf.graph.scores import pair_scores
from graphsane_tf.training.store import BlockStore

# Share of users that count as moving, and the number of clusters.
HIGH_SHARE = .15
NUM_CLUSTERS = 10
_PAIRS_AT_ONCE = 2048


def interest_shift(before: csr.Csr, now: csr.Csr, cluster: np.ndarray) -> np.ndarray:
  """[num_users] ISS_u = 1/K sum_k (I^t_uk - I^{t-1}_uk)^2; NaN without rows in one of the blocks.

  Args:
    before: [num_users, num_items] interactions of block t - 1.
    now: [num_users, num_items] interactions of block t.
    cluster: [num_items] cluster of each item.
  """
  num_clusters = int(cluster.max()) + 1
  def shares(table):
    cell = table.rows().astype(np.int64) * num_clusters + cluster[table.indices]
    counts = np.bincount(cell, minlength=table.num_rows * num_clusters).reshape(-1, num_clusters)
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total > 0, counts / np.maximum(total, 1), np.nan)
  return np.mean(np.square(shares(now) - shares(before)), axis=1)


def high_shift_users(run: IncrementalRun, block: int) -> Dict[str, List[int]]:
  """Users of a block by interest shift, measured with K-means on the run's item embeddings.

  Returns:
    'high', the top 15 %, and 'rest': users with interactions in the block and in the one before.
  """
  model, context = run.load_model(block), run.context(block)
  rows = model.backbone.item_table.numpy()
  seed = int(host_seed(run.config.seed, block, name='case_study')[0])
  cluster = sklearn.cluster.KMeans(min(NUM_CLUSTERS, len(rows)), n_init=3,
                                   random_state=seed).fit_predict(rows)
  shift = interest_shift(context.previous, context.block, cluster)
  users = np.flatnonzero(np.isfinite(shift))
  users = users[np.argsort(-shift[users], kind='stable')]
  count = int(np.ceil(HIGH_SHARE * len(users)))
  return {'high': np.sort(users[:count]).tolist(), 'rest': np.sort(users[count:]).tolist()}


def drawn_shares(run: IncrementalRun, block: int) -> Dict[str, List[float]]:
  """Replays one epoch's draws of a block with its finished model and its sampler's saved state.

  Returns:
    'user' [n], and for each of them the numbers of negatives drawn and of old positives among them:
    'uniform', 'uniform_old' in the uniform slots, 'sampler', 'sampler_old' in the sampler's.
  """
  model, context = run.load_model(block), run.context(block)
  seed = (run.config.seed, block)
  sampler = negatives.REGISTRY[run.config.sampler](run.config, context, seed)
  store = BlockStore(run.workdir, block)
  if sampler.num_slots:
    store.restore(tf.train.Checkpoint(sampler=sampler), store.saved()['best'])
  user_vectors, item_vectors = model.backbone.representer(model.graph)()
  uniform = Complement(context.positives)
  old = Membership(context.history)
  uniform_slots = run.config.train.num_negatives - sampler.num_slots

  @tf.function(reduce_retracing=True)
  def step(users, positives, counter):
    seeds = Seeds(counter)
    items, weight = uniform.draw(users, uniform_slots, seeds.next())
    result = [weight, weight * tf.cast(old.contains(users, items), tf.float32)]
    if not sampler.num_slots:
      return tf.pad(tf.reduce_sum(tf.stack(result, axis=1), axis=2), [[0, 0], [0, 2]])
    draw = sampler.draw(users, positives, seeds)
    items, weight = draw.items, draw.weight
    if sampler.chooses:
      places = tf.concat([positives[:, None], items], axis=1)
      scores = pair_scores(tf.gather(user_vectors, users), item_vectors, places)
      choice = sampler.choose(scores[:, 0], scores[:, 1:], draw, seeds)
      # Where a choice has further columns (partners of a mixture), the negatives come first.
      columns = choice.columns[:, :sampler.num_slots]
      items = tf.gather(items, columns, batch_dims=1)
      weight = choice.weight[:, :sampler.num_slots]
    drawn = tf.cast(weight > 0, tf.float32)
    result += [drawn, drawn * tf.cast(old.contains(users, items), tf.float32)]
    return tf.stack([tf.reduce_sum(part, axis=1) for part in result], axis=1)

  counts = [step(tf.constant(context.users[k:k + _PAIRS_AT_ONCE]),
                 tf.constant(context.items[k:k + _PAIRS_AT_ONCE]),
                 tf.constant(host_seed(*seed, k, name='case_study'))).numpy()
            for k in range(0, len(context.users), _PAIRS_AT_ONCE)]
  users, place = np.unique(context.users, return_inverse=True)
  sums = np.zeros((len(users), 4))
  np.add.at(sums, place, np.concatenate(counts))
  names = ('uniform', 'uniform_old', 'sampler', 'sampler_old')
  return {'user': users.tolist(), **{name: sums[:, k].tolist() for k, name in enumerate(names)}}


def study_seed(groups: Dict[int, Dict[str, List[int]]], drawn: Dict[int, Dict[str, List[float]]],
               recall: Dict[tuple, float]) -> Dict[str, Dict[str, Any]]:
  """One sampler and seed: both groups' recall and shares of old positives, over all blocks.

  Args:
    groups: block to `high_shift_users`.
    drawn: block to `drawn_shares`.
    recall: test recall of each (block, user).

  Returns:
    'high' and 'rest' to users, recall, recalls (of each (block, user)), old_share (among all negatives) and
    sampler_old_share (among the sampler's own; the uniform ones if it has none); NaN becomes None.
  """
  study: Dict[str, Dict[str, Any]] = {}
  for group in ('high', 'rest'):
    recalls = {(block, user): recall[block, user] for block, users in groups.items() for user in users[group]
               if (block, user) in recall}
    values = list(recalls.values())
    sums = np.zeros(4)
    for block, counts in drawn.items():
      inside = np.isin(counts['user'], groups[block][group])
      sums += [np.sum(np.array(counts[name])[inside])
               for name in ('uniform', 'uniform_old', 'sampler', 'sampler_old')]
    uniform, uniform_old, own, own_old = sums
    total = max(uniform + own, 1.)
    study[group] = {
        'users': len(values), 'recall': float(np.mean(values)) if values else None, 'recalls': recalls,
        'old_share': float((uniform_old + own_old) / total),
        'sampler_old_share': float(own_old / own if own else uniform_old / max(uniform, 1.))}
  return study
