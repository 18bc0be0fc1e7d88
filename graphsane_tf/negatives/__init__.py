"""Negative samplers by name."""
from graphsane_tf.negatives.base import Draw, NegativeSampler, NoSampler
from graphsane_tf.negatives.sane import Sane

REGISTRY = {
    'uniform': NoSampler,
    'sane': Sane,
}
