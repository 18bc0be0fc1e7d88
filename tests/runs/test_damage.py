"""Files of a run that are lost or damaged: one sentence, and what can be made anew is."""
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import files
from graphsane_tf.errors import UserError
from graphsane_tf.serving import export
from graphsane_tf.runs import incremental
from graphsane_tf.training.store import BlockStore
from tests import run_files
from tests.runs.small_runs import LOG, run, settings, state_file


def change(path, **fields):
  """Changes fields of a JSON file, and its digest with them; None deletes a field."""
  saved = json.loads(path.read_text())
  saved.pop('sha256', None)
  saved = {k: v for k, v in {**saved, **fields}.items() if v is not None}
  files.write_json(path, saved)


@pytest.mark.fault('lost or damaged output')
def test_lost_and_damaged_files_of_a_block_are_made_anew(run_copy, finished_run):
  shutil.rmtree(run_copy / 'export' / '0')
  path = run_copy / 'per_user' / 'block_1.npz'
  path.write_bytes(path.read_bytes()[:-100])
  said = run(run_copy)
  assert 'note: export/0/' in said and '... is missing or damaged and is made anew.' in said
  assert 'note: per_user/block_1.npz is missing or damaged and is made anew.' in said
  run_files.assert_same(run_copy, finished_run)
  assert 'note' not in run(run_copy)


def test_a_run_without_savedmodels_has_the_same_numbers_and_can_have_them_later(finished_run, tmp_path):
  small = tmp_path / 'run'
  run(small, exports=False)
  assert not (small / 'export').exists()
  assert run_files.names(small) == [name for name in run_files.names(finished_run) if not name.startswith('export/')]
  assert 'missing' not in run(small, exports=False)
  assert 'note: export/1/saved_model.pb is missing or damaged and is made anew.' in run(small)
  run_files.assert_same(small, finished_run)
  # What has them is not asked for them.
  shutil.rmtree(small / 'export')
  assert 'missing' not in run(small, exports=False)


