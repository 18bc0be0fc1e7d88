"""Graph models by name."""
from graphsane_tf.backbones.base import Backbone, Encoding
from graphsane_tf.backbones.lightgcn import LightGCN
from graphsane_tf.backbones.mgccf import MGCCF
from graphsane_tf.backbones.pinsage import PinSage

REGISTRY = {
    'mgccf': MGCCF,
    'lightgcn': LightGCN,
    'pinsage': PinSage,
}
