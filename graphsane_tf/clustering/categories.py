"""The categories that came with the log."""
import tensorflow as tf

from graphsane_tf.clustering.base import ItemClusters
from graphsane_tf.errors import UserError


class GivenCategories(ItemClusters):
  """Item categories of the raw data instead of clusters."""

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    self.num_clusters = int(context.item_category.max()) + 1
    self._category = tf.constant(context.item_category, tf.int32)

  @classmethod
  def check(cls, interactions):
    if interactions.item_category is None:
      raise UserError('--clusters=categories needs item categories, and this log has none: name '
                      'their column with --category_column, or use --clusters=structural.')

  def assign(self, item_vectors, epoch):
    return self._category
