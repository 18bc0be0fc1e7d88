"""Distillers by name."""
from graphsane_tf.distillation.base import Distiller, NoDistiller, Teacher
from graphsane_tf.distillation.contrastive import Sgct

REGISTRY = {
    'none': NoDistiller,
    'sgct': Sgct,
}
