"""Memories by name: what all history says in closed form, beside what the graph model has learned."""
from graphsane_tf.registry import Registry

REGISTRY = Registry('memory', {
    'none': 'graphsane_tf.memory.base:NoMemory',
    'popularity': 'graphsane_tf.memory.base:PopularityMemory',
    'knn': 'graphsane_tf.memory.knn:NeighbourMemory',
    'ease': 'graphsane_tf.memory.ease:EaseMemory',
})
