"""Takes users and items out of a store, so that nothing on disk knows them any more."""
import time
from typing import Callable, Iterable

import numpy as np

from graphsane_tf import files
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.data import growing
from graphsane_tf.errors import UserError
from graphsane_tf.memory import mixing
from graphsane_tf.runs import gate
from graphsane_tf.runs.store import Store, evidences_of
from graphsane_tf.training import optimizers
from graphsane_tf.training.block import Model, new_model
from graphsane_tf.training.scoring import Scoring


def forget(store: Store, users: Iterable[str], items: Iterable[str], say: Callable[[str], None]) -> str:
  """Publishes the current version without some users and items, and deletes whatever knew them.

  Returns:
    What was done, '' if the store knows none of them.
  """
  started = time.perf_counter()
  kept = store.log()
  log = kept.interactions
  users, items = set(users), set(items)
  unknown = sorted(users - set(log.user_ids)) + sorted(items - set(log.item_ids))
  gone = [int(np.isin(ids, np.array(list(names), object)).sum())
          for ids, names in ((log.user_ids, users), (log.item_ids, items))]
  if any(gone) and unknown:
    say(f'warning: {len(unknown):,} of the {len(users) + len(items):,} ids to be forgotten are not in the store, such '
        f'as {unknown[0][:40]!r}: are they written as in the log?')
  if not any(gone):
    say('nobody and nothing to forget: the store knows none of these ids.')
    return ''
  shrunk = growing.forget(log, users, items)
  number = store.manifest()['number']
  parent = store.versions.check(number)
  before_context = store.context_of(parent, kept)
  before = store.model(parent, before_context)
  place = np.concatenate([[0], np.cumsum(shrunk.kept_rows)])
  parts = [{**part, 'first_row': int(place[part['first_row']]),
            'rows': int(place[part['first_row'] + part['rows']] - place[part['first_row']])} for part in kept.parts]
  kept = growing.KeptLog(kept.number + 1, kept.numbering + 1, shrunk.log, [part for part in parts if part['rows']])
  first, stop = (int(place[row]) for row in parent['trained']['rows'])
  if stop == 0:
    raise UserError('without the users and items to forget, the current version has no rows left: make a new store.')
  files.remove(store.work)
  files.make_directory(store.work)
  kept.write(store.path / 'log')
  context = store.context(kept, store.block(kept.interactions, parent['update'], first, stop))
  model = _shrunk(store.config, context, before, shrunk)
  new = store.versions.next_number()
  sentence = f'{gone[0]:,} users and {gone[1]:,} items forgotten'
  scoring = Scoring(store.config, context, evidences_of(parent))
  if parent.get('mixture'):
    # As it is served: rows that were held out have had their say.
    scoring.mixture = mixing.Mixture(**parent['mixture'])
  move = parent.get('move', 'trained')
  scorer = gate.scorer_of(move, scoring, model.backbone.representer(model.graph)(),
                          kept.interactions.time)
  store.stage(kept, context, model, scorer, {
      **{name: parent[name] for name in ('update', 'measured', 'drift', 'mixing')},
      'move': move, 'mixture': gate.mixture_of(move, scoring),
      'number': new, 'kind': 'forgotten', 'parent': number,
      'arrived': {'rows': 0, 'forgotten_users': gone[0], 'forgotten_items': gone[1]},
      'trained': {**parent['trained'], 'rows': [first, stop]},
      'gate': {'decision': 'forgotten', 'reason': f'{sentence}; nothing was trained.'}, 'seconds': {}}, started)
  store.versions.publish(store.staging, new)
  store.tidy()
  sentence += f'; version {new} is published without them and older versions are deleted.'
  say(sentence)
  return sentence


def _shrunk(config, context: BlockContext, before: Model, shrunk: growing.Shrinkage) -> Model:
  """A model without the rows of those who are forgotten."""
  model = new_model(config, context, config.train.learning_rate)
  rows = {'user_table': shrunk.users[:context.num_users], 'item_table': shrunk.items[:context.num_items]}
  new_variables = model.backbone.named_variables()
  for name, variable in before.backbone.named_variables().items():
    kept = rows.get(name, slice(None))
    new_variables[name].assign(variable.numpy()[kept])
    for slot in optimizers.SLOTS:
      moments = before.optimizer.get_slot(variable, slot).numpy()[kept]
      model.optimizer.get_slot(new_variables[name], slot).assign(moments)
  model.optimizer.iterations.assign(before.optimizer.iterations)
  return model
