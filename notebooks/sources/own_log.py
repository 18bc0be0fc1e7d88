# %% [markdown] title
# # Your own log: which method is worth it?
#
# Before a graph model is deployed, it has to be better than what can be refitted in seconds. This notebook takes a log,
# runs two simple models and our recipe on it, and tests them against each other. Set `FILE` to a file of your own; here a
# small one is written first.

# %% imports
# %matplotlib inline
import pathlib
import tempfile

import graphsane_tf
import pandas as pd
import tensorflow as tf
from IPython.display import Image

from graphsane_tf import config_files
from graphsane_tf.blocks import describe
from graphsane_tf.data import drift, prepare
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.reporting import pairs
from graphsane_tf.runs import incremental

tf.get_logger().setLevel('ERROR')
quiet = lambda line: None

# %% [markdown] file-note
# ## The log
#
# CSV (plain or gzip), Parquet or RecBole's `.inter`, with a user, an item and a time in each row. Columns may have any
# names, ids may be words, and times may be dates.

# %% file
folder = tempfile.TemporaryDirectory(prefix='graphsane-')
home = pathlib.Path(folder.name)
FILE = home / 'orders.csv.gz'
COLUMNS = {'user_column': 'customer', 'item_column': 'product', 'timestamp_column': 'when'}

rows = drift.generate('small')
pd.DataFrame({'customer': rows.user_ids[rows.user], 'product': rows.item_ids[rows.item],
              'when': pd.to_datetime(rows.time, unit='s')}).to_csv(FILE, index=False)
pd.read_csv(FILE, nrows=4)

# %% [markdown] read-note
# Users and items with fewer than `MIN` rows are dropped, as in the literature. How many of a block's users are new says how much
# there is to gain from updates at all.

# %% read
MIN = 5
data = DataSpec('csv', {'min_user_interactions': MIN, 'min_item_interactions': MIN},
                {'interactions': str(FILE), **COLUMNS})
log = prepare.load(data, home / 'data', log=quiet)
print(describe.describe(log, 'csv'))

# %% [markdown] run-note
# ## Three ways to recommend
#
# *Recent popularity* is the same for everybody. *EASE* is a linear model of which items go together, refitted to all rows at every
# block. *Ours* (`--recipe=strong`) is a graph model that is updated block by block, with a memory of all history.

# %% run
def settings(name, **changes):
  config = config_files.load_config(name)
  config.update_from_flattened_dict(changes)
  return config

SMALL = {'model.embedding_dim': 32, 'train.batch_size': 512, 'train.base_epochs': 10, 'train.epochs': 3}
methods = {'popularity': settings('default', peer='recent_popularity'), 'ease': settings('default', peer='ease'),
           'ours': settings('strong', **SMALL)}
recall = {}
for name, config in methods.items():
  results = incremental.run(config, log, home / name, data=data, log=quiet)
  recall[name] = {f'block {entry["block"]}': entry['test']['recall@20'] for entry in results['blocks'][1:]}
pd.DataFrame(recall).T.assign(average=lambda table: table.mean(axis=1)).round(4)

# %% [markdown] compare-note
# ## Is the difference more than noise?
#
# Every user is compared with themselves and counts once, whatever the number of blocks; p is corrected for the number of
# comparisons (Holm).

# %% compare
outcome = pairs.compare([home / name for name in methods])
table = pairs.pair_table(outcome)
pd.DataFrame(table['cells'], columns=table['heads']).round(4)

# %% picture
Image(str(pairs.plot(outcome, home / 'compare.png')), width=700)

# %% [markdown] next
# ## What to do with it
#
# * EASE as good as ours, and at most a few ten thousand items: refit EASE, it is simpler.
# * Ours ahead: make a store of it (`graphsane init`), see the notebook `daily_updates`.
# * Popularity near both: people take what is promoted; a personal model will not help much.
# * The interval is one over users of one run. For seeds, run `graphsane reproduce --what=peers --datasets=mylog=log.csv.gz --seeds=3 --extra=--config=strong`.
