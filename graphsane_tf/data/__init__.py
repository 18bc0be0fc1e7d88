"""Data sets by name. A file of the user's own may register one more: see `sources`."""
from graphsane_tf.registry import Registry

SOURCES = Registry('data set', {name.lower(): f'graphsane_tf.data.sources:{name}' for name in (
    'Gowalla', 'Yelp', 'Taobao14', 'Taobao15', 'Netflix', 'Ml10m', 'Drift', 'Csv')})
