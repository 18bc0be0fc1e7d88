"""The default configuration: `--config=default`. Copy this file to make one of your own."""
from graphsane_tf.configs.default import get_config

__all__ = ['get_config']
