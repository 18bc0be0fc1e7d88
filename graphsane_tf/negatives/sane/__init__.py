"""SANE: a personalised negative reservoir, with a prior from the interest shift (section 5)."""
from graphsane_tf.negatives.sane.sampler import Sane

__all__ = ['Sane']
