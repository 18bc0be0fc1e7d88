"""One function a data set: `--config=datasets:netflix`."""
from graphsane_tf.configs.datasets import get_config

__all__ = ['get_config']
