"""Negative samplers by name."""
from graphsane_tf.negatives.base import Choice, Draw, NegativeSampler, NoSampler
from graphsane_tf.negatives.demix import DeMix
from graphsane_tf.negatives.dns import DNS
from graphsane_tf.negatives.esns import ESNS
from graphsane_tf.negatives.nscaching import NSCaching
from graphsane_tf.negatives.pinsage import PinSageNegatives
from graphsane_tf.negatives.pns import RankGeometric
from graphsane_tf.negatives.sane import Sane
from graphsane_tf.negatives.warp import Warp

REGISTRY = {
    'uniform': NoSampler,
    'warp': Warp,
    'pns': RankGeometric,
    'pinsage': PinSageNegatives,
    'nscaching': NSCaching,
    'esns': ESNS,
    'demix': DeMix,
    'dns': DNS,
    'sane': Sane,
}
