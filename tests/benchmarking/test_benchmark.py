"""The benchmark on tiny shapes: its table, its sections, and libraries that are missing."""
import json
import subprocess
import sys
import time

import numpy as np
import pytest

from graphsane_benchmark import figures, logs, memory, peers, plans, scoring, serving, suite, training
from graphsane_tf.errors import UserError
from graphsane_tf.runs import forecast
from graphsane_tf.training import assembly

_SHAPE = logs.Shape('tiny', 90, 130, 2_600)


@pytest.fixture(name='log', scope='module')
def _log():
  return logs.generate(_SHAPE)


@pytest.fixture(name='no_peers')
def _no_peers(monkeypatch):
  assert peers.peer('a_library_that_nobody_has') is None
  monkeypatch.setattr(peers, 'peer', lambda name: None)


def test_generated_logs_have_the_shape_asked_for(log):
  assert (len(log), log.num_users, log.num_items) == (2_600, 90, 130)
  pairs = log.user.astype(np.int64) * log.num_items + log.item
  assert len(np.unique(pairs)) == len(log)
  # Numbered in the order of first rows, as every log is.
  for part in (log.user, log.item):
    first = np.unique(part, return_index=True)[1]
    assert (np.diff(first) > 0).all()


def test_ratios_targets_and_table():
  rounds = [(2., 8.), (1., 5.), (4., 8.)]
  faster = figures.of_rounds(rounds, faster=True, section='s', name='a', shape='x',
                             target=('>=', 5.))
  assert (faster.ratio, faster.spread, faster.met) == (4., (2., 5.), False)
  slower = figures.of_rounds(rounds, section='s', name='b', shape='x', target=('<=', .3))
  assert (slower.ratio, slower.ours, slower.other, slower.met) == (.25, 2., 8., True)
  limit = figures.Figure('s', 'c', 'x', 'GiB', ours=7., target=('<=', 6.), absolute=True)
  skipped = figures.Figure('s', 'd', 'x', target=('>=', 1.), note='it is not installed')
  assert limit.met is False and skipped.met is None
  text = figures.table([faster, slower, limit, skipped])
  lines = text.splitlines()
  assert len(lines) == 7 and len({len(line) for line in lines[:6]}) == 1
  assert 'NO' in lines[2] and 'yes' in lines[3] and '<= 6GiB' in lines[4] and 'skipped' in lines[5]
  assert lines[6] == 'd: it is not installed'


@pytest.fixture(autouse=True)
def _short_rounds(monkeypatch):
  monkeypatch.setattr(figures, 'ROUND_SECONDS', 0.)


def test_both_are_timed_in_turn():
  calls = []
  figures.compare(lambda: calls.append('a'), lambda: calls.append('b'), 2, section='s', name='n',
                  shape='x')
  assert calls == ['a', 'b'] * 3


def test_short_actions_take_several_turns_a_round(monkeypatch):
  clock, calls = [0.], []

  def work(name, duration):
    calls.append(name)
    clock[0] += duration

  monkeypatch.setattr(figures.time, 'perf_counter', lambda: clock[0])
  monkeypatch.setattr(figures, 'ROUND_SECONDS', 5.)
  figure = figures.compare(
      lambda: work('a', 3. if len(calls) < 3 else 1.), lambda: work('b', 1.), 1, turns=3, calls=(2, 1),
      warm=False, section='s', name='n', shape='x')
  assert calls == ['a', 'b'] * 3
  assert (figure.ours, figure.other, figure.ratio) == pytest.approx((7 / 6, 1., 7 / 6))
  figure = figures.compare(lambda: work('a', 1.), lambda: work('b', 1.), 2, section='s', name='n',
                           shape='x')
  assert calls[6:] == ['a', 'b'] * 7


def test_missing_libraries_are_reported_and_skipped(log, no_peers):
  del no_peers
  for section in (peers.lightgcn_section, peers.implicit_section):
    figure, = section(log, 1)
    assert figure.ours is None and 'is not installed' in figure.note


def test_lightgcn_is_that_of_its_paper():
  config = peers.lightgcn_config(2048)
  assert (config.train.num_negatives, config.model.num_layers, config.model.propagation) == (1, 3, 'whole')


def test_suite_writes_what_it_shows(log, no_peers, monkeypatch, tmp_path):
  del no_peers, log
  shapes = dict.fromkeys(logs.SHAPES, _SHAPE)
  monkeypatch.setattr(logs, 'SHAPES', shapes)
  lines = []
  path = tmp_path / 'figures.json'
  suite.run(quick=True, only=['rebuild', 'evaluation', 'implicit'], repeats=1, path=str(path),
            log=lines.append)
  found = json.loads(path.read_text())['figures']
  assert [figure['section'] for figure in found] == ['rebuild', 'evaluation', 'implicit']
  assert found[0]['ratio'] > 0 and found[2]['ratio'] is None
  assert any('| figure' in line for line in lines)
  with pytest.raises(UserError, match='no section speed'):
    suite.run(quick=True, only=['speed'])
  with pytest.raises(UserError, match='folder'):
    suite.run(quick=True, path=str(tmp_path / 'none' / 'figures.json'))
  with pytest.raises(UserError, match='--log=.*is not a file'):
    suite.run(quick=True, only=['block'], log_path=str(tmp_path / 'missing.csv'))


