"""Functions that are traced once for all objects that are alike, such as the train steps of a run's blocks.

Tracing a step takes longer than training a small block. From block to block only data change, so the trace is kept. It
is made not from the object itself but from a copy that has tensors of unknown length in the place of the object's
tensors, and of everything else only what is part of the key under which the trace is kept. So a trace cannot hold
anything that is another block's: a number that differs gives another key, hence another trace; and what can neither be
compared nor passed (arrays, functions, objects of other kinds) is hidden from the copy. Code that asks for it gets a
trace of its own, made from the object as usual.

What takes part are `tf.Module`s, Keras models and classes that have an attribute `host`: names of attributes that are
for the host alone. They are hidden, too, so that naming too many costs time but is never wrong. A method is shared as
far as possible if all that its traced code needs of a block is held in tensors and variables.
"""
import collections
import contextlib
import functools
import threading
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from ml_collections import config_dict
import numpy as np
import tensorflow as tf

# Traces that are kept, those used last.
_MOST = 16
# Variables are copied for each call; where that is more, tracing is the smaller cost.
_MOST_BYTES = 1 << 28
# Fields of a configuration that no traced code may read.
_HOST_FIELDS = ('seed', 'train.base_epochs', 'train.epochs', 'train.base_min_epochs', 'train.min_epochs',
                'train.patience', 'train.max_steps', 'train.base_learning_rate', 'train.learning_rate')
_VALUES = (bool, int, float, str, bytes, tf.DType, type(None))

_lock = threading.RLock()
_kept: 'collections.OrderedDict[Tuple, Optional[_Trace]]' = collections.OrderedDict()
_sharing = True
# How many functions have been traced so far in this process, shared ones and others.
counts: Dict[str, int] = {'shared': 0, 'alone': 0}


class HiddenError(Exception):
  """Traced code has asked for something that a shared trace must not know."""


class _Hidden:
  """Stands for what a copy does not have. Any use of it is an error."""

  def _refuse(self, *arguments, **named):
    raise HiddenError('a shared trace cannot have this')

  __class__ = property(_refuse)  # type: ignore[assignment]
  __getattr__ = __call__ = __getitem__ = __iter__ = __len__ = __bool__ = __contains__ = __array__ = _refuse
  __eq__ = __ne__ = __hash__ = __int__ = __float__ = __index__ = __str__ = __format__ = _refuse  # type: ignore[assignment]


_HIDDEN = _Hidden()


class _Config:
  """A configuration as a part of a key."""

  def __init__(self, config: config_dict.ConfigDict):
    self.fields = config_dict.ConfigDict(config.to_dict())
    for name in _HOST_FIELDS:
      *sections, field = name.split('.')
      owner = self.fields
      for section in sections:
        owner = owner.get(section, {})
      if field in owner:
        del owner[field]
    self._text = repr(sorted(_flat(self.fields.to_dict())))

  def __eq__(self, other):
    return isinstance(other, _Config) and self._text == other._text

  def __hash__(self):
    return hash(self._text)


def _flat(fields: Dict[str, Any], prefix: str = '') -> Iterator[Tuple[str, str]]:
  for name, value in fields.items():
    if isinstance(value, dict):
      yield from _flat(value, f'{prefix}{name}.')
    else:
      yield prefix + name, repr(value)


@functools.lru_cache(maxsize=None)
def _keras_attributes() -> frozenset:
  """Attributes that Keras gives every model."""
  return frozenset(vars(tf.keras.Model()))


