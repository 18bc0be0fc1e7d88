"""Which log, in a few words that go to and from JSON."""
import dataclasses
import pathlib
from typing import Any, Dict, Mapping

from graphsane_tf.data import SOURCES
from graphsane_tf.data.recipes import Recipe
from graphsane_tf.data.sources import DataSource
from graphsane_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class DataSpec:
  """Names a log: `prepare.load` reads it.

  Attributes:
    dataset: a name in `SOURCES`; another one says where a log that was made in Python came from.
    recipe: fields of the data set's `Recipe` in place of its own; None counts as not given.
    options: of the data set's `DataSource`; None counts as not given.
  """
  dataset: str
  recipe: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    for part in ('recipe', 'options'):
      values = getattr(self, part)
      if not isinstance(values, Mapping):
        raise UserError(f'the {part} of the data set {self.dataset} should be names and values, not {values!r}.')
      object.__setattr__(self, part, {name: value for name, value in values.items() if value is not None})

  def source(self) -> DataSource:
    """The data set with its options.

    Raises:
      UserError: if there is no such data set or option, or a value cannot be meant.
    """
    kind = SOURCES[self.dataset]
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    for name, value in self.options.items():
      if name not in defaults:
        raise UserError(f'the data set {self.dataset} has no option {name}; it has '
                        f'{", ".join(defaults) or "none at all"}.')
      wanted = str if defaults[name] is None else type(defaults[name])
      if not isinstance(value, (int, float) if wanted is float else wanted):
        raise UserError(f'the option {name} of the data set {self.dataset} should be of type {wanted.__name__}, '
                        f'not {value!r}.')
    return kind(**self.options)

  def to_json(self) -> Dict[str, Any]:
    """What config.json keeps: the same for every way to name the same log."""
    options = self.source().choices() if self.dataset in SOURCES else dict(self.options)
    return {'dataset': self.dataset, 'recipe': dict(self.recipe), 'options': options}

  @classmethod
  def from_json(cls, saved: Mapping[str, Any]) -> 'DataSpec':
    """The way back from `to_json`; a fingerprint is passed over.

    Folders of earlier versions keep filters and options in one object, those of drift as drift_size and so on.
    """
    values = {name: value for name, value in saved.items() if name not in ('dataset', 'fingerprint')}
    dataset = saved['dataset']
    if not set(values) <= {'recipe', 'options'}:
      filters = {field.name for field in dataclasses.fields(Recipe)} & set(values)
      values = {'recipe': {name: values[name] for name in filters},
                'options': {name.removeprefix(f'{dataset}_'): value for name, value in values.items()
                            if name not in filters}}
    return cls(dataset, **values)

  @property
  def _paths(self):
    return SOURCES[self.dataset].paths() if self.dataset in SOURCES else []

  @property
  def label(self) -> str:
    """A short name of the log: that of its file, or the data set's."""
    for name in self._paths:
      if name in self.options:
        return pathlib.Path(self.options[name]).name.split('.')[0]
    return self.dataset

  def words(self) -> str:
    """'dataset=drift, size=small': all of it but the places of files."""
    values = {'dataset': self.dataset, **self.recipe, **self.options}
    return ', '.join(f'{name}={value}' for name, value in values.items() if name not in self._paths)


def renewed(saved: Mapping[str, Any]) -> Dict[str, Any]:
  """The part 'data' of a config.json, of today's or an earlier form, in today's."""
  return {**DataSpec.from_json(saved).to_json(), 'fingerprint': saved['fingerprint']}
