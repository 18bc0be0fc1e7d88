"""What each configuration field may be: type, range and choices, in one table."""
import dataclasses
import difflib
import importlib
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence, Tuple

import numpy as np

from graphsane_tf.errors import UserError

# Numbers end up in 32 bits.
_LARGEST_INT = int(np.iinfo(np.int32).max)
_LARGEST_FLOAT = float(np.finfo(np.float32).max)
_KINDS = {int: 'a whole number', float: 'a finite number', bool: 'True or False', str: 'a text'}


@dataclasses.dataclass(frozen=True)
class Rule:
  """What a field may be.

  Attributes:
    kind: int, float (whole numbers count, too), bool or str; of each entry if the field is a tuple.
    low: smallest number; None if there is none.
    high: largest number; None is the largest of 32 bits.
    above: whether `low` itself is too small.
    below: whether `high` itself is too large.
    choices: the only values, if there are any.
    registry: dict whose keys are the only values, as 'package.module.NAME'; '' if there is none.
    length: fewest and most entries of a tuple; None if the field is no tuple.
  """
  kind: type
  low: Optional[float] = None
  high: Optional[float] = None
  above: bool = False
  below: bool = False
  choices: Tuple[Any, ...] = ()
  registry: str = ''
  length: Optional[Tuple[int, int]] = None

  def wanted(self, value: Any) -> Optional[str]:
    """What the value must be ('at least 1'), or None if it is that."""
    if self.length is None:
      return self._wanted(value)
    least, most = self.length
    if not isinstance(value, (tuple, list)) or not least <= len(value) <= most:
      return f'a tuple of {least if least == most else f"{least} to {most}"} numbers'
    texts = [text for text in map(self._wanted, value) if text]
    return f'a tuple in which each number is {texts[0]}' if texts else None

  def _wanted(self, value: Any) -> Optional[str]:
    """`wanted` of a value that is no tuple."""
    if not self._has_kind(value):
      return _KINDS[self.kind]
    choices = self.allowed()
    if choices:
      return None if value in choices else _alternatives(choices)
    if self.kind not in (int, float):
      return None
    # With 32 bits, a number just below 1 is 1.
    inside = self._contains(value) and (self.kind is int or self._contains(float(np.float32(value))))
    return None if inside else self._range(value)

  def _has_kind(self, value: Any) -> bool:
    if isinstance(value, bool):
      return self.kind is bool
    if self.kind is float:
      return isinstance(value, (int, float)) and abs(value) <= _LARGEST_FLOAT
    return isinstance(value, self.kind)

  def _contains(self, number: float) -> bool:
    if self.low is not None and (number <= self.low if self.above else number < self.low):
      return False
    high = _LARGEST_INT if self.high is None and self.kind is int else self.high
    return high is None or (number < high if self.below else number <= high)

  def _range(self, value: float) -> str:
    """'at least 0 and below 1'; the largest whole number is named only where it is exceeded."""
    high = _LARGEST_INT if self.high is None and value > _LARGEST_INT else self.high
    bounds = (('above' if self.above else 'at least', self.low),
              ('below' if self.below else 'at most', high))
    return ' and '.join(f'{word} {bound:.10g}' for word, bound in bounds if bound is not None)

  def allowed(self) -> Tuple[Any, ...]:
    """The only values; () if they cannot be listed."""
    if not self.registry:
      return self.choices
    # Registries import TensorFlow, which this module must not.
    module, _, name = self.registry.rpartition('.')
    return tuple(getattr(importlib.import_module(module), name))


def _alternatives(values: Sequence[Any]) -> str:
  """'a, b or c'."""
  *most, last = map(str, values)
  return f'{", ".join(most)} or {last}' if most else last


def one_of(*choices: Any) -> Rule:
  """A field with a few values."""
  return Rule(type(choices[0]), choices=choices)


def key_of(registry: str) -> Rule:
  """A name in a dict of the package, such as a method's in its registry."""
  return Rule(str, registry=f'graphsane_tf.{registry}')


COUNT = Rule(int, low=1)
COUNT_OR_0 = Rule(int, low=0)
WEIGHT = Rule(float, low=0)
POSITIVE = Rule(float, low=0, above=True)
NUMBER = Rule(float)
SHARE = Rule(float, low=0, high=1)
PROBABILITY = Rule(float, low=0, high=1, above=True, below=True)
SWITCH = Rule(bool)

