# %% [markdown] title
# # graphsane_tf in five minutes
#
# People change. This notebook trains a graph recommender on a small log in which it is *known* who
# changed their interests, when, and from what to what. It keeps the model up to date block by block
# with distillation (SGCT) and a personalised negative reservoir (SANE), and then looks inside.
#
# It needs no download and no GPU, and takes a minute or two.

# %% [markdown] import-note
# `graphsane_tf` comes before `tensorflow`: importing it selects the legacy Keras that TensorFlow
# Recommenders needs.

# %% imports
# %matplotlib inline
import pathlib
import tempfile

import graphsane_tf
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import tensorflow as tf

from graphsane_tf.blocks.stream import BlockStream
from graphsane_tf.config import default_config
from graphsane_tf.data import drift
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.runs import incremental

tf.get_logger().setLevel('ERROR')
print('graphsane_tf', graphsane_tf.__version__, 'on TensorFlow', tf.__version__)

# %% [markdown] data-note
# ## The log
#
# `drift` is drawn at random with planted interests: 30 % of the users, the *movers*, swap their main
# category for another one when block 1, 2 or 3 begins.

# %% data
SIZE = 'small'  # 'small' trains in seconds, 'default' (ten times the rows) in some minutes.

log = drift.generate(SIZE)
truth = drift.truth(SIZE)
print(f'{len(log):,} rows, {log.num_users:,} users, {log.num_items:,} items, '
      f'{len(log.category_names)} categories, {truth.mover.sum()} movers')

# %% [markdown] train-note
# ## Train block by block
#
# The first 60 % of the rows are the base block; blocks 1, 2 and 3 are a tenth each. Each block
# starts from the model of the one before and is trained on its own new rows only. It is tested on the
# rows that follow.

# %% train
config = default_config()
config.kd = 'sgct'
config.sampler = 'sane'
config.clusters = 'categories'  # The log's own categories: names for the bars below.
config.train.batch_size = 512 if SIZE == 'small' else 2048
config.train.base_epochs = 8
config.train.epochs = 3

folder = tempfile.TemporaryDirectory(prefix='graphsane-')  # Deleted when the notebook is closed.
workdir = pathlib.Path(folder.name) / 'run'
results = incremental.run(config, log, workdir, data=DataSpec('drift', options={'size': SIZE}))

# %% [markdown] recall-note
# ## How good is it?
#
# Recall@20: of what a user takes next, which share is among the 20 items recommended to them?

# %% recall
blocks = [entry['block'] for entry in results['blocks']]
recall = [entry['test']['recall@20'] for entry in results['blocks']]

figure, axes = plt.subplots(figsize=(6, 3))
bars = axes.bar([f'block {b}' if b else 'base block' for b in blocks], recall, color='tab:blue')
axes.bar_label(bars, fmt='%.3f')
axes.margins(y=0.15)
axes.set_ylabel('Recall@20 (test)')
axes.set_title(f'average of blocks 1 to {blocks[-1]}: {results["average"]["recall@20"]:.3f}')
plt.show()

# %% [markdown] serve-note
# ## Ask the SavedModel
#
# Every block leaves a SavedModel that plain TensorFlow can serve: raw user ids in, raw item ids out.
# Here is somebody who moved when block 1 began; `category-…` beside each item shows whether the model
# has noticed.

# %% serve
BLOCK = 1  # The block at whose start our mover moves: 1, 2 or 3.
K = 10

user = int(np.flatnonzero(truth.move_time == BLOCK)[0])
user_id = log.user_ids[user]
lost, gained = truth.lost_category[user], truth.gained_category[user]
print(f'{user_id} moved from {log.category_names[lost]} to {log.category_names[gained]} '
      f'when block {BLOCK} began.')

model = tf.saved_model.load(str(workdir / 'export' / str(blocks[-1])))
answer = model.signatures['serving_default'](user_id=tf.constant([user_id]), k=tf.constant(K))
recommended = [item.decode() for item in answer['item_id'].numpy()[0]]

category_of = dict(zip(log.item_ids, log.category_names[log.item_category]))
# What the model was trained on ends with its last block; the rows after it are the future.
end = BlockStream(log).block(blocks[-1]).train.stop
taken = log.item_ids[log.item[:end][log.user[:end] == user]][::-1][:K]
pd.DataFrame({
    'recommended': recommended,
    'its category': [category_of[item] for item in recommended],
    'score': answer['score'].numpy()[0].round(3),
    'took lately': taken,
    'category': [category_of[item] for item in taken],
}, index=range(1, K + 1))

# %% [markdown] inside-note
# ## Inside SANE
#
# How did the reservoir treat our mover in the block of the move? In the symbols of the paper, for
# each category:
#
# * $H_{u,t-1}$ and $H_{u,t}$ count what they took in the block before and in this one;
# * **shift** is the difference of the two as shares: below zero where they lost interest;
# * $\alpha = \lambda\,|Q|\,\mathrm{softmax}(-\mathrm{shift})$, the prior: *more* negatives where they
#   lost interest;
# * $c$ counts the categories of their reservoir, items that the model ranks high and they did not take;
# * $\theta = (\alpha + c) / \sum(\alpha + c)$, the posterior mean; an item of the reservoir is drawn
#   in proportion to the $\theta$ of its category.

# %% explain
from graphsane_tf.reporting import inspect

found = inspect.explain_user(incremental.open_run(workdir), BLOCK, user_id)
reservoir = pd.DataFrame(found['reservoir'])
categories = pd.DataFrame({
    'H before': found['previous'], 'H now': found['current'], 'shift': found['shift'],
    'alpha': found['alpha'], 'c': found['counts'], 'theta': found['theta'],
}, index=found['categories'], dtype=float)
categories['share of draws'] = reservoir.groupby('category')['probability'].sum()
categories = categories.fillna(0.).sort_index()
categories.round(3)

# %% bars
titles = {
    'H before': 'H before the block', 'H now': 'H in the block', 'shift': 'shift of the shares',
    'alpha': 'alpha, the prior', 'c': 'c, the reservoir by category',
    'theta': 'theta, the posterior mean',
}
colours = ['tab:red' if name == log.category_names[lost] else
           'tab:green' if name == log.category_names[gained] else 'lightgrey'
           for name in categories.index]

figure, grid = plt.subplots(2, 3, figsize=(11, 5), layout='constrained')
for axes, (column, title) in zip(grid.T.flat, titles.items()):
  axes.bar(categories.index.str.removeprefix('category-'), categories[column], color=colours)
  axes.axhline(0, color='black', linewidth=0.8)
  axes.set_title(title)
figure.suptitle(f'{user_id}: lost {log.category_names[lost]} (red), '
                f'gained {log.category_names[gained]} (green)')
figure.supxlabel('category')
plt.show()

# %% [markdown] reservoir-note
# The items of the reservoir that are drawn most often: what the model still ranked high for them.

# %% reservoir
reservoir.sort_values(['probability', 'rank'], ascending=[False, True]).head(10).round(4)

# %% [markdown] next
# ## What next?
#
# * Set `SIZE = 'default'` for less noisy numbers, or `config.sampler = 'uniform'` to compare without
#   the reservoir.
# * Leave out `config.clusters` and the categories are learned with the model.
# * Bring your own log, choose another backbone, distiller or sampler: see the README.
