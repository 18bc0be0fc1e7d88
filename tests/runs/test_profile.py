"""`profile` writes a TensorBoard profile of a few steps."""
from graphsane_tf.data import drift
from graphsane_tf.runs import incremental
from tests import logs


def test_profile_of_each_block_is_written(tmp_path):
  lines = []
  config = logs.tiny_config(train__batch_size=512, train__base_epochs=2, train__epochs=2)
  incremental.run(config, drift.generate('small'), tmp_path / 'run', blocks=[0], profile=True,
                  log=lines.append)
  found = list((tmp_path / 'run' / 'tensorboard' / 'plugins' / 'profile').glob('*/*.xplane.pb'))
  assert len(found) == 1 and found[0].stat().st_size > 0
  assert sum('profile of' in line for line in lines) == 1
