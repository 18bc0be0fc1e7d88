"""Names, command lines and expected times of a grid's cells."""
import json
import pathlib
import sys

import pytest

from graphsane_tf.training import grid


def _cell(dataset='drift', seed=0, name='sane', base=pathlib.Path('g/base'), flags=(),
          folder=None) -> grid.Cell:
  return grid.Cell(dataset, seed, name, pathlib.Path(folder or f'g/{dataset}/{seed}/{name}'),
                   tuple(flags), base)


@pytest.mark.parametrize('flags,extra,name', [
    ((), (), 'fine_tune'),
    (('--kd=sgct',), (), 'sgct'),
    (('--kd=sgct', '--sane'), (), 'sgct-sane'),
    (('--kd=sgct', '--sampler=warp'), (), 'sgct-warp'),
    (('--replay=uniform',), (), 'replay_uniform'),
    (('--sane', '--config.sane.size=300'), (), 'sane-size=300'),
    # What is the default anyway is not named ...
    (('--kd=sgct', '--sampler=uniform', '--clusters=structural', '--config.sane.size=100',
      '--config.clustering.num_clusters=10'), (), 'sgct'),
    # ... unless the flags of every cell change the default.
    (('--sampler=uniform',), ('--sampler=warp',), 'uniform'),
    (('--config.sane.size=100',), ('--config.sane.size=50',), 'size=100'),
    (('--config.sane.size=100',), ('--config=configs/paper.py',), 'size=100'),
    (('--sampler=uniform',), ('--config=configs/paper.py',), 'fine_tune'),
    (('--sampler=uniform',), ('--epochs=3',), 'fine_tune'),
])
def test_names(flags, extra, name):
  assert grid.cell_name(flags, extra) == name


def test_cells_of_two_data_sets_and_seeds(tmp_path):
  rows = [grid.Row('a', ('--kd=sgct',)), grid.Row('b', ('--kd=sgct', '--sampler=uniform')),
          grid.Row('c', ('--sane',), partner='a')]
  found = grid.cells(rows, {'x': ['--dataset=x'], 'y': ['--dataset=y', '--k']}, 2, tmp_path, ['--e'])
  assert [(cell.dataset, cell.seed, cell.name) for cell in found] == [
      (dataset, seed, name) for dataset in 'xy' for seed in (0, 1) for name in ('base', 'sgct', 'sane')]
  last = found[-1]
  assert last.folder == tmp_path / 'y' / 'seed1' / 'sane'
  assert last.flags == ('--dataset=y', '--k', '--seed=1', '--e', '--sane')
  assert last.base == tmp_path / 'y' / 'seed1' / 'base' == found[-3].folder
  assert found[-3].base is None and found[-3].flags == ('--dataset=y', '--k', '--seed=1', '--e')
  assert last.log_file == tmp_path / 'y' / 'seed1' / 'sane.log'


def test_command_lines():
  base, other = _cell(base=None, flags=('--a',)), _cell(flags=('--a', '--b'))
  script = pathlib.Path(grid.__file__).parents[2] / 'experiments' / 'run_incremental.py'
  assert script.exists()
  assert base.command == [sys.executable, str(script), '--a', '--block=0', '--workdir=g/drift/0/sane']
  assert other.command == [sys.executable, str(script), '--a', '--b', '--base_from=g/base',
                           '--workdir=g/drift/0/sane']


def _finish(cell, blocks, num_incremental=3, train_seconds=5.):
  cell.folder.mkdir(parents=True, exist_ok=True)
  (cell.folder / 'results.json').write_text(json.dumps({
      'config': {'blocks': {'num_incremental': num_incremental}},
      'blocks': [{'train_seconds': train_seconds}] * blocks}))


def test_a_cell_is_finished_with_its_last_block(tmp_path):
  base = _cell(base=None, name='base', folder=tmp_path / 'base')
  other = _cell(name='other', folder=tmp_path / 'other')
  assert base.results() is None and other.results() is None
  for cell, needed in ((base, 1), (other, 3)):
    _finish(cell, needed - 1)
    assert cell.results() is None
    _finish(cell, needed)
    assert len(cell.results()['blocks']) == needed


def test_notes_add_up_and_two_spellings_are_one(tmp_path):
  cell = _cell(folder=tmp_path / 'sane', flags=('--sampler=sane', '--data_dir=here'))
  assert cell.note() == {}
  cell.save_note(1.26)
  cell.save_note(2.)
  assert cell.note() == {'flags': ['--sane'], 'seconds': 3.3}
  _finish(cell, 3)
  same = _cell(folder=tmp_path / 'sane', flags=('--data_dir=there', '--sane'))
  assert same.results() == cell.results() is not None


def test_seconds_taken(tmp_path):
  noted, plain, unfinished = (_cell(name=name, folder=tmp_path / name) for name in 'abc')
  noted.save_note(40.)
  for cell, blocks in ((noted, 3), (plain, 3), (unfinished, 1)):
    _finish(cell, blocks, train_seconds=10.)
  # Without a note: starting, and a fifth more than training.
  assert grid.seconds_taken([noted, plain, unfinished]) == {noted: 40., plain: 20. + 36.}


def test_estimates():
  taken = {_cell(name='sane', seed=0): 100., _cell(name='sane', seed=1): 300.,
           _cell(name='warp', seed=0): 1_000., _cell(name='base', base=None): 7.,
           _cell(dataset='other', name='sane'): 9.}
  # The same name on the same data first, then everything on the data, bases apart.
  assert grid.estimate(_cell(seed=2), taken) == (200., True)
  assert grid.estimate(_cell(name='dns'), taken) == (1_400. / 3, True)
  assert grid.estimate(_cell(name='base', base=None, seed=2), taken) == (7., True)
  assert grid.estimate(_cell(dataset='new'), taken) == (620., False)
  for size, seconds in (('small', 40.), ('default', 180.), ('large', 1820.)):
    assert grid.estimate(_cell(dataset='new', flags=[f'--drift_size={size}']), {}) == (seconds, False)


@pytest.mark.parametrize('seconds,text', [
    (0., '0 s'), (40.4, '40 s'), (99.4, '99 s'), (100., '2 min'), (720., '12 min'),
    (5399., '90 min'), (5400., '1.5 h'), (12_600., '3.5 h')])
def test_durations(seconds, text):
  assert grid.duration(seconds) == text
