"""A store whose model has a memory."""
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf.evaluation import ranking
from graphsane_tf.memory import mixing, statistics
from graphsane_tf.recommender import Recommender
from graphsane_tf.runs import attempt, gate, store as stores, updating
from graphsane_tf.training import assembly, scoring
from tests import store_files

QUIET = lambda line: None


def test_updates_bring_the_memory_up_to_date_and_learn_how_to_mix(tmp_path):
  days = store_files.write_days(tmp_path)
  path = tmp_path / 'shop'
  updating.create(path, days['history'], store_files.config(memory='ease'), say=QUIET)
  store = stores.Store(path)
  assert store.manifest()['mixing'] == []
  outcome = updating.update(store, days['monday'], say=QUIET)
  assert outcome.decision == 'published'
  manifest, kept = store.manifest(), store.log()

  # Yesterday's model and memory predict today's rows, but for those that are held out.
  before = store.manifest(1)
  old = store.context_of(before, kept)
  model = store.model(before, old)
  first, cut = manifest['measured']['rows_trained']
  context = store.context(kept, store.block(kept.interactions, manifest['update'], first, cut))
  told = scoring.Scoring(store.config, old).evidence(
      *model.backbone.representer(model.graph)(), *context.rows(context.own), (store.config.seed, manifest['update']))
  assert stores.evidences_of(manifest) == [told] and len(told) == len(mixing.candidates(True)) + 2

  # What is served is what the store's own scorer ranks: all of today's rows are in the memory.
  scorer = store.scorer()
  assert scorer.profile.nnz == manifest['data']['rows'] == 7200
  users = np.arange(20)
  _, scores = ranking.top_k(scorer, users, store.context_of(manifest, kept).history, 5)
  served = tf.saved_model.load(str(store.versions.path(manifest['number']))).signatures['serving_default'](
      user_id=tf.constant(kept.interactions.user_ids[users].astype(str)), k=tf.constant(5))
  np.testing.assert_allclose(served['score'], scores, rtol=1e-3, atol=1e-3)

  # Its weights are those that were judged, its profiles know all rows, and that is what is read from disk.
  judged = scoring.Scoring(store.config, context)
  final = store.context_of(manifest, kept)
  whole = scoring.Scoring(store.config, final, [told], weights=judged.recollection.weights)
  assert manifest['move'] == manifest['gate']['chosen']
  # Validation rows have had their say, too.
  whole.mixture = mixing.Mixture(**manifest['mixture'])
  assert whole.mixture in told
  assert judged.recollection.weights.shape[0] <= scorer.weights.shape[0] == final.num_items
  np.testing.assert_array_equal(scorer.weights.toarray(), whole.recollection.weights.toarray())
  expected = whole(*_vectors(store.model(manifest, final)))
  np.testing.assert_allclose(scorer.profile.toarray(), expected.profile.toarray(), rtol=1e-6)
  np.testing.assert_allclose(scorer.user_vectors, expected.user_vectors, rtol=1e-5, atol=1e-6)

  # Vectors alone are not how it ranks, and whoever takes them away is told.
  lines = []
  Recommender(store, lines.append).export(tmp_path / 'vectors')
  assert [line.split(':')[0] for line in lines] == ['warning'] and 'a memory' in lines[0]

  # The memory alone: nothing of the graph model counts, but its weights are kept for the next update.
  assert {'memory', 'recent'} < set(manifest['gate']['options']) and 'never_updated' not in manifest['gate']['options']
  outcome = updating.update(store, days['tuesday'], publish='memory', say=QUIET)
  alone, kept = outcome.manifest, store.log()
  assert (alone['kind'], alone['move'], alone['trained']['epochs']) == ('memory', 'memory', 0)
  assert {**alone['mixture'], 'half_age': 0.} == dataclasses.asdict(mixing.MEMORY_ALONE)
  assert alone['mixture']['half_age'] in store.config.memory_options.half_ages
  scorer = store.scorer()
  assert not scorer.user_vectors.any() and scorer.item_vectors.any() and scorer.profile.nnz == 7260
  # Profiles fade as the manifest says, on each user's own scale.
  faded = statistics.of_all(store.context_of(alone, kept)).profile(alone['mixture']['half_age']).toarray()
  served = scorer.profile.toarray()
  np.testing.assert_allclose(served / served.max(axis=1, keepdims=True), faded / faded.max(axis=1, keepdims=True),
                             rtol=1e-5)
  before, after = store_files.weights(store, manifest['number']), store_files.weights(store, alone['number'])
  np.testing.assert_array_equal(after['user_table'][:len(before['user_table'])], before['user_table'])

  # The next day may go back to the graph model; the first version is measured beside it.
  outcome = updating.update(store, days['wednesday'], publish='recent', say=QUIET)
  options = outcome.manifest['gate']['options']
  assert list(options) == ['trained', 'graph_only', 'memory', 'recent', 'current', 'popularity', 'never_updated']
  kept, last = store.log(), outcome.manifest
  judge_rows = slice(*last['measured']['judged_rows'])
  judge = gate.Judge(kept.interactions.user[judge_rows], kept.interactions.item[judge_rows],
                     kept.interactions.num_users, assembly.measured(store.config))
  assert options['never_updated'] == judge.measure(
      store.scorer(1), store.context_of(store.manifest(1), kept)).metrics != options['current']
  scorer, recent = store.scorer(), last['mixture']
  # No profile is left that could fade.
  assert not hasattr(scorer, 'profile') and {**recent, 'half_age': 0.} == dataclasses.asdict(mixing.Mixture(0., 0., 1.))
  week = kept.interactions.time > kept.interactions.time.max() - 7 * 86400
  newest = np.bincount(kept.interactions.item[week], minlength=scorer.num_items)
  ranked = scorer.user_vectors[5] @ scorer.item_vectors.T
  assert (np.diff(newest[np.argsort(-ranked, kind='stable')]) <= 0).all() and len(np.unique(newest)) > 3

  # Somebody who is forgotten is not in the memory either; what is served stays what it was, also after a step back.
  updating.rollback(store, manifest['number'])
  scorer = store.scorer()
  updating.update(store, None, forget_users=[str(kept.interactions.user_ids[0])], say=QUIET)
  shrunk = store.manifest()
  assert store.scorer().profile.shape[0] == scorer.profile.shape[0] - 1 and stores.evidences_of(shrunk) == [told]
  assert (shrunk['move'], shrunk['mixture']) == (manifest['move'], manifest['mixture'])


