"""Runs with a memory, and runs of simple models."""
import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import peers
from graphsane_tf.errors import UserError
from graphsane_tf.evaluation import ranking
from graphsane_tf.memory import mixing
from graphsane_tf.peers import base
from graphsane_tf.runs import incremental
from graphsane_tf.training import scoring
from tests import run_files
from tests.runs import small_runs

_HALF_AGES = (1., .3, .1)


def _config(**changes):
  return small_runs.settings(**{
      'sane_variant': 'adaptive', 'memory': 'ease', 'memory_options__offset': .3, 'blocks__num_incremental': 3,
      **changes})


@pytest.fixture(name='whole', scope='module')
def whole_fixture(tmp_path_factory):
  folder = tmp_path_factory.mktemp('memory') / 'run'
  said = small_runs.run(folder, _config())
  return folder, said


def _job(folder):
  return incremental.IncrementalRun(_config(), small_runs.LOG, folder, log=lambda line: None)


def test_blocks_one_by_one_give_the_same_files(whole, tmp_path):
  """What earlier blocks have shown about mixtures is read from their states."""
  for block in range(3):
    small_runs.run(tmp_path / 'run', _config(), blocks=[block])
  run_files.assert_same(tmp_path / 'run', whole[0])


def test_the_mixture_is_the_one_that_the_state_before_would_have_shown_best(whole):
  folder, said = whole
  job = _job(folder)
  entries = json.loads((folder / 'results.json').read_text())['blocks']
  evidences = []
  for index in range(3):
    model, own = job.load_model(index), scoring.Scoring(job.config, job.context(index))
    rows = job.stream.block(index).validation
    validated = own.evidence(*model.backbone.representer(model.graph)(), job.interactions.user[rows],
                             job.interactions.item[rows], (job.config.seed, index, 1))
    assert scoring.from_json(entries[index]['mixing']['validated']) == pytest.approx(validated, abs=1e-6)
    if not index:
      assert entries[0]['mixing']['chosen'] == dataclasses.asdict(mixing.choose([validated], True, _HALF_AGES))
      continue
    model, context = job.load_model(index - 1), job.context(index)
    vectors = [np.asarray(part) for part in model.backbone.representer(model.graph)()]
    before = scoring.Scoring(job.config, job.context(index - 1))
    later = slice((context.own.start + context.own.stop) // 2, context.own.stop)
    found = before.evidence(*vectors, *context.rows(later), (job.config.seed, index))
    evidences.append(found)
    assert scoring.from_json(entries[index]['mixing']['evidence']) == pytest.approx(found, abs=1e-6)
    chosen = mixing.choose([*evidences, validated], True, _HALF_AGES)
    assert entries[index]['mixing']['chosen'] == dataclasses.asdict(chosen)
    assert f'block {index} score: {chosen.words()}' in said


def test_the_saved_model_answers_as_the_run_ranks(whole):
  folder, _ = whole
  job = _job(folder)
  context, model = job.context(2), job.load_model(2)
  entries = json.loads((folder / 'results.json').read_text())['blocks']
  evidences = [scoring.from_json(entry['mixing']['evidence']) for entry in entries[1:]]
  evidences.append(scoring.from_json(entries[2]['mixing']['validated']))
  scorer = scoring.Scoring(job.config, context, evidences)(*model.backbone.representer(model.graph)())
  users = np.arange(min(30, context.num_users))
  ids, scores = ranking.top_k(scorer, users, context.history, 8)
  served = tf.saved_model.load(str(folder / 'export' / '2')).signatures['serving_default'](
      user_id=tf.constant([str(job.interactions.user_ids[user]) for user in users]), k=tf.constant(8))
  finite = scores > -np.inf
  np.testing.assert_allclose(np.where(finite, served['score'], 0), np.where(finite, scores, 0), atol=1e-4)
  names = np.array([str(name).encode() for name in job.interactions.item_ids])
  apart = np.abs(np.diff(scores, axis=1)) > 1e-4
  sure = finite & np.pad(apart, ((0, 0), (1, 0)), constant_values=True) & np.pad(
      apart, ((0, 0), (0, 1)), constant_values=False)
  assert sure.any() and (served['item_id'].numpy() == names[ids])[sure].all()


def test_results_tell_what_the_parts_give_alone(whole):
  entry = json.loads((whole[0] / 'results.json').read_text())['blocks'][1]
  alone = entry['mixing']['test recall@20']
  assert set(alone) == {'graph', 'memory'} and all(0 <= value <= 1 for value in alone.values())


def test_a_peer_is_a_run_whose_settings_are_chosen_by_the_blocks_so_far(tmp_path):
  config = _config(memory='none', peer='neighbours')
  said = small_runs.run(tmp_path / 'run', config)
  job = incremental.IncrementalRun(config, small_runs.LOG, tmp_path / 'run', log=lambda line: None)
  entries = json.loads((tmp_path / 'run' / 'results.json').read_text())['blocks']
  peer, shares = peers.REGISTRY['neighbours'](), []
  for index, entry in enumerate(entries):
    block, context = job.stream.block(index), job.context(index)
    values = np.array([job.evaluate(context, block.validation, peer.fit(context, **settings)).metrics['recall@20']
                       for settings in base.choices(peer.settings)])
    assert entry['tried'] == values.tolist()
    shares.append(values / values.max())
    assert entry['settings'] == base.choices(peer.settings)[np.mean(shares, axis=0).argmax()]
    tested = job.evaluate(context, block.test, peer.fit(context, **entry['settings']))
    assert entry['test'] == tested.metrics
    with np.load(tmp_path / 'run' / 'per_user' / f'block_{index}.npz') as arrays:
      np.testing.assert_array_equal(arrays['recall@20'], tested.per_user['recall@20'])
  assert 'SavedModel' not in said and 'neighbours (' in said
  assert 'block 2 is finished already.' in small_runs.run(tmp_path / 'run', config)


def test_a_peer_needs_its_base_block(tmp_path):
  with pytest.raises(UserError, match='block 0 is not finished .* run --block=all'):
    small_runs.run(tmp_path / 'run', _config(memory='none', peer='popularity'), blocks=[1])
  with pytest.raises(UserError, match='leave out --base_from'):
    small_runs.run(tmp_path / 'run', _config(peer='popularity', base_from='somewhere'))
