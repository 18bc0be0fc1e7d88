"""The case study against a slow oracle, and on a real run of every sampler kind."""
import numpy as np
import pytest
from scipy import stats

from graphsane_tf.graph import csr
from graphsane_tf.reporting import case_study, tables
from graphsane_tf.reporting.tables import case_study as table, samplers
from graphsane_tf.runs import incremental
from tests import logs

pytestmark = pytest.mark.usefixtures('short_exports')

_LOG = logs.random_log(rows=900, users=40, items=60)


def _run(folder, **changes):
  config = logs.tiny_config(backbone='lightgcn', blocks__num_incremental=2, train__epochs=1,
                            train__base_epochs=1, **changes)
  run = incremental.IncrementalRun(config, _LOG, folder, log=lambda line: None)
  run.run()
  return run


@pytest.fixture(scope='module', name='base')
def _base(tmp_path_factory):
  return _run(tmp_path_factory.mktemp('case') / 'uniform')


def test_interest_shift_is_the_appendix_formula():
  rng = np.random.default_rng(0)
  tables = [csr.from_pairs(*np.unique(rng.integers(0, (6, 9), (20, 2)), axis=0).T, 7, 9)
            for _ in range(2)]
  cluster = rng.integers(0, 3, 9)
  cluster[0] = 2
  found = case_study.interest_shift(*tables, cluster)
  for user in range(7):
    shares = []
    for edges in tables:
      items = edges.indices[edges.indptr[user]:edges.indptr[user + 1]]
      count = np.array([np.sum(cluster[items] == k) for k in range(3)], float)
      shares.append(count / count.sum() if count.sum() else np.full(3, np.nan))
    np.testing.assert_allclose(found[user], np.mean((shares[1] - shares[0]) ** 2))
  assert np.isnan(found[6])


def test_groups(base):
  groups = case_study.high_shift_users(base, 1)
  users = np.union1d(groups['high'], groups['rest'])
  both = np.intersect1d(_LOG.user[base.stream.rows(0)], _LOG.user[base.stream.rows(1)])
  np.testing.assert_array_equal(users, both)
  assert len(groups['high']) == int(np.ceil(.15 * len(users)))


@pytest.mark.parametrize('sampler', ['uniform', 'sane', 'demix'])
def test_replayed_draws(base, sampler, tmp_path):
  run = base if sampler == 'uniform' else _run(tmp_path / 'run', sampler=sampler,
                                               base_from=str(base.workdir))
  found = {name: np.array(values) for name, values in case_study.drawn_shares(run, 1).items()}
  context = run.context(1)
  pairs = np.bincount(context.users, minlength=context.num_users)[found['user']]
  slots = 0 if sampler == 'uniform' else run.config.train.num_sampler_negatives
  np.testing.assert_array_equal(found['uniform'], pairs * (run.config.train.num_negatives - slots))
  np.testing.assert_array_equal(found['sampler'], pairs * slots)
  assert (found['sampler_old'] <= found['sampler']).all()
  # Uniform draws meet old positives as often as there are among the items not taken in the block.
  degree = context.history.degree[found['user']]
  current = context.block.degree[found['user']]
  expected = (degree - current) / (context.num_items - current)
  share = found['uniform_old'].sum() / found['uniform'].sum()
  assert abs(share - np.average(expected, weights=found['uniform'])) < .03


def test_means_of_groups():
  groups = {1: {'high': [3], 'rest': [1, 2]}}
  drawn = {1: {'user': [1, 2, 3], 'uniform': [8., 8., 8.], 'uniform_old': [0., 4., 2.],
               'sampler': [2., 2., 2.], 'sampler_old': [1., 1., 2.]}}
  found = case_study.study_seed(groups, drawn, {(1, 1): .2, (1, 3): .5})
  assert found['high'] == {'users': 1, 'recall': .5, 'recalls': {(1, 3): .5}, 'old_share': .4, 'sampler_old_share': 1.}
  assert found['rest'] == {'users': 1, 'recall': .2, 'recalls': {(1, 1): .2}, 'old_share': .3, 'sampler_old_share': .5}
  lines = table.compare({'plain': [found], 'other': [found, found]}, 'plain')
  assert lines[1]['high']['gain'] == 0. and lines[1]['rest']['ratio'] == 1. and lines[1]['seeds'] == 2


