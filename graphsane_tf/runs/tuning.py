"""Searches on validation rows: over SANE's values, or as the deployment appendix has it, with a matched beta."""
import dataclasses
import hashlib
import itertools
import json
import pathlib
import shutil
from typing import Any, Callable, Dict, List, Optional, Sequence

from ml_collections import config_dict
import numpy as np
import optuna
import tensorflow as tf

from graphsane_tf import files
from graphsane_tf.config import check_is_trained, resolved
from graphsane_tf.data import spec as data_spec
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError
from graphsane_tf.random import Seeds, host_seed
from graphsane_tf.runs import folder as folder_lib
from graphsane_tf.runs import incremental
from graphsane_tf.training import assembly
from graphsane_tf.training.block import SELECTION_METRIC, BlockTrainer, Model
from graphsane_tf.blocks.context import BlockContext
from graphsane_tf.blocks.stream import BlockStream
from graphsane_tf.training.store import BlockStore

# Fields searched: K, beta, |Q|, lambda, N2 (N1 is what it leaves of the negatives), the reservoir's first
# rank, the learning rate of incremental blocks.
SPACE = {
    'clustering.num_clusters': optuna.distributions.IntDistribution(5, 25, step=5),
    'clustering.beta': optuna.distributions.FloatDistribution(1e-3, 100., log=True),
    'sane.size': optuna.distributions.CategoricalDistribution((50, 100, 300)),
    'sane.strength': optuna.distributions.FloatDistribution(.1, 10., log=True),
    'train.num_sampler_negatives': optuna.distributions.IntDistribution(1, 5),
    'sane.start_rank': optuna.distributions.CategoricalDistribution((1, 21, 51, 101, 201, 401)),
    'train.learning_rate': optuna.distributions.FloatDistribution(2e-4, 5e-3, log=True),
}
# The appendix's own procedure: first the backbone, on the base block's validation rows (which fields is our choice),
# then every pair of the values of its sensitivity tables.
BACKBONE: Dict[str, Sequence[Any]] = {'train.base_learning_rate': (1e-3, 2e-3, 4e-3), 'model.l2': (.002, .02)}
GRID: Dict[str, Sequence[Any]] = {'clustering.num_clusters': (5, 10, 15, 20, 25), 'sane.size': (50, 100, 300)}
# How many times a block's rows the appendix advises to have before tuning.
_ADVISED = 10
NOTE = ('Validation: mean Recall@20 over the first halves of the blocks after each trained one; '
        'this alone chooses. The test result (second halves) is measured once, for the chosen '
        'values.')
MATCHED = (' beta is not searched: it makes the KL term as large as the ranking loss in the first step of '
           'block 1.')
# Below this KL the clusters are as sure as they get, and beta would grow without bound.
_SMALLEST_KL = 1e-6
_ENDED = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)


def points(grid: Dict[str, Sequence[Any]]) -> List[Dict[str, Any]]:
  """Every combination of a grid's values."""
  return [dict(zip(grid, values)) for values in itertools.product(*grid.values())]


def size_note(stream: BlockStream) -> str:
  """A line where the base block is smaller than the appendix advises, else ''."""
  rows = np.diff(stream.cuts)
  times, total = rows[0] / rows[1], rows.sum() / rows[1]
  return '' if times >= _ADVISED else (
      f'note: the base block has {times:.1f} times the rows of block 1, and the whole log {total:.1f} times; the '
      f'deployment appendix advises {_ADVISED} times a block before tuning: cut smaller blocks '
      '(--config.blocks.num_incremental, --config.blocks.base_fraction), or take a longer log.')


