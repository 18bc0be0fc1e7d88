"""Graph models by name."""
from graphsane_tf.backbones.base import Backbone, Encoding
from graphsane_tf.backbones.mgccf import MGCCF

REGISTRY = {
    'mgccf': MGCCF,
}
