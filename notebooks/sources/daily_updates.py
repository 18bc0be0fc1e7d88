# %% [markdown] title
# # Daily updates and serving
#
# A *store* is a folder with one log and numbered versions of a model. Every day's rows make the next version, if that is no step
# back. This notebook makes a store, brings it up to date three times, looks at what was decided and why, and asks it over HTTP.

# %% imports
# %matplotlib inline
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import graphsane_tf
import matplotlib.pyplot as plt
import pandas as pd
import tensorflow as tf

from graphsane_tf import Recommender
from graphsane_tf.data import drift

tf.get_logger().setLevel('ERROR')

# %% [markdown] create-note
# ## The first version
#
# A data frame with columns user, item and timestamp will do, or a file.

# %% create
folder = tempfile.TemporaryDirectory(prefix='graphsane-')
home = pathlib.Path(folder.name)
log = drift.generate('small')
rows = pd.DataFrame({'user': log.user_ids[log.user], 'item': log.item_ids[log.item], 'timestamp': log.time})
days = [rows[:7200], rows[7200:8200], rows[8200:9200], rows[9200:10200]]
shop = Recommender.create(home / 'shop', days[0], backbone='lightgcn', embedding_dim=32, batch_size=128, base_epochs=8,
                          epochs=2)
print('version', shop.version, 'knows', len(days[0]), 'rows')

# %% [markdown] update-note
# ## Three days
#
# Each update is measured on the day's newest rows: trained on the new rows; old weights with the new rows in the graph; what was
# served before; a version that was never updated; and popularity. The better one of the first two is published, unless another
# one is clearly ahead: then the update is refused, and its rows wait for the next one.

# %% update
measured = []
for day in days[1:]:
  gate = (outcome := shop.update(day)).manifest['gate']
  measured.append({'version': outcome.version, 'decision': gate['decision'],
                   **{name: metrics['recall@20'] for name, metrics in gate['options'].items()}})
pd.DataFrame(measured).round(4)

# %% picture
table = pd.DataFrame(measured).set_index('version')
figure, axes = plt.subplots(figsize=(6.5, 3), layout='constrained')
for name, label in (('trained', 'trained on the new rows'), ('graph_only', 'old weights, new graph'),
                    ('current', 'served before'), ('popularity', 'popularity')):
  axes.plot(table.index, table[name], marker='o', label=label)
axes.set(xlabel='version', ylabel='Recall@20 on the newest rows', ylim=(0, None))
axes.set_xticks(table.index)
axes.legend(fontsize='small')
plt.show()

# %% [markdown] nothing-note
# The same rows again change nothing, and a bad day would be refused: its rows wait for the next update.

# %% nothing
again = shop.update(days[-1])
print(again.decision, '-', again.sentence)

# %% [markdown] ask-note
# ## Ask it

# %% ask
print(shop.recommend('u00012', k=3))
print('a stranger gets what is popular:', shop.recommend('somebody new', k=3))
print('like i00001:', shop.similar_items('i00001', k=3))

# %% [markdown] serve-note
# ## Over HTTP
#
# `graphsane serve --store=shop` answers with TensorFlow Serving's REST paths and a few simpler ones, and takes up new versions by itself.

# %% serve
with socket.socket() as free:
  free.bind(('127.0.0.1', 0))
  port = free.getsockname()[1]
place = str(pathlib.Path(graphsane_tf.__file__).parents[1])
server = subprocess.Popen([sys.executable, '-m', 'graphsane_tf', 'serve', f'--store={home / "shop"}', f'--port={port}'],
                          env={**os.environ, 'PYTHONPATH': place}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

def get(path):
  for _ in range(600):
    try:
      with urllib.request.urlopen(f'http://127.0.0.1:{port}{path}') as answer:
        return json.loads(answer.read())
    except OSError:
      time.sleep(.2)
  raise SystemExit('the server does not answer')

print(json.dumps(get('/recommend?user=u00012&k=3'), indent=1))

# %% [markdown] live-note
# An update while it serves: the next answer is of the new version, and no request is lost.

# %% live
shop.update(rows[10200:11200])
for _ in range(150):
  health = get('/healthz')
  if str(shop.version) in json.dumps(health):
    break
  time.sleep(.2)
print(health)
server.terminate()
server.wait()

# %% [markdown] next
# ## What next?
#
# * `graphsane init`, `update`, `status`, `rollback` and `prune` do the same from the command line (docs/updating.md).
# * `shop.update(forget_users=[...])` publishes a version that has never heard of somebody.
# * Every version is a SavedModel with more signatures: docs/serving.md.
