"""Simple models by name: what a user would refit from scratch instead."""
from graphsane_tf.registry import Registry

REGISTRY = Registry('peer', {
    'none': 'graphsane_tf.peers.base:NoPeer',
    'popularity': 'graphsane_tf.peers.popularity:Popularity',
    'recent_popularity': 'graphsane_tf.peers.popularity:RecentPopularity',
    'last_popularity': 'graphsane_tf.peers.popularity:LastPopularity',
    'neighbours': 'graphsane_tf.peers.neighbours:Neighbours',
    'ease': 'graphsane_tf.peers.ease:Ease',
    'ials': 'graphsane_tf.peers.ials:ImplicitAls',
})
