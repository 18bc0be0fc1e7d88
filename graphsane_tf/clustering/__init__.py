"""Item clusters by name."""
from graphsane_tf.clustering.base import ItemClusters
from graphsane_tf.clustering.categories import GivenCategories
from graphsane_tf.clustering.kmeans import KMeansClusters
from graphsane_tf.clustering.structural import StructuralClusters

REGISTRY = {
    'structural': StructuralClusters,
    'kmeans': KMeansClusters,
    'categories': GivenCategories,
}
