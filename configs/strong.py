"""The strongest setting that we know: `--config=strong`, or `--recipe=strong`."""
from graphsane_tf.configs.strong import get_config

__all__ = ['get_config']
