"""Item clusters by name."""
from graphsane_tf.registry import Registry

REGISTRY = Registry('clustering', {
    'structural': 'graphsane_tf.clustering.structural:StructuralClusters',
    'kmeans': 'graphsane_tf.clustering.kmeans:KMeansClusters',
    'categories': 'graphsane_tf.clustering.categories:GivenCategories',
})