def first_losses(config, context: BlockContext, previous: Model, folder) -> Dict[str, float]:
  """Losses of block 1's first batch, before any update; 'kl' without its weight beta.

  Args:
    config: the resolved configuration; its beta must be positive.
    context: of block 1.
    previous: the base model.
    folder: where the block would be stored; nothing is written.
  """
  trainer = BlockTrainer(config, context, previous, BlockStore(folder, 1), lambda line: None)
  trainer.sampler.refresh(*trainer.represent(), 0)
  order, _, _ = trainer.plan(0)
  rows = order.numpy()[:config.train.batch_size]

  @tf.function
  def losses():
    graph, split = trainer.model.graph, trainer.step.split

    def on_replica():
      seeds = Seeds(tf.constant(host_seed(config.seed, 1, name='tuning')))
      view = graph.whole() if trainer.propagation == 'whole' else split.view(graph, seeds)
      return split.total(trainer.step.losses(view, tf.constant(context.users[rows]),
                                             tf.constant(context.items[rows]), seeds))

    return split.run(on_replica)

  values = {name: float(value) for name, value in losses().items()}
  if 'kl' in values:
    values['kl'] /= config.clustering.beta
  return values


def matching_beta(losses: Dict[str, float]) -> Optional[float]:
  """beta that makes the KL term as large as the ranking losses; None without a KL term."""
  if 'kl' not in losses:
    return None
  ranking = sum(losses.get(name, 0.) for name in ('bpr', 'softmax', 'sane'))
  return float(f'{ranking / max(losses["kl"], _SMALLEST_KL):.2g}')


def contains(distribution, value: Any) -> bool:
  """Whether the search can try a value."""
  if isinstance(distribution, optuna.distributions.CategoricalDistribution):
    return value in distribution.choices
  return distribution.low <= value <= distribution.high


