"""In which categories an item counts: in its own, or in all of them by its membership."""
import numpy as np
import tensorflow as tf

from graphsane_tf.clustering.base import ItemClusters


def count(rows, columns, weight, num_rows: int, num_columns: int) -> np.ndarray:
  """[num_rows, num_columns] float32 sums of `weight` (None: 1) by row and column."""
  cell = rows * num_columns + columns
  sums = np.bincount(cell.ravel(), None if weight is None else weight.ravel(),
                     num_rows * num_columns)
  return sums.reshape(num_rows, num_columns).astype(np.float32)


class Categories(tf.Module):
  """An item counts in its own category, the cluster that it belongs to most.

  Attributes:
    category: [num_items] int32 variable.
  """

  def __init__(self, clusters: ItemClusters, num_items: int):
    super().__init__()
    self._clusters = clusters
    self.category = tf.Variable(tf.zeros([num_items], tf.int32), trainable=False,
                                name='item_category')

  @property
  def num_categories(self) -> int:
    """K."""
    return self._clusters.num_clusters

  @property
  def floats_an_item(self) -> int:
    """Memory that an entry of a reservoir needs in `count_reservoir` and `of_items`."""
    return 8

  def assign(self, item_vectors: tf.Tensor, epoch: int) -> None:
    """Brings the categories up to date with the items' final representations [num_items, D]."""
    self.category.assign(self._clusters.assign(item_vectors, epoch))

  def histogram(self, rows: np.ndarray, items: np.ndarray, num_rows: int) -> np.ndarray:
    """[num_rows, K] interactions by category, of pairs rows [m] and items [m]."""
    return count(rows, self.category.numpy()[items], None, num_rows, self.num_categories)

  def count_reservoir(self, items: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """c, [n, K]: reservoir items [n, Q] by category, where valid [n, Q] is 1."""
    return count(np.arange(len(items))[:, None], self.category.numpy()[items], valid, len(items),
                 self.num_categories)

  def of_items(self, theta: np.ndarray, items: np.ndarray) -> np.ndarray:
    """[n, Q] each item's part of theta [n, K]: that of its category."""
    # Like np.take_along_axis, which takes several times as long.
    cell = np.arange(len(theta))[:, None] * theta.shape[1] + self.category.numpy()[items]
    return theta.ravel()[cell]


class SoftCategories(Categories):
  """An item counts in every category by its membership c_jk, and theta_j = sum_k c_jk theta_k.

  With one-hot memberships that is the paper's rule.

  Attributes:
    membership: [num_items, K] float32 variable.
  """

  def __init__(self, clusters: ItemClusters, num_items: int):
    super().__init__(clusters, num_items)
    self.membership = tf.Variable(tf.zeros([num_items, clusters.num_clusters]), trainable=False,
                                  name='item_membership')

  @property
  def floats_an_item(self) -> int:
    return self.num_categories

  def assign(self, item_vectors, epoch):
    membership = self._clusters.memberships(item_vectors, epoch)
    self.membership.assign(membership)
    self.category.assign(tf.argmax(membership, axis=1, output_type=tf.int32))

  def histogram(self, rows, items, num_rows):
    return tf.math.unsorted_segment_sum(tf.gather(self.membership, items), rows, num_rows).numpy()

  def count_reservoir(self, items, valid):
    return tf.einsum('nq,nqk->nk', valid, tf.gather(self.membership, items)).numpy()

  def of_items(self, theta, items):
    membership = tf.gather(self.membership, items)
    return tf.einsum('nqk,nk->nq', membership, theta.astype(np.float32)).numpy()
