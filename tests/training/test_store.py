"""What a killed process leaves in a block's folder does not stop the next one."""
import pytest
import tensorflow as tf

from graphsane_tf.errors import UserError
from graphsane_tf.training.store import BlockStore, fresh_state


def test_parts_of_a_checkpoint_that_was_cut_off_are_cleared_away(tmp_path):
  store = BlockStore(tmp_path, 1)
  checkpoint = tf.train.Checkpoint(value=tf.Variable(1.))
  store.save(checkpoint, 'epoch-1')
  # TensorFlow collects the parts of a checkpoint in such a folder before it renames them.
  parts = store.folder / 'epoch-1_temp'
  parts.mkdir()
  (parts / 'part-00000-of-00001.index').write_bytes(b'half')
  (store.folder / 'epoch-0.index').write_bytes(b'old')
  store.save_state({'last': 'epoch-1', 'best': 'epoch-1'})
  assert sorted(path.name.split('.')[0] for path in store.folder.iterdir()) == [
      'epoch-1', 'epoch-1', 'state']
  checkpoint.value.assign(2.)
  store.restore(checkpoint, 'epoch-1')
  assert float(checkpoint.value) == 1.


@pytest.mark.fault('damaged state.json or config.json')
@pytest.mark.parametrize('changes', [
    {'epoch': 3}, {'stopped': True}, {'last': 'epoch-3', 'best': '../epoch-3'}], ids=str)
def test_a_state_that_has_begun_names_its_checkpoints(tmp_path, changes):
  saved = BlockStore(tmp_path, 1)
  saved.save_state(fresh_state())
  assert saved.load() == fresh_state()
  saved.save_state({**fresh_state(), **changes})
  with pytest.raises(UserError, match='checkpoint'):
    saved.load()
