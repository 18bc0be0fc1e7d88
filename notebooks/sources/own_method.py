# %% [markdown] title
# # Your own sampler and distiller
#
# A method is one file outside the package: a class, a decorator that registers it with its options, and the flag
# `--plugin=FILE.py`. The behaviour suite that the package's own methods pass tells whether it is right. Here are a sampler
# and a distiller, tested and trained.

# %% imports
# %matplotlib inline
import os
import pathlib
import subprocess
import sys
import tempfile

import graphsane_tf
import matplotlib.pyplot as plt
import tensorflow as tf

from graphsane_tf import registry
from graphsane_tf.config import default_config
from graphsane_tf.data import drift
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.runs import incremental

tf.get_logger().setLevel('ERROR')
folder = tempfile.TemporaryDirectory(prefix='graphsane-')
home = pathlib.Path(folder.name)

# %% [markdown] sampler-note
# ## A sampler
#
# It fills the last slots of a pair's negatives. This one draws a few uniform candidates for each slot, of which the step
# keeps the one that the model scores highest (the idea of DNS, in a few lines).

# %% sampler
(home / 'hardest.py').write_text('''"""The hardest of a few uniform negatives."""
import numpy as np
import tensorflow as tf

from graphsane_tf import config_rules, negatives
from graphsane_tf.graph.draws import Complement
from graphsane_tf.negatives.base import Choice, Draw, NegativeSampler


@negatives.REGISTRY.register('hardest', candidates=(4, config_rules.COUNT))
class Hardest(NegativeSampler):
  """Draws candidates for each slot; the step keeps the one with the highest score."""

  loss_name = 'hardest'
  chooses = True

  def __init__(self, config, context, seed):
    super().__init__(config, context, seed)
    self._uniform = Complement(context.positives)

  def draw(self, users, positives, seeds):
    return Draw(*self._uniform.draw(users, self.num_slots * self.config.hardest.candidates, seeds.next()))

  def choose(self, positive, candidate, draw, seeds):
    count = self.config.hardest.candidates
    # [pairs, slots, candidates]; what is no candidate must not win.
    scores = tf.where(draw.weight > 0, candidate, -1e9)
    scores = tf.reshape(scores, [-1, self.num_slots, count])
    columns = tf.argmax(scores, axis=2, output_type=tf.int32) + count * tf.range(self.num_slots)
    return Choice(columns, tf.gather(draw.weight, columns, batch_dims=1))

  def probabilities(self, user, positive, scores):
    """What the suite tests the draws against: the chance of each item to be the best of the candidates."""
    uniform = self._uniform.probabilities(user)
    order = np.argsort(scores)
    below = np.concatenate([[0.], np.cumsum(uniform[order])]) ** self.config.hardest.candidates
    result = np.zeros(len(scores))
    result[order] = np.diff(below)
    return result
''')

# %% [markdown] distiller-note
# ## A distiller
#
# It keeps the student close to what the teacher, yesterday's frozen model, knew. This one holds the embeddings of the batch's
# old users in place.

# %% distiller
(home / 'anchor.py').write_text('''"""Holds the embeddings of old users in place."""
import tensorflow as tf

from graphsane_tf import config_rules, distillation
from graphsane_tf.distillation.base import Distiller, weighted


@distillation.REGISTRY.register('anchor', weight=(1., config_rules.WEIGHT))
class Anchor(Distiller):
  """Mean squared distance to the teacher's embedding."""

  weight_fields = ('anchor.weight',)

  def losses(self, batch):
    users, now = batch.old('user', 0, self.teacher)

    def term():
      before = tf.gather(self.teacher.embedding('user'), users)
      change = tf.reduce_sum(tf.square(now - before), axis=1)
      return tf.math.divide_no_nan(tf.reduce_sum(change), tf.cast(tf.size(change), tf.float32))

    return {'anchor': weighted(self.config.anchor.weight, term)}
''')

# %% [markdown] suite-note
# ## Are they right?
#
# The suite asks a sampler whether it ever draws a positive, whether the same seed gives the same draws, whether the loss and its
# gradient are finite, whether a resumed run goes on; and a distiller whether it is
# fine-tuning at weight zero, whether it pulls, and whether the teacher stays as it is.

# %% suite
command = [sys.executable, '-m', 'pytest', '-q', '-p', 'graphsane_tf.testing.plugin', '--pyargs',
           'graphsane_tf.testing', '--plugin=hardest.py', '--plugin=anchor.py', '-p', 'no:cacheprovider']
place = str(pathlib.Path(graphsane_tf.__file__).parents[1])
done = subprocess.run(command, cwd=home, capture_output=True, text=True, env={**os.environ, 'PYTHONPATH': place})
print('\n'.join(line for line in done.stdout.splitlines() if 'tested' in line or 'passed' in line or 'failed' in line))
assert done.returncode == 0, done.stdout[-3000:]

# %% [markdown] train-note
# ## Are they any good?
#
# The same base block, updated in three ways. On a log this small differences are mostly noise; `graphsane reproduce` with
# three seeds and a table of your own (docs/extending.md) is the way to find out.

# %% train
for name in ('hardest.py', 'anchor.py'):
  registry.load_plugin(home / name)
quiet = lambda line: None
log = drift.generate('small')
data = DataSpec('drift', options={'size': 'small'})

def run(kd, sampler):
  config = default_config()
  config.kd, config.sampler = kd, sampler
  config.model.embedding_dim = 32
  config.train.batch_size = 512
  config.train.base_epochs, config.train.epochs = 6, 2
  config.blocks.num_incremental = 2
  if recall:
    config.base_from = str(home / next(iter(recall)))
  results = incremental.run(config, log, home / f'{kd}-{sampler}', data=data, log=quiet)
  return results['average']['recall@20']

recall = {}
for kd, sampler in (('none', 'uniform'), ('none', 'hardest'), ('anchor', 'uniform')):
  recall[f'{kd}-{sampler}'] = run(kd, sampler)

figure, axes = plt.subplots(figsize=(6, 2.6), layout='constrained')
axes.bar_label(axes.barh(list(recall)[::-1], list(recall.values())[::-1], color='tab:blue'), fmt='%.4f')
axes.set(xlabel='test Recall@20, block 1')
axes.margins(x=.12)
plt.show()

# %% [markdown] next
# ## From the command line
#
# `graphsane run --plugin=hardest.py --plugin=anchor.py --dataset=drift --sampler=hardest --kd=anchor
# --config.hardest.candidates=8`. Backbones, replay policies, clusterings, peers, data sources and tables work the same way:
# docs/extending.md has a complete example of each.
