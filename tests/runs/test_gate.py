"""The gate: who is measured how, and what is decided."""
import numpy as np
import pytest
import scipy.stats

from graphsane_tf.blocks.stream import Block
from graphsane_tf.blocks import context as contexts
from graphsane_tf.evaluation import metrics, protocol, ranking
from graphsane_tf.runs import changes, gate
from tests import logs

METRIC = 'recall@20'


def result(values):
  values = np.asarray(values, float)
  return protocol.EvaluationResult({METRIC: float(values.mean())}, {}, {},
                                   {'user': np.arange(len(values)), METRIC: values})


def test_the_better_move_is_compared_with_the_best_rival():
  rng = np.random.default_rng(0)
  measured = {name: rng.random(50) + bonus for name, bonus in (
      ('trained', .2), ('graph_only', .3), ('current', .25), ('popularity', 0.))}
  found = gate.decide({name: result(values) for name, values in measured.items()}, .05)
  difference = measured['graph_only'] - measured['current']
  low, high = scipy.stats.t.interval(.95, 49, difference.mean(), scipy.stats.sem(difference))
  assert (found['decision'], found['chosen'], found['difference']['against']) == ('graph_only', 'graph_only', 'current')
  np.testing.assert_allclose([found['difference'][name] for name in ('mean', 'low', 'high')],
                             [difference.mean(), low, high])
  assert found['options']['popularity'] == {METRIC: measured['popularity'].mean()} and found['users'] == 50
  assert f'{low:+.4f} to {high:+.4f} over 50 users' in found['reason']


@pytest.mark.parametrize('trained, current, popularity, margin, decision', [
    (.96, 1., .5, .05, 'trained'), (.94, 1., .5, .05, 'refused'), (.94, .9, 1., .05, 'refused'),
    (.94, 1., .5, .07, 'trained'), (1., 1., 1., 0., 'trained'), (.999, 1., 0., 0., 'refused'),
    (0., 0., 0., 0., 'trained')])
def test_the_margin(trained, current, popularity, margin, decision):
  values = {'trained': trained, 'graph_only': 0., 'current': current, 'popularity': popularity}
  found = gate.decide({name: result([value] * 3) for name, value in values.items()}, margin)
  assert found['decision'] == decision
  assert ('more than the margin' in found['reason']) == (decision == 'refused')


def test_a_tie_of_the_moves_is_for_training_and_one_user_has_no_interval():
  found = gate.decide({'graph_only': result([.5]), 'trained': result([.5]), 'current': result([.5])}, .05)
  assert found['decision'] == 'trained' and found['difference']['low'] is None


def test_few_users_choose_together_with_earlier_updates():
  def earlier(users, trained, memory):
    return {'users': users, 'options': {'trained': {METRIC: trained}, 'memory': {METRIC: memory}}}

  measured = {'trained': result([.4] * 10), 'memory': result([.3] * 10), 'current': result([.2] * 10),
              'popularity': result([.1] * 10)}
  assert gate.decide(measured, .05)['chosen'] == 'trained'
  found = gate.decide(measured, .05, [{'users': 9, 'options': {'trained': {METRIC: 1.}}}, earlier(90, .1, .2)])
  assert (found['decision'], found['chosen'], found['difference']['against']) == ('memory', 'memory', 'current')
  assert found['pooled']['users'] == 100 and found['pooled']['updates'] == 2
  assert found['pooled'][METRIC] == pytest.approx({'trained': (4 + 9) / 100, 'memory': (3 + 18) / 100})
  # Enough users need no others; nor does what came before them.
  many = {name: result([value.metrics[METRIC]] * gate.ENOUGH_USERS) for name, value in measured.items()}
  assert gate.decide(many, .05, [earlier(9000, .1, .2)])['chosen'] == 'trained'
  assert gate.decide(measured, .05, [earlier(gate.ENOUGH_USERS, .2, .1), earlier(9000, .1, .9)])['chosen'] == 'trained'
  # What they have chosen must not be below a rival today.
  measured['current'] = result([.35] * 10)
  assert gate.decide(measured, .05, [earlier(90, .1, .2)])['decision'] == 'trained'
  measured['current'] = result([.5] * 10)
  assert gate.decide(measured, .05, [earlier(90, .1, .2)])['decision'] == 'refused'


