"""One new version of a store: trained, judged, trained on all rows, and published or put away."""
import contextlib
import dataclasses
import time
from typing import Any, Callable, Dict, Optional, Tuple

import scipy.sparse

from graphsane_tf import config as config_lib
from graphsane_tf import files
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.data import growing
from graphsane_tf.errors import UserError
from graphsane_tf.memory import mixing
from graphsane_tf.runs import capacity, changes, gate
from graphsane_tf.runs.store import Store, evidences_of
from graphsane_tf.serving import export
from graphsane_tf.training import assembly, optimizers
from graphsane_tf.training import scoring as scoring_lib
from graphsane_tf.training.block import BlockTrainer, Model, new_model
from graphsane_tf.training.scoring import Scoring
from graphsane_tf.training.store import BlockStore

Say = Callable[[str], None]
# With fewer rows held out than this nothing can be measured, and more than this tell nothing more.
MIN_HELD, MAX_HELD = 20, 20_000
# Updates whose evidence about mixtures counts.
_MAX_EVIDENCES = 10
# Metrics that are printed.
SHOWN = (gate.SELECTION_METRIC, 'ndcg@20')


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What an update has come to.

  Attributes:
    decision: 'published', 'refused' or 'nothing' (there was nothing new).
    version: the one that is served now.
    sentence: what happened.
    manifest: of the version made, published or not; None if there was none.
  """
  decision: str
  version: int
  sentence: str
  manifest: Optional[Dict[str, Any]] = None


def refusal(manifest: Dict[str, Any], current: int) -> str:
  return (f'version {manifest["number"]} is not published and version {current} stays: {manifest["gate"]["reason"]} '
          'Its rows wait for the next update.')


def _changed(config, fields: Dict[str, Any]):
  """A resolved configuration with other values of some fields."""
  copy = config_lib.restored(config.to_dict())
  copy.update_from_flattened_dict(fields)
  return config_lib.resolved(copy)


def _moved(config, context: BlockContext, previous: Model) -> Model:
  """A model's weights with the graph of a later block; new nodes begin as the mean of their neighbours."""
  config = _changed(config, {'model.new_rows': 'neighbours'})
  model = new_model(config, context, config.train.learning_rate)
  model.backbone.grow_from(previous.backbone, model.graph)
  optimizers.grow_state(previous.optimizer, previous.backbone.named_variables(), model.optimizer,
                        model.backbone.named_variables())
  return model