def _vectors(model):
  return model.backbone.representer(model.graph)()


def test_an_update_knows_how_yesterdays_version_mixes(tmp_path, monkeypatch):
  days = store_files.write_days(tmp_path)
  path, before = tmp_path / 'shop', []
  updating.create(path, days['history'], store_files.config(memory='ease'), say=QUIET)
  store = stores.Store(path)
  served = mixing.Mixture(**store.manifest()['mixture'])
  trainer = attempt.BlockTrainer

  def noted(*values, **named):
    before.append(named['before'].mixture)
    return trainer(*values, **named)

  monkeypatch.setattr(attempt, 'BlockTrainer', noted)
  updating.update(store, days['monday'], say=QUIET)
  assert before and set(before) == {served}
  assert served != mixing.default(True, served.half_age)


@pytest.mark.parametrize('move', ['trained', 'memory'])
def test_a_small_day_after_the_history_mixes_as_the_history_did(tmp_path, monkeypatch, move):
  days = store_files.write_days(tmp_path)
  path = tmp_path / 'shop'
  decide = gate.decide
  monkeypatch.setattr(gate, 'decide', lambda *values: {**decide(*values), 'chosen': move})
  updating.create(path, days['history'], store_files.config(memory='ease', train__min_epochs=1), say=QUIET)
  store = stores.Store(path)
  base = store.manifest()
  assert base['move'] == move and base['mixture'] != dataclasses.asdict(mixing.default(True, .1))
  outcome = updating.update(store, days['tuesday'], say=QUIET)
  small = outcome.manifest
  assert small['gate']['decision'] == 'unjudged'
  assert (small['move'], small['mixture']) == (base['move'], base['mixture'])
  # `init` has trained two epochs; an update has one at least, and none where the graph model counts nothing.
  epochs, words = (0, 'no training.') if move == 'memory' else (1, 'as few epochs as an update has (1).')
  assert small['trained']['epochs'] == epochs and small['gate']['reason'].endswith(f'not judged, and {words}')
  assert store.scorer().user_vectors.any() == store.scorer(1).user_vectors.any()
