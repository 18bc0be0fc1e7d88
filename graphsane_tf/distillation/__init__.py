"""Distillers by name."""
from graphsane_tf.distillation.base import Distiller, NoDistiller, Teacher
from graphsane_tf.distillation.contrastive import Sgct
from graphsane_tf.distillation.graphsail import GraphSail
from graphsane_tf.distillation.lsp import Lsp
from graphsane_tf.distillation.lwckd import LwcKd

REGISTRY = {
    'none': NoDistiller,
    'lsp': Lsp,
    'graphsail': GraphSail,
    'sgct': Sgct,
    'lwckd': LwcKd,
}