@dataclasses.dataclass
class Tuner:
  """A search in a folder; the same call goes on with it.

  Attributes:
    config: where the search starts; its sampler becomes SANE.
    interactions: the log, cut as in the appendix: base block, then blocks whose successors' first
      halves are validation and second halves test rows.
    data: where the log is from.
    folder: of the study, its trials and the chosen run.
    log: takes a line for the screen.
    search: 'tpe', Optuna's search over all of `SPACE`, or 'appendix', the backbone and then a grid.
  """
  config: config_dict.ConfigDict
  interactions: Interactions
  data: DataSpec
  folder: pathlib.Path
  log: Callable[[str], None] = print
  search: str = 'tpe'

  def __post_init__(self):
    self._backbone: Dict[str, Any] = {}
    self._space = SPACE if self.search == 'tpe' else {
        name: optuna.distributions.CategoricalDistribution(values) for name, values in GRID.items()}
    self.config = self._with({'sampler': 'sane', 'base_from': ''})
    resolved(self.config)
    check_is_trained(self.config, 'a search')
    if self.config.clustering.beta <= 0:
      raise UserError('config.clustering.beta must be positive while it is tuned.')
    most = SPACE['train.num_sampler_negatives'].high
    if self.config.train.num_negatives < most:
      raise UserError(f'config.train.num_negatives is {self.config.train.num_negatives}; it must be at '
                      f'least {most}, the most that the search gives to the sampler.')
    self.folder = files.make_directory(self.folder)
    identity = json.loads(json.dumps({'config': self.config.to_dict(), 'data': {
        **self.data.to_json(), 'fingerprint': self.interactions.fingerprint},
                                      **({} if self.search == 'tpe' else {'search': self.search})}))
    path = self.folder / 'tune_config.json'
    if not path.exists():
      files.write_json(path, identity)
      return
    saved = files.read_object(path, {'config': {}, 'data': {}})
    files.check_object(saved['data'], {'dataset': '', 'fingerprint': ''}, f"{path}: 'data'")
    if {**saved, 'data': data_spec.renewed(saved['data'])} != identity:
      raise UserError(f'{self.folder} holds another kind of search, or one with another configuration or log: choose '
                      'another --workdir.')

  def _with(self, changes: Dict[str, Any]) -> config_dict.ConfigDict:
    config = config_dict.ConfigDict(self.config.to_dict(), type_safe=False)
    config.update_from_flattened_dict(changes)
    return config

  def _open(self, config, name: str, exports: bool = False) -> incremental.IncrementalRun:
    return incremental.IncrementalRun(config, self.interactions, self.folder / name, self.data,
                                      log=lambda line: None, exports=exports)

  def _start(self) -> Dict[str, Any]:
    """The values that the search begins with: the configuration's own, where it can try them."""
    plain = resolved(self.config)
    values = {name: plain[name.split('.')[0]][name.split('.')[1]] for name in self._space}
    return {name: value for name, value in values.items() if contains(self._space[name], value)}

  def _study(self) -> optuna.Study:
    """The study on disk, its cut-off trials put in line again."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = f'sqlite:///{(self.folder / "study.db").resolve()}'
    study = optuna.create_study(storage=storage, study_name='tune', direction='maximize',
                                load_if_exists=True)
    # Seeded by the number of trials, too: a resumed search does not repeat its first draws.
    study.sampler = optuna.samplers.TPESampler(seed=self.config.seed + len(study.trials),
                                               n_startup_trials=5)
    study.pruner = optuna.pruners.MedianPruner(n_startup_trials=4)
    for trial in study.get_trials(states=(optuna.trial.TrialState.RUNNING,)):
      # Its epochs are on disk, and the same values go on with them.
      study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
      study.enqueue_trial(trial.params)
    if self.search != 'tpe':
      study.pruner = optuna.pruners.NopPruner()
    if not study.trials:
      for params in [self._start()] if self.search == 'tpe' else points(GRID):
        study.enqueue_trial(params)
    return study

  def _choose_backbone(self) -> None:
    """Sets the fields of `BACKBONE` to the best on the base block's validation rows; no test row is touched."""
    path = self.folder / 'backbone.json'
    values: Dict[str, float] = files.read_json(path) if path.exists() else {}
    for params in points(BACKBONE):
      name = _digest(params)
      if name not in values:
        run = self._open(self._with({**params, 'sampler': 'uniform'}), f'backbones/{name}')
        with run.held():
          trainer = assembly.trainer_for(run.config, self.interactions, 0, run.workdir, None)
          validate = assembly.validator(run.config, self.interactions, run.stream.block(0), trainer.context)
          values[name] = trainer.train(validate, lambda record: None)['best_value']
        files.write_json(path, values)
        shutil.rmtree(run.workdir, ignore_errors=True)
      self.log('backbone  ' + '  '.join(f'{field.split(".")[1]} {value:g}' for field, value in params.items())
               + f'  validation {SELECTION_METRIC} {values[name]:.4f}')
    self._backbone = max(points(BACKBONE), key=lambda params: values[_digest(params)])
    self.config = self._with(self._backbone)

  def _trial_config(self, params: Dict[str, Any], base: incremental.IncrementalRun,
                    model: Model) -> config_dict.ConfigDict:
    """The configuration of a trial: its values, and the beta that goes with them unless it is one of these."""
    config = self._with(params)
    if 'clustering.beta' in self._space:
      return config
    saved = self.folder / 'trials' / _digest(params) / 'config.json'
    if saved.exists():
      config.clustering.beta = folder_lib.read_identity(saved.parent)['config']['clustering']['beta']
      return config
    beta = matching_beta(first_losses(resolved(config), base.context(1), model,
                                      self.folder / 'trials'))
    if beta is not None:
      config.clustering.beta = beta
    return config

  def _try(self, trial: optuna.Trial, run: incremental.IncrementalRun, model: Model
          ) -> Optional[float]:
    """Mean validation recall over incremental blocks, None if pruned; no test row is touched."""
    recalls: List[float] = []
    for index in range(1, run.stream.num_blocks):
      trainer = assembly.trainer_for(run.config, self.interactions, index, run.workdir, model)
      validate = assembly.validator(run.config, self.interactions, run.stream.block(index), trainer.context)
      recalls.append(trainer.train(validate, lambda record: None)['best_value'])
      model = trainer.model
      self.log(f'trial {trial.number}  block {index}  validation {SELECTION_METRIC} '
               f'{recalls[-1]:.4f}')
      trial.report(float(np.mean(recalls)), index)
      if index < run.stream.num_blocks - 1 and trial.should_prune():
        self.log(f'trial {trial.number} is pruned')
        return None
    return float(np.mean(recalls))

  def run(self, trials: int) -> Dict[str, Any]:
    """Searches until `trials` trials (or all of the grid) are finished or pruned, then tests the chosen values once.

    Returns:
      heads and cells (chosen values), tried (heads and cells, a line a trial that was not pruned, the best first),
      note, validation, test, start (validation of the values that the search began with), trials, pruned, and version
      and commit of the chosen run.
    """
    with folder_lib.locked(self.folder):
      return self._search(trials)

  def _search(self, trials: int) -> Dict[str, Any]:
    """See `run`."""
    note = size_note(assembly.stream_of(self.config, self.interactions))
    if note:
      self.log(note)
    if self.config.memory != 'none':
      self.log(f'note: trials compare graph models alone; --memory={self.config.memory} joins the chosen one.')
    if self.search != 'tpe':
      trials = len(points(GRID))
      self._choose_backbone()
    base = self._open(self._with({'sampler': 'uniform'}), 'base')
    self.log('training the base block, or reading it')
    base.run([0])
    model = base.load_model(0)
    study = self._study()
    while len(study.get_trials(states=_ENDED)) < trials:
      trial = study.ask(fixed_distributions=self._space)
      config = self._trial_config(trial.params, base, model)
      trial.set_user_attr('beta', config.clustering.beta)
      self.log(f'trial {trial.number}  ' + '  '.join(
          f'{name.split(".")[1]} {value:.4g}' for name, value in trial.params.items())
               + f'  beta {config.clustering.beta:.2g}')
      run = self._open(config, f'trials/{_digest(trial.params)}')
      with run.held():
        value = self._try(trial, run, model)
      study.tell(trial, value, state=None if value is not None else _ENDED[1])
      shutil.rmtree(run.workdir, ignore_errors=True)
    best = study.best_trial
    config = self._with({**best.params, 'base_from': str(base.workdir)})
    config.clustering.beta = best.user_attrs['beta']
    chosen = self._open(config, f'chosen-{_digest(best.params)}', exports=True)
    self.log(f'training the chosen values of trial {best.number} for their test result')
    report = self._report(study, best, chosen.run())
    files.write_json(self.folder / 'tune.json', report)
    return report

  def _report(self, study: optuna.Study, best, results) -> Dict[str, Any]:
    ended = study.get_trials(states=_ENDED)
    start = next((t.value for t in ended if t.params == self._start()), None)
    rows: List[List[Any]] = [[name, value] for name, value in {**self._backbone, **best.params}.items()]
    train = self._with(best.params).train
    matched = 'clustering.beta' not in self._space
    rows += [['uniform negatives (N1)', train.num_negatives - train.num_sampler_negatives],
             *([['clustering.beta', best.user_attrs['beta']]] if matched else []),
             ['validation Recall@20', best.value],
             ['validation Recall@20 of the starting values', start],
             ['test Recall@20', results['average']['recall@20']]]
    fields = list(self._space)
    tried = [[*(trial.params.get(name) for name in fields), *([trial.user_attrs['beta']] if matched else []),
              trial.value]
             for trial in ended if trial.value is not None]
    return {'heads': ['chosen', 'value'], 'cells': rows,
            'tried': {'heads': [*fields, *(['clustering.beta'] if matched else []), 'validation Recall@20'],
                      'cells': sorted(tried, key=lambda cells: -cells[-1])},
            'version': results.get('version'), 'commit': results.get('commit'),
            'note': NOTE + (MATCHED if matched else ''), 'validation': best.value,
            'test': results['average'], 'start': start, 'trials': len(ended),
            'pruned': len(study.get_trials(states=_ENDED[1:]))}


def _digest(params: Dict[str, Any]) -> str:
  return hashlib.sha256(json.dumps(params, sort_keys=True).encode()).hexdigest()[:12]