class _Reader:
  """Reads objects as plans: nested tuples that tell everything but the contents of tensors and variables.

  Attributes:
    leaves: the tensors and variables, in the order of the plan.
  """

  def __init__(self):
    self.leaves: List[Any] = []
    self._numbers: Dict[int, int] = {}

  def plan(self, value) -> Tuple:
    if isinstance(value, _VALUES):
      return 'value', type(value), value
    if isinstance(value, np.generic):
      return 'value', type(value), value.item()
    if type(value) is tuple:
      return 'tuple', *map(self.plan, value)
    if id(value) in self._numbers:
      return 'again', self._numbers[id(value)]
    self._numbers[id(value)] = len(self._numbers)
    if isinstance(value, tf.distribute.DistributedValues):
      return ('hidden',)
    if isinstance(value, (tf.Variable, tf.Tensor)):
      return self._leaf(value)
    if isinstance(value, config_dict.ConfigDict):
      return 'config', _Config(value)
    if isinstance(value, list):
      return 'list', *map(self.plan, value)
    if isinstance(value, dict):
      # Keys are names, numbers, or tuples of them.
      return 'dict', *((self.plan(key), self.plan(part)) for key, part in value.items())
    if isinstance(value, tf.Module) or hasattr(type(value), 'host'):
      return self._object(value)
    return ('hidden',)

  def _leaf(self, value) -> Tuple:
    variable = isinstance(value, tf.Variable)
    if not hasattr(value, 'numpy') or value.dtype in (tf.resource, tf.variant) or value.shape.rank is None:
      return ('hidden',)
    self.leaves.append(value)
    shape = tuple(value.shape)
    return ('variable' if variable else 'tensor', (None, *shape[1:]) if shape else (), value.dtype,
            variable and value.trainable)

  def _object(self, value) -> Tuple:
    host = set(getattr(type(value), 'host', ()))
    if isinstance(value, tf.keras.Model):
      host |= _keras_attributes()
    # TensorFlow keeps its own notes about checkpoints as `_self_...`.
    attributes = ((name, ('host',) if name in host else self.plan(part))
                  for name, part in sorted(vars(value).items()) if not name.startswith('_self_'))
    return 'object', type(value), *attributes


def _copied(plan: Tuple, leaves: Iterator[Any], made: List[Any]) -> Any:
  """What a plan tells of, with other leaves; `made` are the parts so far by their numbers."""
  kind, *parts = plan
  if kind == 'value':
    return parts[1]
  if kind == 'tuple':
    return tuple(_copied(part, leaves, made) for part in parts)
  if kind == 'again':
    return made[parts[0]]
  if kind == 'host':
    return _HIDDEN
  place = len(made)
  made.append(_HIDDEN)
  result: Any
  if kind in ('tensor', 'variable'):
    made[place] = next(leaves)
  elif kind == 'config':
    made[place] = parts[0].fields
  elif kind == 'list':
    made[place] = result = []
    result.extend(_copied(part, leaves, made) for part in parts)
  elif kind == 'dict':
    made[place] = result = {}
    for key, part in parts:
      key = _copied(key, leaves, made)
      result[key] = _copied(part, leaves, made)
  elif kind == 'object':
    made[place] = result = object.__new__(parts[0])
    for name, part in parts[1:]:
      result.__dict__[name] = _copied(part, leaves, made)
  return made[place]


def _leaf_plans(plan: Tuple) -> Iterator[Tuple]:
  """Those of the leaves, in order."""
  if plan[0] in ('tensor', 'variable'):
    yield plan
  elif plan[0] not in ('value', 'again', 'config', 'host', 'hidden'):
    for part in plan[1:]:
      if isinstance(part, tuple):
        # Parts of a dictionary or an object are pairs of a key or name, and a plan.
        for inner in part if plan[0] == 'dict' else part[1:] if plan[0] == 'object' else (part,):
          yield from _leaf_plans(inner)


