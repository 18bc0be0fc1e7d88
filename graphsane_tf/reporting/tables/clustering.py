"""Choice of the clusters: K-means against end-to-end."""
from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import DISTILLERS
from graphsane_tf.runs.grid import Row


def _pair(plain: Row):
  sane = {**plain.overrides, 'sampler': 'sane'}
  kmeans = Row(f'{plain.label}-SANE (K-means)', {**sane, 'clusters': 'kmeans'})
  return kmeans, Row(f'{plain.label}-SANE (end-to-end)', {**sane, 'clusters': 'structural'}, partner=kmeans)


class Clustering(Table):
  """Recall of each block, two lines a distiller."""
  title = 'Choice of the clusters'
  rows = tuple(row for plain in DISTILLERS for row in _pair(plain))
  published = ('clustering_yelp', 'clustering_taobao14')
  in_paper = True
  costs = True
