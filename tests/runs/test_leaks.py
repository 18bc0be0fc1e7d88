"""Nothing later than a block's training rows reaches its weights."""
import dataclasses
import functools
import shutil

import numpy as np
import pandas as pd
import pytest

from graphsane_tf.data import drift
from graphsane_tf.blocks.stream import BlockStream
from graphsane_tf.runs import incremental, store as stores, updating
from graphsane_tf.training.scoring import Scoring
from graphsane_tf.training.store import BlockStore
from tests import logs, store_files


def _with_other_future(log, start, seed):
  """The same log with every row from `start` on replaced, new users and items among them."""
  rng = np.random.default_rng(seed)
  count = len(log) - start
  users, items = log.num_users + 40, log.num_items + 40
  taken = set(zip(log.user[:start].tolist(), log.item[:start].tolist()))
  pairs = []
  while len(pairs) < count:
    pair = (int(rng.integers(users)), int(rng.integers(items)))
    if pair not in taken:
      taken.add(pair)
      pairs.append(pair)
  pairs = np.array(pairs)
  category = np.concatenate([log.item_category, rng.integers(6, size=40)])
  changed = logs.interactions_of(
      np.concatenate([log.user[:start], pairs[:, 0]]),
      np.concatenate([log.item[:start], pairs[:, 1]]), category)
  return dataclasses.replace(changed, time=log.time, fingerprint=f'changed-{seed}')


def _over_days(log):
  """The same log with fewer rows on each day than on the one before, so that rows and days are cut elsewhere."""
  return dataclasses.replace(log, time=(np.sqrt(np.arange(len(log))) * 86_400).astype(np.int64))


@pytest.fixture(name='recorded', scope='module')
def recorded_fixture(tmp_path_factory):
  """Runs blocks 0 and 1 and returns (states, weights after every epoch of block 1); each run once."""
  drifting, small = drift.generate('small'), _over_days(logs.random_log(rows=1500, users=50, items=60))

  def future(log, changed, validation, by):
    block = BlockStream(log, by=by, validation=validation).block(1)
    starts = {'test': (block.test.start, 1), 'validation': (block.validation.start, 2),
              'training': (block.train.stop - 5, 1)}
    return _with_other_future(log, *starts[changed]) if changed in starts else log

  @functools.lru_cache(None)
  def run(changed, variant, validation, by='rows'):
    weights, log = [], drifting if variant == 'adaptive' else small
    save = BlockStore.save

    def recording(self, checkpoint, tag):
      if self.folder.name == 'block_1':
        variables = {**checkpoint.backbone.named_variables(),
                     **{v.name: v for v in checkpoint.optimizer.variables()},
                     **{v.name: v for v in checkpoint.sampler.variables}}
        weights.append({key: v.numpy() for key, v in variables.items()})
      save(self, checkpoint, tag)

    plain = {'kd': 'sgct', 'sampler': 'sane', 'train__batch_size': 256, 'train__base_epochs': 1, 'train__epochs': 4,
             'blocks__validation': validation, 'blocks__by': by}
    # MGCCF has nearest neighbours, which are computed from the block's rows, too.
    variants = {'adaptive': {'sane_variant': 'adaptive', 'backbone': 'mgccf'},
                'band': {'sane_variant': 'band', 'backbone': 'lightgcn'},
                'memory': {'sane_variant': 'adaptive', 'backbone': 'lightgcn', 'memory': 'ease', 'kd': 'none',
                           'memory_options__offset': .5, 'train__epochs': 2},
                # As `--recipe=strong`, with everything that studies a block beside it.
                'strong': {'sane_variant': 'adaptive', 'backbone': 'lightgcn', 'memory': 'ease', 'train__epochs': 2,
                           'train__loss': 'softmax', 'train__epoch_zero': True, 'kd_strength': .3,
                           'train__new_row_moments': 'corrected', 'replay': 'inverse_degree', 'clusters': 'categories'},
                'retrained': {'backbone': 'lightgcn', 'memory': 'ease', 'full_retrain': True, 'kd': 'none',
                              'train__base_epochs': 2}}
    config = logs.tiny_config(**{**plain, **variants[variant]})
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(BlockStore, 'save', recording)
      job = incremental.IncrementalRun(config, future(log, changed, validation, by),
                                       tmp_path_factory.mktemp(changed), log=lambda line: None)
      job.run([0, 1])
    return job.results()['blocks'], weights
  return run


def _same(a, b):
  return all(np.array_equal(a[name], b[name]) for name in a) and a.keys() == b.keys()


@pytest.mark.parametrize('variant,validation,by', [
    ('band', 'next_half', 'rows'), ('adaptive', 'next_half', 'rows'), ('band', 'share', 'rows'),
    ('memory', 'next_half', 'rows'), ('strong', 'next_half', 'days'), ('strong', 'share', 'days'),
    ('retrained', 'next_half', 'rows')])