class _Trace:
  """A traced method of all objects with one plan.

  Attributes:
    owner: the copy that it was traced with.
  """

  def __init__(self, plan: Tuple, method: str, signature: Sequence[tf.TensorSpec]):
    kinds = list(_leaf_plans(plan))
    # They have no length of their own: variables of any block fit, and TensorFlow optimises the function only once.
    self._variables = [
        tf.Variable(tf.zeros([0 if size is None else size for size in shape], dtype), trainable=trainable,
                    shape=tf.TensorShape(shape), dtype=dtype)
        for kind, shape, dtype, trainable in kinds if kind == 'variable']
    specs = [tf.TensorSpec(shape, dtype) for kind, shape, dtype, _ in kinds if kind == 'tensor']

    def function(tensors, *arguments):
      tensors, variables = iter(tensors), iter(self._variables)
      leaves = (next(variables if kind == 'variable' else tensors) for kind, *_ in kinds)
      self.owner = _copied(plan, leaves, [])
      return getattr(self.owner, method)(*arguments)

    self._function = tf.function(function, autograph=False, input_signature=[specs, *signature]).get_concrete_function()
    own = {id(variable.handle) for variable in self._variables}
    if any(id(outer) not in own for outer, _ in self._function.graph.captures):
      raise HiddenError('the trace has found a way to a tensor of the object itself')

  def __call__(self, leaves: Sequence[Any], arguments: Sequence[Any], updates: bool) -> Any:
    variables = [leaf for leaf in leaves if isinstance(leaf, tf.Variable)]
    for own, variable in zip(self._variables, variables):
      own.assign(variable.read_value())
    try:
      result = self._function([leaf for leaf in leaves if not isinstance(leaf, tf.Variable)], *arguments)
      if updates:
        for own, variable in zip(self._variables, variables):
          variable.assign(own.read_value())
      return result
    finally:
      # Nothing of a block stays.
      for own in self._variables:
        own.assign(tf.zeros([size or 0 for size in own.shape], own.dtype))


class Method:
  """A traced method of an object, shared with all objects that are alike; bound at the first call."""

  def __init__(self, owner: Any, method: str, signature: Sequence[tf.TensorSpec] = (), updates: bool = False):
    """Traces nothing yet.

    Args:
      owner: the object.
      method: name of the method; it takes and gives tensors.
      signature: of its arguments.
      updates: whether it changes variables.
    """
    self._owner, self._method, self._signature, self._updates = owner, method, tuple(signature), updates
    self._leaves: List[Any] = []
    self._trace: Optional[_Trace] = None
    self._alone: Any = None

  @property
  def owner(self) -> Any:
    """The object that was traced: a copy, or the owner itself. It has what tracing has set."""
    return self._trace.owner if self._trace else self._owner

  def bind(self) -> None:
    """Finds or makes the trace."""
    if self._trace or self._alone:
      return
    with _lock:
      self._trace = self._found()
    if not self._trace:
      method = getattr(self._owner, self._method)
      counts['alone'] += 1
      # A concrete function: TensorFlow would warn that one function is traced in every block.
      self._alone = tf.function(lambda *arguments: method(*arguments), autograph=False,
                                input_signature=self._signature).get_concrete_function()

  def __call__(self, *arguments) -> Any:
    self.bind()
    if not self._trace:
      return self._alone(*arguments)
    with _lock:
      return self._trace(self._leaves, arguments, self._updates)

  def _found(self) -> Optional[_Trace]:
    """The shared trace; None if there can be none."""
    if not _sharing or tf.distribute.has_strategy() or not tf.executing_eagerly():
      return None
    reader = _Reader()
    key = self._method, self._signature, reader.plan(self._owner)
    size = sum(leaf.shape.num_elements() * leaf.dtype.size for leaf in reader.leaves if isinstance(leaf, tf.Variable))
    if size > _MOST_BYTES:
      return None
    self._leaves = reader.leaves
    if key not in _kept:
      try:
        _kept[key] = _Trace(key[2], self._method, self._signature)
        counts['shared'] += 1
      except Exception:  # pylint: disable=broad-except
        # If the reason is an error of the method, a trace of its own has it again.
        _kept[key] = None
      while len(_kept) > _MOST:
        _kept.popitem(last=False)
    _kept.move_to_end(key)
    return _kept[key]


def forget() -> None:
  """Drops all traces: for those who change the code of a class."""
  with _lock:
    _kept.clear()


@contextlib.contextmanager
def alone() -> Iterator[None]:
  """Inside, nothing that is bound is shared."""
  global _sharing  # pylint: disable=global-statement
  before, _sharing = _sharing, False
  try:
    yield
  finally:
    _sharing = before