def _study(seed, high, rest):
  """Recalls of users 0, 1, ... in block 1, whose first are the group that moves."""
  recalls = {'high': high, 'rest': rest}
  sides, first = {}, 0
  for group, values in recalls.items():
    sides[group] = {'users': len(values), 'recall': float(np.mean(values)), 'old_share': .1, 'sampler_old_share': .1,
                    'recalls': {(1, first + k): value for k, value in enumerate(values)}}
    first += len(values)
  return {'seed': seed, **sides}


def test_the_groups_changes_are_tested_against_each_other():
  rng = np.random.default_rng(0)
  plain = [_study(seed, rng.random(9), rng.random(12)) for seed in (0, 2)]
  moved = [_study(seed, rng.random(9) + .3, rng.random(12)) for seed in (2, 1, 0)]
  found = table.between(moved, plain)
  # Seeds 0 and 2 are common; a user's change is the mean over them.
  changes = {group: np.mean([[a[group]['recalls'][key] - b[group]['recalls'][key] for key in b[group]['recalls']]
                             for a, b in ((moved[2], plain[0]), (moved[0], plain[1]))], axis=0)
             for group in ('high', 'rest')}
  assert found['change_gap'] == pytest.approx(changes['high'].mean() - changes['rest'].mean())
  # Mann and Whitney's U by counting, and its p by the normal approximation that scipy's exact one is near.
  wins = np.sum(changes['high'][:, None] > changes['rest'])
  mean, deviation = 9 * 12 / 2, np.sqrt(9 * 12 * 22 / 12)
  assert found['p_value'] == pytest.approx(2 * stats.norm.sf(abs(wins - mean) / deviation), abs=.02)
  assert table.between(moved, []) == {} and table.between(moved, plain[:0]) == {}
  lines = table.compare({'plain': plain, 'moved': moved}, 'plain')
  assert 'p_value' not in lines[0] and lines[1]['p_holm'] == lines[1]['p_value'] == found['p_value']
  low, high = lines[0]['high']['recall_span']
  assert low < lines[0]['high']['recall'] < high
  shown = table._table(lines)
  line = dict(zip(shown['heads'], shown['cells'][1]))
  assert line['p'] == found['p_value'] and line['95 % interval, top 15'] == '{:.4f} to {:.4f}'.format(
      *lines[1]['high']['recall_span'])


class _Studies:
  """Stands for `analyses.Analyses`: SANE's high group gains a tenth, and draws old positives twice as often."""

  def case_study(self, dataset, rows, reference):
    assert dataset == 'drift' and reference in rows
    plain = {'users': 4, 'recall': .2, 'old_share': .01, 'sampler_old_share': .3}
    better = {**plain, 'recall': .22, 'old_share': .02}
    return {row.label: [{'high': better if row is samplers.SANE else plain, 'rest': plain}] * 2 for row in rows}


def test_the_table_and_its_sentence():
  case = tables.select(['case_study'])[0]
  shown, = case.build_for(None, 'drift', _Studies())
  assert all(len(line) == len(shown.table['heads']) for line in shown.table['cells'])
  line = dict(zip(shown.table['heads'], shown.table['cells'][-1]))
  assert line['sampler'] == 'SGCT+SANE' and line['change %, top 15'] == pytest.approx(10.)
  assert line['ratio to uniform, top 15'] == pytest.approx(2.) and line['change %, other 85'] == pytest.approx(0.)
  sentence, = case.sentences(shown)
  assert 'changed by +10.0 %, that of the others by +0.0 % (2 seeds, no test)' in sentence
  assert 'old positives are 2.0 times' in sentence
  assert case.build_for(None, 'drift', None) == []
