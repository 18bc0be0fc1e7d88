# %% [markdown] title
# # The reservoir explained
#
# Which items should a user *not* get? Random ones teach a model little; the ones that it ranks highest may be
# what the user takes next. SANE keeps a **reservoir** of items for each user that are ranked high but not
# highest, and draws more of those whose category the user has turned away from. This notebook rebuilds the
# paper's toy figure from `drift`, a log in which it is known who turned away from what, and when.

# %% imports
# %matplotlib inline
import pathlib
import tempfile

import graphsane_tf
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import tensorflow as tf

from graphsane_tf.config import default_config
from graphsane_tf.data import drift
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.reporting import inspect
from graphsane_tf.runs import incremental

tf.get_logger().setLevel('ERROR')

# %% [markdown] train-note
# ## A model with a reservoir
#
# The base block and block 1, in which a third of the movers move. Item clusters are the log's own categories here,
# so that they have names.

# %% train
SIZE = 'small'
BLOCK = 1

log, truth = drift.generate(SIZE), drift.truth(SIZE)
config = default_config()
config.kd, config.sampler, config.clusters = 'sgct', 'sane', 'categories'
config.model.embedding_dim = 32
config.train.batch_size = 512
config.train.base_epochs, config.train.epochs = 6, 2

folder = tempfile.TemporaryDirectory(prefix='graphsane-')
workdir = pathlib.Path(folder.name) / 'run'
quiet = lambda line: None
data = DataSpec('drift', options={'size': SIZE})
results = incremental.run(config, log, workdir, data=data, blocks=[0, 1], log=quiet)
print('test Recall@20:', [round(entry['test']['recall@20'], 3) for entry in results['blocks']])

# %% [markdown] user-note
# ## Somebody who moved
#
# `explain_user` reads the sampler's state as it was saved with the block: histograms, shift, prior, counts,
# posterior, and the reservoir with the probability of each item.

# %% user
run = incremental.open_run(workdir)
moved = np.flatnonzero(truth.move_time == BLOCK)
found = max((inspect.explain_user(run, BLOCK, log.user_ids[user]) for user in moved[:8]),
            key=lambda one: np.abs(one['shift']).sum())
user = int(np.flatnonzero(log.user_ids == found['user'])[0])
lost, gained = truth.lost_category[user], truth.gained_category[user]
names = [name.removeprefix('category-') for name in found['categories']]
print(f'{found["user"]} lost {log.category_names[lost]} and gained {log.category_names[gained]} '
      f'when block {BLOCK} began.')
COLOURS = ['tab:red' if k == lost else 'tab:green' if k == gained else 'lightgrey' for k in range(len(names))]

# %% [markdown] histograms-note
# ## Histograms
#
# What they took in the block before and in this one, by category: red was lost, green was gained.

# %% histograms
def bars(axes, values, title):
  axes.bar(names, values, color=COLOURS)
  axes.axhline(0, color='black', linewidth=.8)
  axes.set_title(title, fontsize=10)

figure, axes = plt.subplots(1, 3, figsize=(10, 2.4), layout='constrained')
before, now = (found[name] / found[name].sum() for name in ('previous', 'current'))
bars(axes[0], before, 'share before the block')
bars(axes[1], now, f'share in block {BLOCK}')
bars(axes[2], found['shift'], 'shift: the difference')
plt.show()

# %% [markdown] simplex-note
# ## The simplex
#
# Shares sum to one, so each histogram is a point on a simplex. With three corners (lost, gained, all others) it is
# a triangle, and the shift is the arrow between two of its points.

# %% simplex
CORNERS = np.array([[0, 0], [1, 0], [.5, np.sqrt(.75)]])

def place(shares):
  three = np.array([shares[lost], shares[gained], 1 - shares[lost] - shares[gained]])
  return three @ CORNERS

figure, axes = plt.subplots(figsize=(4.2, 3.6), layout='constrained')
axes.plot(*CORNERS[[0, 1, 2, 0]].T, color='black', linewidth=1)
axes.annotate('', place(now), place(before), arrowprops={'arrowstyle': '-|>', 'color': 'tab:blue', 'lw': 2})
axes.plot(*place(before), 'o', color='tab:blue', markerfacecolor='white', label='before')
axes.plot(*place(now), 'o', color='tab:blue', label=f'in block {BLOCK}')
for corner, text, shift in zip(CORNERS, ('lost', 'gained', 'all others'), ((-.05, -.07), (-.1, -.07), (-.12, .03))):
  axes.text(*(corner + shift), text)
axes.set(xlim=(-.15, 1.15), ylim=(-.12, 1.))
axes.axis('off')
axes.legend(loc='upper right', frameon=False)
plt.show()

# %% [markdown] posterior-note
# ## Prior, counts, posterior
#
# * **alpha** = lambda |Q| softmax(-shift): the prior asks for *more* negatives where interest was lost;
# * **c** counts the categories of the reservoir's items;
# * **theta** = (alpha + c) / sum(alpha + c): the posterior mean of a Dirichlet prior and multinomial counts.
#   The next cell computes it again by hand.

# %% posterior
softmax = np.exp(-found['shift'] / run.config.sane.temperature)
# The prior weighs as much as lambda times the reservoir's size.
alpha = found['alpha'].sum() * softmax / softmax.sum()
theta = (alpha + found['counts']) / (alpha + found['counts']).sum()
np.testing.assert_allclose(alpha, found['alpha'], rtol=1e-4)
np.testing.assert_allclose(theta, found['theta'], rtol=1e-4)

figure, axes = plt.subplots(1, 3, figsize=(10, 2.4), layout='constrained')
bars(axes[0], found['alpha'], 'alpha, the prior')
bars(axes[1], found['counts'], 'c, items of the reservoir')
bars(axes[2], found['theta'], 'theta, the posterior mean')
plt.show()

# %% [markdown] draws-note
# ## Draws
#
# Every item of the reservoir is drawn in proportion to the theta of its category. Ten thousand draws against what is
# expected:

# %% draws
reservoir = pd.DataFrame(found['reservoir'])
rng = np.random.default_rng(0)
drawn = rng.choice(len(reservoir), 10_000, p=reservoir.probability / reservoir.probability.sum())
share = pd.DataFrame({
    'expected': reservoir.groupby('category').probability.sum(),
    'drawn': reservoir.category.iloc[drawn].value_counts(normalize=True)}).reindex(found['categories']).fillna(0.)
share.round(3)

# %% [markdown] items-note
# The items that are drawn most often, with the rank that the model gave them:

# %% items
reservoir.sort_values(['probability', 'rank'], ascending=[False, True]).head(8).round(4)

# %% [markdown] picture-note
# ## All of it in one picture
#
# `graphsane inspect --run=... --user=...` draws the same for anybody.

# %% picture
plt.close('all')
from IPython.display import Image
Image(str(inspect.save_plot(found, workdir / 'user.png')), width=900)

# %% [markdown] next
# ## Does it help?
#
# That depends on the model beside it. With MGCCF and BPR a reservoir helps on several logs, but mostly because its items are
# hard, not because of the prior; beside a strong model it adds little. The figures are in `docs/results.md`.
