"""What the paper prints: `--config=paper`."""
from graphsane_tf.configs.paper import get_config

__all__ = ['get_config']
