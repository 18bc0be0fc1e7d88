"""Rows as changes of the configuration: their flags, their folders, and the cells they share."""
import pathlib

import pytest

from graphsane_tf import files
from graphsane_tf.config import default_config
from graphsane_tf.errors import UserError
from graphsane_tf.reporting import tables
from graphsane_tf.runs import overrides
from graphsane_tf.runs import grid
from graphsane_tf.runs.workdir import flatten

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAIN = flatten(default_config().to_dict())


def _another(value):
  """A value of the same type that is not the default; odd strings and floats on purpose."""
  if isinstance(value, bool):
    return not value
  if isinstance(value, list):
    return [7]
  if isinstance(value, float):
    return value / 3 + 1e-9
  return value + 1 if isinstance(value, int) else 'a,b=(c) "d" e'


def test_every_field_goes_through_the_command_line():
  wanted = {name: _another(value) for name, value in PLAIN.items() if value is not None}
  wanted |= {'sane.size': 7, 'sane.band': 'learned', 'sane.start_rank': 3, 'sane.balance': .25, 'sane.shift': 'x',
             'sane.strength': 2., 'sane.temperature': 1e-7, 'sane.exclude_history': False, 'sane.candidates': 2}
  assert wanted.keys() == PLAIN.keys()
  # `Start` reads flags as run_incremental.py does.
  start = overrides.Start(overrides.as_flags(wanted))
  assert flatten(start._config) == wanted  # pylint: disable=protected-access
  pair = overrides.as_flags({'model.fanout': (10, 5)})
  assert pair == ['--config.model.fanout=(10,5)']


@pytest.mark.parametrize('row, name', [
    ({}, 'fine_tune'), ({'kd': 'sgct'}, 'sgct'), ({'sampler': 'sane', 'kd': 'sgct'}, 'sgct-sane'),
    ({'replay': 'uniform'}, 'replay_uniform'), ({'full_retrain': True}, 'full_retrain'),
    # What is the default anyway, also where a kind of SANE sets it.
    ({'kd': 'sgct', 'sampler': 'uniform', 'clusters': 'structural'}, 'sgct'),
    ({'sampler': 'sane', 'sane.size': 100, 'clustering.num_clusters': 10}, 'sane'),
    ({'sampler': 'sane', 'sane_variant': 'adaptive', 'sane.size': 300}, 'sane-sane_variant=adaptive'),
    ({'sane.size': 100, 'sane_variant': 'adaptive', 'sampler': 'sane'}, 'sane-sane_variant=adaptive-size=100'),
    ({'sane.balance': 0., 'sane_variant': 'adaptive'}, 'sane_variant=adaptive-balance=0'),
    # A field that several sections have.
    ({'sane.temperature': .5}, 'temperature=0.5'), ({'sgct.temperature': .25}, 'sgct.temperature=0.25'),
    ({'model.fanout': (3, 4)}, 'model.fanout=_3,4_')])
def test_folder_names(row, name):
  assert overrides.Start().folder_name(row) == name


def test_a_long_name_is_cut_and_still_its_own():
  many = {f'{section}.temperature': .123456 for section in ('sane', 'sgct', 'lwckd', 'lsp', 'graphsail', 'clustering')}
  names = {overrides.Start().folder_name({**many, 'sgct.temperature': value}) for value in (.3, .4)}
  assert len(names) == 2 and max(map(len, names)) <= 120


@pytest.mark.parametrize('extra, name', [
    ([], 'sgct-sane'), (['--epochs=3', '--dataset=drift'], 'sgct-sane'),
    (['--config=configs/tiny.py'], 'sgct-sane-size=100'), (['--config=tiny'], 'sgct-sane-size=100'),
    (['--config=configs/released.py'], 'sgct-sane'), (['--config.sane.size=7'], 'sgct-sane-size=100'),
    (['--sane_variant=adaptive'], 'sgct-sane-size=100'), (['--sane'], 'sgct'), (['--kd', 'sgct'], 'sane'),
    (['--kd=sgct', '--config.kd=lsp'], 'sane'), (['--config=configs/datasets.py:netflix'], 'sgct-sane')])
def test_the_flags_of_all_cells_change_what_is_the_default(extra, name, monkeypatch):
  monkeypatch.chdir(ROOT)
  row = grid.Row('Q=100', {'kd': 'sgct', 'sampler': 'sane', 'sane.size': 100})
  assert overrides.Start(overrides.joined(extra)).folder_name(row.overrides) == name
  cell = grid.cells([row], {'drift': []}, 1, 'grid', extra)[1]
  assert cell.name == name and cell.folder.name == name
  # Whatever comes first on the command line, the row counts.
  start = overrides.Start(cell.flags)
  assert start.needed(row.overrides) == {}