def test_memory_cost(monkeypatch):
  measured = {mode: memory.measure(mode, _SHAPE) for mode in ('update', 'refit')}
  assert measured['update']['pairs'] == measured['refit']['pairs'] > 0
  assert measured['refit']['recall'] > 0 and measured['refit']['dense recall'] > 0

  def run(command, **options):
    assert options['check'] is False and command[-3:] == ['130', '90', '2600']
    return subprocess.CompletedProcess(command, 0, json.dumps(measured[command[-4]]), '')

  monkeypatch.setattr(memory.subprocess, 'run', run)
  seconds, peak, recall = memory.cost_section(_SHAPE)
  assert (seconds.ours, seconds.other) == tuple(measured[mode]['seconds'] for mode in ('update', 'refit'))
  assert peak.unit == 'GiB' and recall.ratio == pytest.approx(recall.ours / recall.other)
  monkeypatch.setattr(memory.subprocess, 'run', lambda command, **_: subprocess.CompletedProcess(
      command, 1, '', 'Traceback\nMemoryError'))
  failed, = memory.cost_section(_SHAPE)
  assert failed.ours is None and 'update failed: MemoryError' in failed.note


@pytest.mark.slow
def test_train_step_sections(log):
  figure, = training.step_section(log, 1, batches=(64,))
  assert figure.ratio > 0 and figure.target == ('>=', 1.5)
  figure, = training.bare_section(log, 1, batches=(64,))
  assert figure.ratio > 0


@pytest.mark.slow
def test_sampler_sections(log):
  small = {'model__embedding_dim': 4, 'train__batch_size': 64}
  figure, first = training.epoch_section(log, 1, **small)
  assert figure.ratio > 0 and first.ratio > 0 and (figure.target, first.target) == (('<=', 1.05), ('<=', 1.15))
  figure, _ = training.adaptive_section(log, 1, **small)
  assert figure.ratio > 0 and 'adaptive' in figure.name and figure.target == ('<=', 1.08)
  figures = list(training.samplers_section(log, 1, **small))
  assert len(figures) == 14 and {figure.target for figure in figures} == {('<=', 1.2), None}


@pytest.mark.slow
def test_latency_with_and_without_sane(log):
  found = list(serving.sampler_section(log, 1))
  assert [figure.name.rpartition(' ')[2] for figure in found] == ['1', '256']
  assert all(figure.ratio > 0 for figure in found)


@pytest.mark.slow
def test_block_section(log):
  figure, = training.block_section(log, 2, epochs=1)
  assert figure.ratio > 0 and figure.target == ('<=', .2) and 'block 2, 1 epochs' in figure.note


@pytest.mark.slow
def test_update_section(log):
  small = {'model__embedding_dim': 4, 'train__batch_size': 64}
  paper, strong, both = training.update_section(log, 1, **small)
  assert (paper.target, strong.target, both.target) == (('<=', .2), ('<=', .2), ('<=', 1.3))
  assert both.ratio == pytest.approx(strong.ours / paper.ours) and 'block 1, 1 epochs' in strong.note


@pytest.mark.slow
def test_tracing_section(log):
  small = {'model__embedding_dim': 4, 'train__batch_size': 64}
  for figure in training.tracing_section(log, 1, **small):
    assert 0. < figure.ours < figure.other and figure.ratio < 1. and figure.absolute


def test_rebuild_is_compared_with_the_users_it_ranks(log):
  figure, = scoring.rebuild_section(log, 1)
  assert f'of {len(np.unique(assembly.context_of(training.config_of(), log, 3).users))} users' in figure.note


@pytest.mark.slow
def test_serving_section():
  found = list(serving.serving_section(500, 1, seconds=.1))
  names = [figure.name for figure in found]
  for batch in (1, 256):
    for name in (f'SavedModel against product and top-k, batch {batch}', f'SavedModel, batch {batch}, p99',
                 f'SavedModel with a memory against product and top-k, batch {batch}',
                 f'SavedModel with a memory against without, batch {batch}', f'SavedModel, batch {batch}, 4 callers',
                 f'HTTP, batch {batch}, p50', f'HTTP, batch {batch}, 4 clients'):
      assert found[names.index(name)].ours > 0


def test_processor_seconds():
  """Rest is none of the processor's time, and what a child has used is."""
  with figures.processor_time():
    assert figures.seconds(lambda: time.sleep(.3)) < .2
    assert figures.seconds(lambda: subprocess.run([sys.executable, '-c', 'sum(range(3_000_000))'], check=True)) > .005
  assert figures.seconds(lambda: time.sleep(.3)) >= .3


def test_plans(monkeypatch):
  seconds = {'whole': 2., 'sampled': 3.}
  shape = forecast.Shape(20_000, 16_000, 60_000, 60_000)
  monkeypatch.setattr(forecast, 'step_seconds', lambda config, log: (shape, seconds[config.model.propagation], 9.))
  small = {'train__batch_size': 32}
  choices = [(name, dimension, 2048, [(60, 50, 400)]) for name, dimension in (('mgccf', 128), ('lightgcn', 64))]
  *figures_found, whole, sampled = plans.propagation_section(choices)
  assert [figure.note.split(';')[0] for figure in figures_found] == ['sampled', 'whole']
  assert [(figure.ours, figure.other, figure.met) for figure in figures_found] == [(3., 2., False), (2., 3., True)]
  assert 'step 2e+09' in whole.note and 'step 3e+09' in sampled.note
  monkeypatch.setattr(forecast, 'measure', lambda config: forecast.Costs(forecast.Work(step=1.), 1., .25))
  figure, = plans.plan_section(kind='whole', logs=[(60, 50, 400)], **small)
  # Of the processor, however many cores worked.
  assert (figure.ours, figure.other, figure.ratio, figure.met) == (1., 2., 2., False)