class Attempt:
  """One new version, from the rows that the parent has not been trained on."""

  def __init__(self, store: Store, kept: growing.KeptLog, parent: Optional[Dict[str, Any]], margin: float, say: Say,
               publish: Optional[str] = None):
    """See `updating.update`; `kept` is the log and `parent` the manifest of the version before, None for the first."""
    self._publish = publish
    self._store, self._kept, self._parent, self._margin, self._say = store, kept, parent, margin, say
    self._log = kept.interactions
    self._config = store.config
    self._index = parent['update'] + 1 if parent else 0
    self._first = parent['data']['rows'] if parent else 0
    self._stop = len(self._log)
    held_out = min(int(store.settings.holdout * (self._stop - self._first)), MAX_HELD)
    self._cut = self._middle = self._stop
    if held_out >= MIN_HELD:
      self._cut = self._between_baskets(self._stop - held_out, self._first + 1)
      self._middle = self._between_baskets((self._cut + self._stop) // 2, self._cut + 1)
    self._number = store.versions.next_number()
    self._seconds: Dict[str, float] = {}
    self._evidences = evidences_of(parent)
    self._validated: scoring_lib.Evidence = {}
    self._before: Optional[Scoring] = None
    self._weights: Optional[scipy.sparse.csr_matrix] = None

  def run(self) -> Outcome:
    """Trains, judges and publishes or refuses."""
    store, started = self._store, time.perf_counter()
    self._settle()
    capacity.check(self._config, self._block(self._stop))
    previous = self._previous()
    manifest, judged = self._choose(previous) if self._cut < self._stop else self._unjudged()
    refused = manifest['gate']['decision'] == 'refused'
    context, model, scoring = judged if refused else self._final(previous, manifest)
    self._say('writing the version')
    scorer = gate.scorer_of(manifest['move'], scoring, model.backbone.representer(model.graph)(), self._log.time)
    manifest['mixture'] = gate.mixture_of(manifest['move'], scoring)
    manifest['drift'] = changes.facts(self._log, context, scorer, previous and previous[2])
    manifest['seconds'] = self._seconds
    store.stage(self._kept, context, model, scorer, manifest, started)
    if refused:
      self._say('putting it away')
      store.versions.reject(store.staging, self._number)
      files.remove(store.work)
      current = store.manifest()['number']
      return Outcome('refused', current, refusal(manifest, current), manifest)
    self._say('publishing')
    store.versions.publish(store.staging, self._number)
    files.remove(store.work)
    return Outcome('published', self._number,
                   f'version {self._number} is published ({manifest["kind"]}): {manifest["gate"]["reason"]}',
                   store.manifest(self._number))

  def _between_baskets(self, row: int, least: int) -> int:
    """The last row up to `row` at which a user's rows of one time begin; `row` itself if that is below `least`."""
    log, start = self._log, row
    while start > least and log.user[start] == log.user[start - 1] and log.time[start] == log.time[start - 1]:
      start -= 1
    return start if start > least else row

  def _settle(self) -> None:
    """Goes on with the work of the same attempt, and deletes that of any other."""
    store = self._store
    plan = {'number': self._number, 'parent': self._parent and self._parent['number'], 'first': self._first,
            'cut': self._cut, 'middle': self._middle, 'stop': self._stop, 'fingerprint': self._log.fingerprint}
    path = store.work / 'plan.json'
    if not path.exists() or files.read_json(path) != plan:
      files.remove(store.work)
      files.write_json(path, plan)

  def _block(self, stop: int):
    return self._store.block(self._log, self._index, self._first, stop, slice(self._cut, self._middle))

  def _previous(self) -> Optional[Tuple[Model, BlockContext, Any]]:
    """The parent's model, what it knows and how it ranks."""
    if self._parent is None:
      return None
    context = self._store.context_of(self._parent, self._kept)
    model = self._store.model(self._parent, context)
    served = export.read_scorer(self._store.versions.path(self._parent['number']))
    # Its item-item weights took longer to compute than anything else of it.
    self._before = self._scoring(context, getattr(served, 'weights', None))
    mixture = self._parent.get('mixture')
    if mixture and self._before.mixture is not None and self._parent.get('move') not in gate.ALONE:
      # As it is served: what was held out then has had its say.
      self._before.mixture = mixing.Mixture(**mixture)
    return model, context, served

  def _scoring(self, context: BlockContext, weights: Optional[scipy.sparse.csr_matrix] = None) -> Scoring:
    """How a model of a context ranks; see `Scoring`."""
    began = time.perf_counter()
    scoring = Scoring(self._config, context, self._evidences, self._before, weights)
    scoring.learn(self._validated)
    self._seconds['memory'] = self._seconds.get('memory', 0.) + time.perf_counter() - began
    return scoring

  def _study(self, context: BlockContext, previous) -> None:
    """What today's rows, but for those held out, say about mixtures, by yesterday's model and memory."""
    if self._before is None:
      return
    model = previous[0]
    user_vectors, item_vectors = model.backbone.representer(model.graph)()
    told = self._before.evidence(user_vectors, item_vectors, *context.rows(context.own),
                                 (self._config.seed, self._index))
    if told:
      self._evidences = [*self._evidences, told][-_MAX_EVIDENCES:]

  def _train(self, folder: str, config, context: BlockContext, previous, scoring: Scoring, validate
             ) -> Tuple[Dict[str, Any], Model]:
    """Trains in a folder of its own, from where it was cut off."""
    place = files.make_directory(self._store.work / folder)
    start = None if previous is None or config.full_retrain else previous[0]
    trainer = BlockTrainer(config, context, start, BlockStore(place, self._index), self._say, scoring=scoring,
                           before=self._before)
    state = trainer.train(validate, lambda record: None)
    self._seconds[folder] = state['train_seconds']
    return state, trainer.model

  def _choose(self, previous):
    """Chooses epochs on the first half of the held-out rows and judges on the second.

    Returns:
      The manifest so far, and (context, model, scoring) of the best move.
    """
    config, log, store = self._config, self._log, self._store
    block = self._block(self._cut)
    context = store.context(self._kept, block)
    self._say(f'choosing the epochs: {self._cut - self._first:,} rows to train on, {self._middle - self._cut:,} to '
              f'choose with, {self._stop - self._middle:,} to judge with')
    self._study(context, previous)
    scoring = self._scoring(context)
    validate = assembly.validator(config, log, block, context, scoring)
    state, model = self._train('choose', config, context, previous, scoring, validate)
    began = time.perf_counter()
    rows = slice(self._cut, self._middle)
    self._validated = scoring.evidence(*model.backbone.representer(model.graph)(), log.user[rows], log.item[rows],
                                       (config.seed, self._index, 1))
    scoring.learn(self._validated)
    rows = slice(self._middle, self._stop)
    judge = gate.Judge(log.user[rows], log.item[rows], log.num_users, assembly.measured(config))
    models = {'trained': model}
    if previous is not None:
      models['graph_only'] = _moved(config, context, previous[0])
    vectors = {name: move.backbone.representer(move.graph)() for name, move in models.items()}
    # What a memory gives without the graph model needs no weights of it.
    scorers = {name: gate.scorer_of(name, scoring, vectors.get(name, vectors['trained']), log.time)
               for name in gate.moves_of(models, scoring)}
    measured = {name: judge.measure(scorer, context) for name, scorer in scorers.items()}
    if previous is not None:
      measured['current'] = judge.measure(previous[2], previous[1])
    measured['popularity'] = judge.measure_popularity(gate.recent_counts(context, log.time), context)
    earlier = gate.earlier_gates(store.versions.manifests(), self._kept.numbering, self._middle)
    verdict = gate.decide(measured, self._margin, earlier)
    never = self._never_updated(judge)
    if never is not None:
      measured['never_updated'] = never
      verdict['options']['never_updated'] = never.metrics
    if previous is None:
      verdict['decision'] = 'first'
    elif self._publish:
      verdict.update(decision=self._publish, chosen=self._publish,
                     reason=f'{self._publish} was asked for, whatever the gate says: {verdict["reason"]}')
    self._seconds['judge'] = time.perf_counter() - began
    for name, result in measured.items():
      self._say(f'  {name:13} ' + '  '.join(f'{metric} {result.metrics[metric]:.4f}' for metric in SHOWN))
    self._say(f'gate: {verdict["reason"]}')
    moved = verdict['chosen']
    trains = moved == 'trained' or previous is None
    epochs, epochs_from = (state['best_epoch'], 'validation') if trains else (0, 'none')
    manifest = self._manifest(
        verdict, moved, epochs, epochs_from,
        {'rows_trained': [self._first, self._cut], 'validation_rows': [self._cut, self._middle],
         'judged_rows': [self._middle, self._stop], 'epochs': state['best_epoch'],
         'validation': state['validation']})
    if verdict['decision'] == 'refused':
      manifest['trained']['rows'] = [self._first, self._cut]
    if previous is not None:
      # What was judged is what is served: the rows held out are in counts and profiles of the final memory, and
      # change weights that all history has made as good as not at all. They are in tomorrow's.
      self._weights = scoring.recollection and scoring.recollection.weights
    return manifest, (context, models['trained' if trains else 'graph_only'], scoring)

  def _never_updated(self, judge: gate.Judge):
    """What the first version has on the judged rows; None if it is not there any more, or is the current one."""
    versions, parent = self._store.versions, self._parent
    if parent is None or not parent['update']:
      return None
    for number in versions.numbers():
      # Only shown: if an old version is damaged, the update goes on.
      with contextlib.suppress(UserError):
        manifest = versions.manifest(number)
        if not manifest['update']:
          return judge.measure(self._store.scorer(number), self._store.context_of(manifest, self._kept))
    return None

  def _unjudged(self):
    """The manifest of a day with too few rows to hold any out."""
    parent, train = self._parent, self._config.train
    # What was right yesterday stays, also how it is mixed: nothing has shown anything else.
    alone = parent is not None and parent.get('move') in gate.ALONE
    if parent is None:
      epochs, words = train.base_epochs, 'all epochs'
    else:
      epochs, words = parent['trained']['epochs'], 'as many epochs as before'
      if not parent['update']:
        epochs, words = 0 if alone else train.min_epochs, 'as few epochs as an update has'
      if self._publish:
        epochs = (epochs or train.min_epochs) if self._publish == 'trained' else 0
    moved = 'trained' if epochs else 'graph_only'
    if not epochs:
      moved = self._publish or (parent['move'] if parent and alone else moved)
      words = 'no training'
    rows = self._stop - self._first
    reason = f'{rows:,} rows are too few to hold any out: not judged, and {words}{f" ({epochs})" if epochs else ""}.'
    self._say(reason)
    verdict = {'decision': 'unjudged', 'chosen': moved, 'reason': reason, 'metric': gate.SELECTION_METRIC,
               'margin': self._margin, 'options': {}, 'users': 0, 'difference': None}
    return self._manifest(verdict, moved, epochs, 'earlier', {
        'rows_trained': None, 'validation_rows': None, 'judged_rows': None, 'epochs': None, 'validation': {}}), None

  def _manifest(self, verdict, moved: str, epochs: int, epochs_from: str, measured) -> Dict[str, Any]:
    parts = [part for part in self._kept.parts if part['first_row'] >= self._first]
    names = [field.name for field in dataclasses.fields(growing.Arrival)]
    return {
        'number': self._number, 'kind': moved if self._parent else 'base', 'move': moved,
        'parent': self._parent and self._parent['number'], 'update': self._index,
        'arrived': {**{name: parts[-1][name] for name in names},
                    'waiting': sum(part['rows'] for part in parts[:-1]),
                    'files': [{name: part[name] for name in ('file', 'sha256')} for part in parts]},
        'trained': {'epochs': epochs, 'epochs_from': epochs_from, 'rows': [self._first, self._stop]},
        'measured': measured, 'gate': verdict, 'mixing': [scoring_lib.to_json(one) for one in self._evidences]}

  def _mix_as_before(self, scoring: Scoring) -> None:
    """How the parent mixes stays, where nothing has shown anything else."""
    parent = self._parent or {}
    if not parent.get('mixture') or scoring.mixture is None:
      return
    mixture = mixing.Mixture(**parent['mixture'])
    if parent.get('move') in gate.ALONE:
      # It holds nothing about the graph model, should that be trained.
      mixture = dataclasses.replace(scoring.mixture, half_age=mixture.half_age)
    scoring.mixture = mixture

  def _final(self, previous, manifest) -> Tuple[BlockContext, Model, Scoring]:
    """The model that is served: the same move, with all rows."""
    context = self._store.context(self._kept, self._block(self._stop))
    epochs = manifest['trained']['epochs']
    scoring = self._scoring(context, self._weights)
    if manifest['gate']['decision'] == 'unjudged':
      self._mix_as_before(scoring)
    if not epochs:
      return context, _moved(self._config, context, previous[0]), scoring
    self._say(f'training on all {self._stop - self._first:,} rows for {epochs} epochs')
    config = _changed(self._config, {f'train.{name}': epochs for name in (
        'epochs', 'min_epochs', 'base_epochs', 'base_min_epochs')})
    _, model = self._train('final', config, context, previous, scoring, None)
    return context, model, scoring
