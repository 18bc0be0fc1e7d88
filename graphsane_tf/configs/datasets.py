"""One function a data set: `--config=datasets:netflix`.

The defaults were chosen on logs of a few hundred thousand rows. Only the two logs of ten million rows
and more need something else.
"""
from graphsane_tf.config import default_config
from graphsane_tf.errors import UserError


def _plain():
  return default_config()


def _large():
  c = default_config()
  # The released code's batch: an epoch of the base block is then 1,500 steps instead of 3,600.
  c.train.batch_size = 5000
  # An epoch holds ten times the pairs of the smaller logs.
  c.train.base_epochs = 10
  c.train.base_min_epochs = 3
  return c


_CONFIGS = {'drift': _plain, 'gowalla': _plain, 'yelp': _plain, 'taobao14': _plain,
            'taobao15': _plain, 'netflix': _large, 'ml10m': _large}


def get_config(name: str = 'drift'):
  """The configuration of a data set.

  Args:
    name: a value of --dataset.
  """
  if name not in _CONFIGS:
    raise UserError(f'--config=datasets:{name}: there is no configuration {name}; choose '
                    f'from {", ".join(_CONFIGS)}.')
  return _CONFIGS[name]()
