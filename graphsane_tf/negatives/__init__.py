"""Negative samplers by name."""
from graphsane_tf.registry import Registry

REGISTRY = Registry('sampler', {
    'uniform': 'graphsane_tf.negatives.base:NoSampler',
    'warp': 'graphsane_tf.negatives.warp:Warp',
    'pns': 'graphsane_tf.negatives.pns:RankGeometric',
    'pinsage': 'graphsane_tf.negatives.pinsage:PinSageNegatives',
    'nscaching': 'graphsane_tf.negatives.nscaching:NSCaching',
    'esns': 'graphsane_tf.negatives.esns:ESNS',
    'demix': 'graphsane_tf.negatives.demix:DeMix',
    'dns': 'graphsane_tf.negatives.dns:DNS',
    'sane': 'graphsane_tf.negatives.sane:Sane',
})
