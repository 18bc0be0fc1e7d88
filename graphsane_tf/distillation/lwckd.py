"""LWC-KD: contrastive distillation of layers over four relations (Wang et al., CIKM 2021)."""
from graphsane_tf.distillation.contrastive import Contrastive


class LwcKd(Contrastive):
  """Layer-wise contrastive distillation on user-item, item-user, user-user and item-item graphs.

  Anchors are the student's outputs at layer 0 (embedding), layer 1 and the final representation;
  positives and negatives are the teacher's true outputs at the same layer. Positives of a user
  among users (an item among items) are nearest neighbours in the teacher's graph.
  """

  relations = ('ui', 'iu', 'uu', 'ii')
  weight_fields = ('lwckd.layer0_weight', 'lwckd.layer1_weight', 'lwckd.final_weight')

  @property
  def options(self):
    return self.config.lwckd

  def draws(self, relation):
    options = self.options
    if relation in ('uu', 'ii'):
      return options.num_knn_positives, options.num_knn_negatives
    return options.num_positives, options.num_negatives

  def layer_weights(self):
    options = self.options
    return {'lwckd_layer0': (0, options.layer0_weight), 'lwckd_layer1': (1, options.layer1_weight),
            'lwckd_final': (-1, options.final_weight)}
