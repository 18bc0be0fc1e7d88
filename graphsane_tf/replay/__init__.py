"""Replay policies by name."""
from graphsane_tf.registry import Registry

REGISTRY = Registry('replay policy', {
    'none': 'graphsane_tf.replay.base:NoReplay',
    'uniform': 'graphsane_tf.replay.uniform:UniformReplay',
    'inverse_degree': 'graphsane_tf.replay.inverse_degree:InverseDegreeReplay',
})
