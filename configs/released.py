"""What the authors' released code uses: `--config=released`."""
from graphsane_tf.configs.released import get_config

__all__ = ['get_config']
