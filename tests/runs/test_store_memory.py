"""A store whose model has a memory."""
import numpy as np
import tensorflow as tf

from graphsane_tf.evaluation import ranking
from graphsane_tf.memory import mixing
from graphsane_tf.runs import store as stores, updating
from graphsane_tf.training import scoring
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
      *model.backbone.representer(model.graph)(), context, context.own, (store.config.seed, manifest['update']))
  assert stores.evidences_of(manifest) == [told] and len(told) == len(mixing.candidates(True))

  # What is served is what the store's own scorer ranks: all of today's rows are in the memory.
  scorer = store.scorer()
  assert scorer.profile.nnz == manifest['data']['rows'] == 7200
  users = np.arange(20)
  _, scores = ranking.top_k(scorer, users, store.context_of(manifest, kept).history, 5)
  served = tf.saved_model.load(str(store.versions.path(manifest['number']))).signatures['serving_default'](
      user_id=tf.constant(kept.interactions.user_ids[users].astype(str)), k=tf.constant(5))
  np.testing.assert_allclose(served['score'], scores, rtol=1e-3, atol=1e-3)

  # Somebody who is forgotten is not in the memory either.
  updating.update(store, None, forget_users=[str(kept.interactions.user_ids[0])], say=QUIET)
  assert store.scorer().profile.shape[0] == scorer.profile.shape[0] - 1
  assert stores.evidences_of(store.manifest()) == [told]
