"""Seconds instead of minutes: `--config=tiny`."""
from graphsane_tf.configs.tiny import get_config

__all__ = ['get_config']