def test_a_row_counts_before_the_flags_of_all_cells():
  row = grid.Row('row', {'kd': 'sgct', 'train.epochs': 5, 'sampler': 'dns'})
  extra = ['--kd=lsp', '--config.sampler=warp', '--sane', '--epochs', '2', '--config.model.l2=0.5']
  cell = grid.cells([row], {'drift': ['--dataset=drift']}, 1, 'grid', extra)[1]
  assert cell.flags == ('--dataset=drift', '--seed=0', '--config.model.l2=0.5', '--config.kd=sgct',
                        '--config.sampler=dns', '--config.train.epochs=5')


@pytest.mark.fault('bad configuration value')
@pytest.mark.parametrize('extra, words', [
    ('--config.nope=1', "--config.nope=1: the configuration has no field 'nope'"),
    ('--config.sane.nope=1', "the configuration has no field 'nope'"),
    ('--config=missing.py', '--config=missing.py: .*does not exist'),
    ('--epochs=few', '--epochs=few: .*invalid literal')])
def test_flags_that_make_no_configuration(extra, words):
  with pytest.raises(UserError, match=words):
    overrides.Start([extra])


@pytest.mark.fault('bad configuration value')
def test_rows_that_make_no_configuration(monkeypatch):
  for row, words in ((grid.Row('wrong', {'sane.sizes': 1}), 'row wrong: the configuration has no field sane.sizes'),
                     (grid.Row('both', {'full_retrain': True, 'kd': 'sgct'}), 'row both: --full_retrain')):
    with pytest.raises(UserError, match=words):
      grid.cells([row], {'drift': []}, 1, 'grid')
  # As with a distiller and a sampler of one name, in files of the user's own.
  monkeypatch.setattr(overrides.Start, 'folder_name', lambda self, changes: 'mine')
  same = [grid.Row('one', {'kd': 'sgct'}), grid.Row('two', {'sampler': 'dns'})]
  with pytest.raises(UserError, match='row two would share the folder mine'):
    grid.cells(same, {'drift': []}, 1, 'grid')


def test_an_override_is_kept_where_the_others_need_it():
  # Without `full_retrain` (which the flags of all cells set) the distiller would be refused.
  start = overrides.Start(['--full_retrain'])
  assert start.needed({'kd': 'sgct', 'full_retrain': False}) == {'kd': 'sgct', 'full_retrain': False}


def test_rows_with_another_model_have_a_base_block_of_their_own():
  rows = [grid.Row('plain'), grid.Row('light', {'backbone': 'lightgcn'}),
          grid.Row('light, sgct', {'backbone': 'lightgcn', 'kd': 'sgct'})]
  cells = {cell.name: cell for cell in grid.cells(rows, {'drift': []}, 1, 'grid')}
  assert list(cells) == ['base', 'fine_tune', 'base-backbone=lightgcn', 'backbone=lightgcn',
                         'backbone=lightgcn-sgct']
  assert cells['base-backbone=lightgcn'].flags == ('--seed=0', '--config.backbone=lightgcn')
  assert cells['backbone=lightgcn-sgct'].base.name == 'base-backbone=lightgcn'
  assert cells['fine_tune'].base.name == 'base'


def test_two_tables_share_a_cell_and_cells_of_the_previous_version_are_read(tmp_path):
  main, samplers = (next(row for row in tables.REGISTRY[name].rows if row.label == label)
                    for name, label in (('main', 'SGCT-SANE'), ('samplers', 'SGCT+SANE')))
  cell, = grid.cells([main], {'drift': ['--dataset=drift']}, 1, tmp_path)[1:]
  assert grid.cells([samplers], {'drift': ['--dataset=drift']}, 1, tmp_path)[1] == cell
  note = cell.folder.parent / 'sgct-sane.cell.json'
  for flags in (['--dataset=drift', '--seed=0', '--kd=sgct', '--sane'],
                ['--dataset=drift', '--seed=0', '--config.sampler=sane', '--config.kd=sgct']):
    files.write_json(note, {'flags': flags, 'seconds': 3.})
    assert cell.results() is None
  files.write_json(note, {'flags': ['--dataset=drift', '--seed=0', '--kd=lwckd', '--sane'], 'seconds': 3.})
  with pytest.raises(UserError, match=r'other flags .--config.kd=sgct --kd=lwckd.: choose another --workdir'):
    cell.results()


def test_full_retraining_of_the_previous_version_is_read(tmp_path):
  row = grid.Row('Full retraining', {'full_retrain': True})
  cell = grid.cells([row], {'drift': []}, 1, tmp_path, ['--epochs', '3'])[1]
  files.write_json(cell.folder.parent / 'full_retrain.cell.json',
                        {'flags': ['--seed=0', '--epochs=3', '--full_retrain'], 'seconds': 1.})
  assert cell.results() is None
