"""Replay policies by name."""
from graphsane_tf.replay.base import NoReplay, ReplayPolicy
from graphsane_tf.replay.inverse_degree import InverseDegreeReplay
from graphsane_tf.replay.uniform import UniformReplay

REGISTRY = {
    'none': NoReplay,
    'uniform': UniformReplay,
    'inverse_degree': InverseDegreeReplay,
}
