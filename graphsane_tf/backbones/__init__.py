"""Graph models by name; the options of one outside the package are fields --config.model.NAME.FIELD."""
from graphsane_tf.registry import Registry

REGISTRY = Registry('backbone', {
    'mgccf': 'graphsane_tf.backbones.mgccf:MGCCF',
    'lightgcn': 'graphsane_tf.backbones.lightgcn:LightGCN',
    'pinsage': 'graphsane_tf.backbones.pinsage:PinSage',
}, section='model')