def test_rows_that_were_judged_on_before_do_not_count_twice():
  def manifest(judged, numbering=0, kind='trained', options=('trained',)):
    return {'kind': kind, 'numbering': numbering, 'measured': {'judged_rows': judged},
            'gate': {'options': dict.fromkeys(options, {}), 'judged': judged}}

  manifests = [manifest([900, 1000]), manifest([980, 1100], numbering=1), manifest([1150, 1200]),
               manifest(None, options=()), manifest([1000, 1100], kind='rollback'),
               # Refused, and now judged on again together with a few rows more.
               manifest([1250, 1301])]
  found = gate.earlier_gates(iter(manifests), 1, 1300)
  assert [one['judged'] for one in found] == [[1250, 1301], [1150, 1200], [980, 1100], [900, 1000]]
  found = gate.earlier_gates(manifests, 0, 1300)
  assert [one['judged'] for one in found] == [[1150, 1200], [980, 1100], [900, 1000]]
  assert [one['judged'] for one in gate.earlier_gates(manifests, 0, 1301)][0] == [1250, 1301]


def block_context(log, first, stop):
  users, items = log.user[:stop].max() + 1, log.item[:stop].max() + 1
  previous = Block(0, slice(0, first), slice(0, 0), slice(0, 0), log.user[:first].max() + 1, log.item[:first].max() + 1)
  return contexts.cut(log, Block(1, slice(first, stop), slice(0, 0), slice(0, 0), users, items), previous)


def test_a_model_is_measured_as_it_is_served():
  """Known users by the model, others by popularity, all of them in one list of pairs."""
  log = logs.growing_log()
  context = block_context(log, 100, 250)
  assert context.num_users < log.num_users
  rng = np.random.default_rng(0)
  scorer = ranking.DotProduct(rng.normal(size=(context.num_users, 4)), rng.normal(size=(context.num_items, 4)))
  rows = slice(400, 600)
  judge = gate.Judge(log.user[rows], log.item[rows], log.num_users, metrics.Options([20]))
  found = judge.measure(scorer, context)
  scores = np.full((log.num_users, context.num_items), context.popularity, float)
  scores[:context.num_users] = scorer.user_vectors @ scorer.item_vectors.T
  assert (found.per_user['user'] >= context.num_users).any()
  _check(found, scores, context, log, rows)
  counts = gate.recent_counts(context, np.arange(len(log)) * 86400)
  np.testing.assert_array_equal(counts, np.bincount(log.item[243:250], minlength=context.num_items))
  _check(judge.measure_popularity(counts, context), np.tile(counts, (log.num_users, 1)), context, log, rows)


def _check(found, scores, context, log, rows):
  """Recall@20 of full score tables, user by user."""
  scores = scores.astype(float)
  scores[log.user[:context.num_rows], log.item[:context.num_rows]] = -np.inf
  for place, user in enumerate(found.per_user['user']):
    best = [item for item in np.argsort(-scores[user], kind='stable')[:20] if scores[user, item] > -np.inf]
    wanted = log.item[rows][log.user[rows] == user]
    assert found.per_user[METRIC][place] == pytest.approx(np.isin(wanted, best).mean())
  assert set(found.per_user['user']) == set(log.user[rows])


def test_popularity_change():
  log = logs.interactions_of([0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 1, 1, 0, 2, 2, 2])
  # The last four rows are 1/4 item 0 and 3/4 item 2, the four before half item 0 and half item 1.
  assert changes.popularity_change(block_context(log, 4, 8)) == pytest.approx(.75)
  assert changes.popularity_change(block_context(log, 2, 4)) == pytest.approx(1.)


def test_planted_shifts_are_found():
  """Half of the users take only new categories in the block; the others go on as before."""
  rng = np.random.default_rng(0)
  user, item = [], []
  for block in range(3):
    for one in range(20):
      moved = block == 2 and one < 10
      low = 30 if moved else 0
      user += [one] * 8
      item += [*(low + 8 * block % 24 + rng.permutation(8))] if not moved else [*(30 + rng.permutation(8))]
  category = np.repeat([0, 1], [30, 10])
  log = logs.interactions_of(user, item, category)
  context = block_context(log, 320, 480)
  assert changes.shifted_users(context, 2) == (10, 20)
