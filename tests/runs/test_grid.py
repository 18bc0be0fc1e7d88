"""Names, command lines and expected times of a grid's cells."""
import json
import pathlib
import sys

import pytest

from graphsane_tf.errors import UserError
from graphsane_tf.runs import grid

_RUN = [sys.executable, '-m', 'graphsane_tf', 'run']


def _cell(dataset='drift', seed=0, name='sane', base=pathlib.Path('g/base'), flags=(),
          folder=None) -> grid.Cell:
  return grid.Cell(dataset, seed, name, pathlib.Path(folder or f'g/{dataset}/{seed}/{name}'),
                   tuple(flags), base)


def test_cells_of_two_data_sets_and_seeds(tmp_path):
  first = grid.Row('a', {'kd': 'sgct'})
  rows = [first, grid.Row('b', {'kd': 'sgct', 'sampler': 'uniform'}),
          grid.Row('c', {'sampler': 'sane'}, partner=first)]
  found = grid.cells(rows, {'x': ['--dataset=x'], 'y': ['--dataset=y', '--k']}, 2, tmp_path,
                     ['--epochs', '3'], ['mine.py'])
  assert [(cell.dataset, cell.seed, cell.name) for cell in found] == [
      (dataset, seed, name) for dataset in 'xy' for seed in (0, 1) for name in ('base', 'sgct', 'sane')]
  common = ('--dataset=y', '--k', '--seed=1', '--epochs=3', '--plugin=mine.py')
  base, _, last = found[-3:]
  assert last.folder == tmp_path / 'y' / 'seed1' / 'sane'
  assert last.flags == (*common, '--config.sampler=sane')
  assert last.base == tmp_path / 'y' / 'seed1' / 'base' == base.folder
  assert base.base is None and base.flags == common
  assert last.log_file == tmp_path / 'y' / 'seed1' / 'sane.log'


def test_rows_with_another_model_have_another_base(tmp_path):
  rows = [grid.Row('a', {'kd': 'sgct'}), grid.Row('b', {'kd': 'sgct', 'backbone': 'lightgcn'})]
  found = {cell.name: cell for cell in grid.cells(rows, {'x': []}, 1, tmp_path, ['--backbone=pinsage'])}
  assert len(found) == 4
  bases = {name: cell for name, cell in found.items() if cell.base is None}
  assert sorted(bases) == ['base', 'base-backbone=lightgcn']
  assert bases['base'].flags == ('--seed=0', '--backbone=pinsage')
  # What a row sets counts before the flags of all cells.
  assert bases['base-backbone=lightgcn'].flags == ('--seed=0', '--config.backbone=lightgcn')
  assert {cell.base.name for cell in found.values() if cell.base} == set(bases)


def test_rows_that_differ_in_what_only_later_blocks_read_share_a_base(tmp_path):
  rows = [grid.Row('a'), grid.Row('b', {'model.graph_scope': 'block'}), grid.Row('c', {'model.new_rows': 'neighbours'})]
  found = grid.cells(rows, {'x': []}, 1, tmp_path)
  assert [cell.name for cell in found if cell.base is None] == ['base']
  assert len({cell.folder for cell in found}) == 4


def test_command_lines():
  base, other = _cell(base=None, flags=('--a',)), _cell(flags=('--a', '--b'))
  assert base.command == [*_RUN, '--a', '--block=0', '--noexport', '--workdir=g/drift/0/sane']
  assert other.command == [*_RUN, '--a', '--b', '--base_from=g/base', '--noexport',
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
  cell = _cell(folder=tmp_path / 'sane', flags=('--sampler=sane', '--data_dir=here', '--plugin=a.py'))
  assert cell.note() == {}
  cell.save_note(1.26)
  cell.save_note(2.)
  assert cell.note() == {'flags': ['--sampler=sane'], 'seconds': 3.3}
  _finish(cell, 3)
  same = _cell(folder=tmp_path / 'sane', flags=('--data_dir=there', '--sane'))
  assert same.results() == cell.results() is not None
  other = _cell(folder=tmp_path / 'sane', flags=('--sane', '--epochs=3'))
  with pytest.raises(UserError, match=r'other flags \(--epochs=3\): choose'):
    other.results()


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