# By dotted name; methods outside the package add their own with `add_section`.
RULES: Dict[str, Rule] = {
    'seed': COUNT_OR_0,
    'backbone': key_of('backbones.REGISTRY'),
    'kd': key_of('distillation.REGISTRY'),
    'kd_strength': WEIGHT,
    'replay': key_of('replay.REGISTRY'),
    'full_retrain': SWITCH,
    'sampler': key_of('negatives.REGISTRY'),
    'clusters': key_of('clustering.REGISTRY'),
    'sane_variant': key_of('config.SANE_VARIANTS'),
    'memory': key_of('memory.REGISTRY'),
    'peer': key_of('peers.REGISTRY'),
    'base_from': Rule(str),
    'blocks.base_fraction': PROBABILITY,
    'blocks.num_incremental': COUNT,
    'blocks.by': one_of('rows', 'days'),
    'blocks.validation': one_of('next_half', 'share'),
    'blocks.validation_share': PROBABILITY,
    'model.embedding_dim': COUNT,
    # The choice of propagation takes two hops apart; backbones repeat the last.
    'model.fanout': Rule(int, low=1, length=(2, 2)),
    'model.num_knn': COUNT,
    'model.dropout': Rule(float, low=0, high=1, below=True),
    'model.l2': WEIGHT,
    # Each step is traced: dozens take minutes before the first batch.
    'model.mgccf_layers': Rule(int, low=1, high=16),
    'model.num_layers': Rule(int, low=0, high=16),
    'model.pinsage_scale': POSITIVE,
    'model.proximity': WEIGHT,
    'model.graph_scope': one_of('accumulated', 'block'),
    'model.propagation': one_of('auto', 'whole', 'sampled'),
    'model.new_rows': one_of('glorot', 'neighbours'),
    'train.batch_size': COUNT,
    'train.max_steps': COUNT_OR_0,
    'train.base_learning_rate': POSITIVE,
    'train.learning_rate': POSITIVE,
    'train.base_epochs': COUNT,
    'train.base_min_epochs': COUNT_OR_0,
    'train.epochs': COUNT_OR_0,
    'train.min_epochs': COUNT_OR_0,
    'train.patience': COUNT_OR_0,
    'train.optimizer': one_of('adam', 'lazy_adam'),
    'train.new_row_moments': one_of('zeros', 'corrected'),
    'train.epoch_zero': SWITCH,
    'train.loss': one_of('bpr', 'softmax'),
    'train.softmax_temperature': POSITIVE,
    'train.num_negatives': COUNT,
    'train.num_sampler_negatives': COUNT,
    'train.ranking': one_of('exact', 'approximate'),
    'sane.size': COUNT,
    'sane.band': one_of('fixed', 'learned'),
    'sane.start_rank': COUNT,
    'sane.max_risk': POSITIVE,
    'sane.balance': WEIGHT,
    'sane.max_start_share': SHARE,
    'sane.refresh_epochs': COUNT,
    'sane.shift': one_of('printed', 'evidence'),
    'sane.strength': WEIGHT,
    'sane.temperature': POSITIVE,
    'sane.prior_sign': one_of(-1, 0, 1),
    'sane.uniform_theta': SWITCH,
    'sane.exclude_history': SWITCH,
    'sane.candidates': COUNT,
    'sane.soft_membership': SWITCH,
    'warp.trials': COUNT,
    'warp.margin': WEIGHT,
    'warp.loss': one_of('bpr', 'hinge'),
    'dns.candidates': COUNT,
    'pns.probability': PROBABILITY,
    'pns.max_depth': COUNT,
    'pns.refresh_epochs': COUNT,
    'pinsage.damping': PROBABILITY,
    'pinsage.start_rank': COUNT,
    'pinsage.size': COUNT,
    'pinsage.max_start_share': SHARE,
    'pinsage.tolerance': SHARE,
    'pinsage.max_iterations': COUNT,
    'nscaching.size': COUNT,
    'nscaching.candidates': COUNT,
    'nscaching.temperature': POSITIVE,
    'nscaching.refresh_epochs': COUNT,
    'esns.num_similar': COUNT,
    'esns.tries': COUNT,
    'esns.loss': one_of('bpr', 'shift'),
    'esns.shift': NUMBER,
    'demix.candidates': COUNT,
    'demix.concentration': POSITIVE,
    'clustering.num_clusters': COUNT,
    'clustering.kmeans_iterations': COUNT,
    'clustering.nu': POSITIVE,
    'clustering.temperature': POSITIVE,
    'clustering.beta': WEIGHT,
    'sgct.weight': WEIGHT,
    'sgct.temperature': POSITIVE,
    'sgct.num_positives': COUNT,
    'sgct.num_negatives': COUNT,
    'sgct.num_anchors': COUNT_OR_0,
    'lwckd.layer0_weight': WEIGHT,
    'lwckd.layer1_weight': WEIGHT,
    'lwckd.final_weight': WEIGHT,
    'lwckd.temperature': POSITIVE,
    'lwckd.num_positives': COUNT,
    'lwckd.num_negatives': COUNT,
    'lwckd.num_knn_positives': COUNT,
    'lwckd.num_knn_negatives': COUNT,
    'lwckd.num_anchors': COUNT_OR_0,
    'personal.strength': WEIGHT,
    'personal.num_clusters': COUNT,
    'lsp.weight': WEIGHT,
    'lsp.num_neighbours': COUNT,
    'lsp.temperature': POSITIVE,
    'lsp.teacher_first': SWITCH,
    'graphsail.self_weight': WEIGHT,
    'graphsail.local_weight': WEIGHT,
    'graphsail.global_weight': WEIGHT,
    'graphsail.square': one_of('inside', 'outside'),
    'graphsail.num_clusters': COUNT,
    'graphsail.temperature': POSITIVE,
    'graphsail.teacher_first': SWITCH,
    'replay_options.ratio': SHARE,
    'replay_options.window': SHARE,
    # A power above that makes the chance of a busy user's row 0 in a float.
    'replay_options.exponent': Rule(float, low=0, high=10),
    # Systems of that size are solved for every item.
    'memory_options.neighbours': Rule(int, low=1, high=1000),
    'memory_options.regularisation': POSITIVE,
    'memory_options.shrinkage': WEIGHT,
    'memory_options.half_ages': Rule(float, low=0, length=(1, 10)),
    'memory_options.taste': WEIGHT,
    'memory_options.taste_half_age': WEIGHT,
    'memory_options.joint_ranks': SWITCH,
    'memory_options.offset': WEIGHT,
    # Every user has a list of the largest one's length in memory.
    'evaluation.cutoffs': Rule(int, low=1, high=10_000, length=(1, 100)),
    'evaluation.map_denominator': one_of('relevant', 'truncated'),
    'evaluation.ndcg_ideal': one_of('k', 'relevant'),
}