@pytest.mark.fault('lost or damaged output')
def test_a_flipped_byte_of_an_export_is_seen(run_copy):
  path = run_copy / 'export' / '1' / 'saved_model.pb'
  data = bytearray(path.read_bytes())
  data[len(data) // 2] ^= 1
  path.write_bytes(data)
  assert 'note: export/1/saved_model.pb is missing or damaged' in run(run_copy)


@pytest.mark.fault('lost or damaged output')
@pytest.mark.parametrize('name', ['metrics.jsonl', 'results.json'])
@pytest.mark.parametrize('damage', ['lost', 'cut', 'not text'])
def test_lost_and_damaged_tables_are_written_anew(run_copy, finished_run, name, damage):
  path = run_copy / name
  if damage == 'lost':
    path.unlink()
  else:
    path.write_bytes(path.read_bytes()[:50] if damage == 'cut' else b'\xff\xfe')
  assert f'note: {path} was missing, damaged or behind; it is written anew.' in run(run_copy)
  assert path.read_bytes() == (finished_run / name).read_bytes()


TEXTS = {'not UTF-8': b'\xff\xfe{}', 'not JSON': b'{"epoch": 1,', 'a list': b'[1, 2]', 'empty': b'',
         'a number': b'3', 'nested': b'[' * 100_000}


@pytest.mark.fault('damaged state.json or config.json')
@pytest.mark.parametrize('text', TEXTS)
@pytest.mark.parametrize('name', ['state.json', 'config.json'])
def test_a_damaged_json_file_is_one_sentence(run_copy, name, text):
  path = state_file(run_copy) if name == 'state.json' else run_copy / name
  path.write_bytes(TEXTS[text])
  with pytest.raises(UserError, match=f'{name}.*: choose another --workdir|{name}.*train the block anew'):
    run(run_copy)
  with pytest.raises(UserError, match=name):
    if name == 'config.json':
      incremental.open_run(run_copy)
    incremental.IncrementalRun(settings(), LOG, run_copy, log=lambda line: None).load_model(1)


@pytest.mark.fault('damaged state.json or config.json')
def test_a_state_without_one_of_its_fields_is_one_sentence(run_copy):
  path = state_file(run_copy)
  whole = path.read_text()
  saved = json.loads(whole)
  for name in saved:
    for value in (None, 'other', [], {'a': 1}, -7):
      # With a digest any change is seen; a state of an older version has none.
      for kept in ('sha256', None):
        changed = {k: v for k, v in {**saved, name: value}.items() if v is not None
                   and (k == kept or k != 'sha256')}
        path.write_text(json.dumps(changed))
        try:
          run(run_copy, blocks=[0])
        except UserError as error:
          assert 'train the block anew' in str(error)
        else:
          assert kept is None or name == 'sha256' and value is None, (name, value)
  path.write_text(whole.replace('"epoch": 1', '"epoch": 2'))
  with pytest.raises(UserError, match='has been changed since it was written'):
    run(run_copy)


@pytest.mark.fault('damaged state.json or config.json')
@pytest.mark.parametrize('name', ['/etc/epoch-1', '../block_0/epoch-1', 'epoch-1/../../x', 'epoch-', 3])
@pytest.mark.parametrize('field', ['last', 'best'])
def test_names_of_checkpoints_cannot_point_elsewhere(run_copy, field, name):
  change(state_file(run_copy), **{field: name})
  with pytest.raises(UserError, match=f'calls its {field} checkpoint'):
    run(run_copy)


@pytest.mark.fault('damaged state.json or config.json')
@pytest.mark.parametrize('fields', [
    {'config': None}, {'config': 3}, {'data': None}, {'data': {'dataset': 'test'}}, {'data': []},
    {'config': {'sane': 5}}, {'config': {'model': {'fanout': {}}}}, {'config': {'seed': [1]}}], ids=str)
def test_a_configuration_that_lacks_something_is_one_sentence(run_copy, fields):
  change(run_copy / 'config.json', **fields)
  with pytest.raises(UserError):
    run(run_copy)
  with pytest.raises(UserError):
    incremental.open_run(run_copy)


@pytest.mark.fault('damaged checkpoint')
def test_a_flipped_byte_anywhere_in_a_checkpoint_is_one_sentence(run_copy):
  job = incremental.IncrementalRun(settings(), LOG, run_copy, log=lambda line: None)
  store = BlockStore(run_copy, 1)
  best = store.load()['best']
  expected = {name: v.numpy() for name, v in job.load_model(1).backbone.named_variables().items()}
  rng = np.random.default_rng(0)
  found = 0
  for path in sorted(store.folder.glob(f'{best}.*')):
    data = path.read_bytes()
    for place in {0, len(data) - 1, *rng.integers(0, len(data), 60).tolist()}:
      path.write_bytes(data[:place] + bytes([data[place] ^ (1 << int(rng.integers(8)))]) + data[place + 1:])
      for read in (lambda: job.load_model(1), lambda: store.check(best)):
        try:
          read()
        except UserError as error:
          assert 'cannot be read' in str(error) and 'train the block anew' in str(error)
          found += 1
      path.write_bytes(data)
    for size in (0, 1, len(data) // 2, len(data) - 1):
      path.write_bytes(data[:size])
      with pytest.raises(UserError, match='train the block anew'):
        job.load_model(1)
      path.write_bytes(data)
  # Only bytes that nothing is read from, such as padding, may pass.
  assert found > 230
  for name, variable in job.load_model(1).backbone.named_variables().items():
    np.testing.assert_array_equal(variable.numpy(), expected[name])


@pytest.mark.fault('damaged checkpoint')
def test_damage_in_the_samplers_part_stops_a_resumed_block(tmp_path):
  run(tmp_path / 'run', blocks=[0])
  with pytest.raises(RuntimeError):
    _crash_while_exporting(tmp_path / 'run')
  store = BlockStore(tmp_path / 'run', 1)
  state = store.load()
  assert state['stopped'] and 'result' not in state
  reader = tf.train.load_checkpoint(str(store.folder / state['last']))
  name, = [key for key in reader.get_variable_to_shape_map()
           if key.startswith('sampler/cumulative/') and 'OPTIMIZER' not in key]
  reservoirs = reader.get_tensor(name).tobytes()
  path, = store.folder.glob(f'{state["last"]}.data*')
  data = path.read_bytes()
  place = data.find(reservoirs[:64])
  assert place >= 0
  path.write_bytes(data[:place + 5] + bytes([data[place + 5] ^ 4]) + data[place + 6:])
  with pytest.raises(UserError, match='train the block anew'):
    run(tmp_path / 'run')


def _crash_while_exporting(folder):
  with pytest.MonkeyPatch.context() as patch:
    def crash(*arguments, **options):
      raise RuntimeError('crash')
    patch.setattr(export, 'export_block', crash)
    run(folder)
