"""What TensorBoard shows of a run: one curve over all blocks, speed, and the configuration."""
from typing import Any, Dict

import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams

from graphsane_tf import config_rules, files


class Board:
  """Writes events of a run; blocks follow each other on one axis of epochs."""

  def __init__(self, folder, config):
    """Takes the folder of the events and the run's configuration."""
    self._folder = folder
    with files.writing(folder, tf.errors.OpError):
      self._writer = tf.summary.create_file_writer(str(folder))
    self._fields = {name: value if isinstance(value, (bool, int, float, str)) else str(value)
                    for name, value in config_rules.flatten(config.to_dict()).items()}

  def add(self, record: Dict[str, Any], epoch: int) -> None:
    """Adds an epoch.

    Args:
      record: of the epoch.
      epoch: its number, counted over all blocks from 1.
    """
    with files.writing(self._folder, tf.errors.OpError), self._writer.as_default(step=epoch):
      if epoch == 1:
        hparams.hparams(self._fields)
      for group in ('losses', 'validation'):
        for name, value in record[group].items():
          tf.summary.scalar(f'{group}/{name}', value)
      tf.summary.scalar('speed/pairs_per_second', record['pairs_per_second'])
      tf.summary.scalar('speed/seconds', record['seconds'])
      tf.summary.scalar('block', record['block'])
      self._writer.flush()
