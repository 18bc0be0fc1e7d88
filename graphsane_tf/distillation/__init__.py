"""Distillers by name."""
from graphsane_tf.registry import Registry

REGISTRY = Registry('distiller', {
    'none': 'graphsane_tf.distillation.base:NoDistiller',
    'lsp': 'graphsane_tf.distillation.lsp:Lsp',
    'graphsail': 'graphsane_tf.distillation.graphsail:GraphSail',
    'sgct': 'graphsane_tf.distillation.contrastive:Sgct',
    'lwckd': 'graphsane_tf.distillation.lwckd:LwcKd',
})