# Sections of methods outside the package: dotted name to {field: default}.
SECTIONS: Dict[str, Dict[str, Any]] = {}


def add_section(name: str, options: Mapping[str, Tuple[Any, Rule]]) -> None:
  """Adds a section of fields to every configuration made from now on.

  Args:
    name: of the section, dotted.
    options: field to its default and its rule.

  Raises:
    UserError: if the configuration has the section already, or an option is not as it should be.
  """
  if any(field == name or field.startswith(f'{name}.') for field in RULES):
    raise UserError(f'the configuration has config.{name} already: choose another name.')
  for field, option in options.items():
    if not (isinstance(option, tuple) and len(option) == 2 and isinstance(option[1], Rule)):
      raise UserError(f'option {field} of {name} needs a default and a rule, such as '
                      f'{field}=(0.5, config_rules.WEIGHT).')
    wanted = option[1].wanted(option[0])
    if wanted:
      raise UserError(f'option {field} of {name} has the default {option[0]!r}; it must be {wanted}.')
  SECTIONS[name] = {field: default for field, (default, _) in options.items()}
  RULES.update({f'{name}.{field}': rule for field, (_, rule) in options.items()})


def remove_section(name: str) -> None:
  """Takes a section back, if it was added."""
  for field in SECTIONS.pop(name, {}):
    del RULES[f'{name}.{field}']


def flatten(tree: Mapping[str, Any], prefix: str = '') -> Dict[str, Any]:
  """{'a': {'b': 1}} to {'a.b': 1}."""
  flat = {}
  for name, value in tree.items():
    flat.update(flatten(value, f'{prefix}{name}.') if isinstance(value, dict)
                else {prefix + name: value})
  return flat


def nearest(name: str, known: Iterable[str]) -> str:
  """'; did you mean sgct? Choose from none, lsp, sgct.' for 'sgtc'."""
  known = list(known)
  like = difflib.get_close_matches(name, known, 1)
  return f'; {f"did you mean {like[0]}? Choose" if like else "choose"} from {", ".join(known)}.'


def suggestion(name: str, known: Iterable[str]) -> str:
  """'; did you mean config.sane.size?' for 'sane.sise', or '' if nothing is like it."""
  known = list(known)
  last = name.rpartition('.')[2]
  like = difflib.get_close_matches(name, known, 1) or [
      field for field in known if field.rpartition('.')[2] == last]
  return f'; did you mean config.{like[0]}?' if like else '; graphsane_tf/config.py lists them.'


def check_names(fields: Mapping[str, Any], plain: Mapping[str, Any]) -> None:
  """Raises a `UserError` unless a configuration has the fields that it should have.

  Args:
    fields: its fields by dotted name.
    plain: those of the default configuration.
  """
  for name in fields:
    if name not in plain and name not in RULES:
      raise UserError(f'the configuration has no field config.{name}{suggestion(name, plain)}')
  missing = [name for name in plain if name not in fields]
  if missing:
    raise UserError(f'the configuration lacks config.{missing[0]}: begin with '
                    'graphsane_tf.config.default_config() and change its fields.')


def check_values(fields: Mapping[str, Any], plain: Mapping[str, Any]) -> None:
  """Raises a `UserError` that names the first field whose value breaks its rule.

  Args:
    fields: values by dotted name.
    plain: the defaults; a field that is open there (None) may be open.
  """
  for name, rule in RULES.items():
    if name in fields and not (fields[name] is None and plain.get(name, 0) is None):
      wanted = rule.wanted(fields[name])
      if wanted:
        raise UserError(f'config.{name} is {fields[name]!r}; it must be {wanted}.')
