"""What a killed process leaves in a block's folder does not stop the next one."""
import tensorflow as tf

from graphsane_tf.training.store import BlockStore


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