def test_changing_the_future_changes_nothing(recorded, variant, validation, by):
  blocks, weights = recorded('plain', variant, validation, by)

  # Test rows of the block and everything later: the same weights to the last bit, and the same epoch.
  other_blocks, other_weights = recorded('test', variant, validation, by)
  assert len(weights) == len(other_weights)
  assert all(_same(a, b) for a, b in zip(weights, other_weights))
  for name in ('epochs', 'best_epoch', 'validation'):
    assert blocks[1][name] == other_blocks[1][name]
  assert weights
  if 'mixing' in blocks[1]:
    for name in ('chosen', 'evidence', 'validated'):
      assert blocks[1]['mixing'][name] == other_blocks[1]['mixing'][name]
  assert blocks[1]['test'] != other_blocks[1]['test']

  # Validation rows too: only the epoch that is chosen may differ.
  other_blocks, other_weights = recorded('validation', variant, validation, by)
  common = min(len(weights), len(other_weights))
  assert all(_same(a, b) for a, b in zip(weights[:common], other_weights[:common]))
  assert blocks[1]['validation'] != other_blocks[1]['validation']


def test_the_check_notices_a_change_in_the_training_rows(recorded):
  _, weights = recorded('plain', 'band', 'next_half')
  _, other = recorded('training', 'band', 'next_half')
  assert not all(a.keys() == b.keys() and _same(a, b) for a, b in zip(weights, other))


def test_offsets_are_of_the_rows_before_the_block(tmp_path, monkeypatch):
  log, asked = logs.random_log(rows=1500, users=50, items=60), []
  offsets = Scoring.offsets

  def recorded(self, user_vectors, item_vectors, context, share):
    asked.append((self.context.num_rows, self.recollection.statistics.taken.nnz, context.own.start))
    return offsets(self, user_vectors, item_vectors, context, share)

  monkeypatch.setattr(Scoring, 'offsets', recorded)
  config = logs.tiny_config(backbone='lightgcn', memory='ease', memory_options__offset=.5, train__base_epochs=1,
                            train__epochs=1)
  incremental.run(config, log, tmp_path, blocks=[0, 1], log=lambda line: None)
  first = BlockStream(log).block(1).train.start
  assert asked == [(first, first, first)]


def test_rows_that_the_gate_judges_on_change_no_candidate(tmp_path, monkeypatch):
  """Other rows, of strangers and new items, among which nothing of the candidate, its epochs and its mixture moves."""
  quiet = lambda line: None
  days = store_files.write_days(tmp_path)
  updating.create(tmp_path / 'plain', days['history'], store_files.config(
      memory='ease', sampler='sane', sane_variant='adaptive', kd='sgct', train__loss='softmax'), say=quiet)
  shutil.copytree(tmp_path / 'plain', tmp_path / 'other')
  weights, manifests, save = {}, {}, BlockStore.save

  def recording(self, checkpoint, tag):
    if 'choose' in self.folder.parts:
      variables = {**checkpoint.backbone.named_variables(), **{v.name: v for v in checkpoint.sampler.variables}}
      weights.setdefault(self.folder, []).append({key: v.numpy() for key, v in variables.items()})
    save(self, checkpoint, tag)

  monkeypatch.setattr(BlockStore, 'save', recording)
  rows = pd.read_csv(days['monday'])
  for name in ('plain', 'other'):
    if name == 'other':
      place = np.arange(manifests['plain']['measured']['judged_rows'][0] - 6000, len(rows))
      rows.loc[place, 'user'] = [f'stranger{one}' for one in place]
      rows.loc[place[::2], 'item'] = [f'thing{one}' for one in place[::2]]
    rows.to_csv(tmp_path / 'day.csv', index=False)
    updating.update(stores.Store(tmp_path / name), tmp_path / 'day.csv', publish='trained', say=quiet)
    manifests[name] = stores.Store(tmp_path / name).manifest()
  one, two = weights.values()
  assert one and len(one) == len(two) and all(_same(a, b) for a, b in zip(one, two))
  for part in ('measured', 'mixing', 'mixture', 'trained'):
    assert manifests['plain'][part] == manifests['other'][part]
  before, after = (manifests[name]['gate']['options'] for name in ('plain', 'other'))
  assert all(before[name] != after[name] for name in ('trained', 'graph_only', 'memory', 'recent', 'current'))


@pytest.mark.parametrize('peer', ['ease', 'recent_popularity'])
def test_the_future_chooses_no_settings_of_a_peer(tmp_path, peer):
  log, found = logs.random_log(rows=1500, users=50, items=60), {}
  block = BlockStream(log).block(1)
  for changed, start in (('nothing', None), ('test', block.test.start), ('validation', block.validation.start)):
    changed_log = log if start is None else _with_other_future(log, start, 1)
    found[changed] = incremental.run(logs.tiny_config(peer=peer), changed_log, tmp_path / changed, blocks=[0, 1],
                                     log=lambda line: None)['blocks'][1]
  assert found['nothing']['tried'] == found['test']['tried'] != found['validation']['tried']
  assert found['nothing']['settings'] == found['test']['settings']
  assert found['nothing']['test'] != found['test']['test']
