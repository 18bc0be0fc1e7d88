"""Values that travel between parts cannot be changed on the way."""
import dataclasses
import importlib
import pkgutil

import graphsane_tf

# What is there to be changed: a model grows, and a search makes its folder.
_CHANGEABLE = {'Model', 'Tuner'}


def test_every_dataclass_is_frozen():
  found = {}
  for module in pkgutil.walk_packages(graphsane_tf.__path__, 'graphsane_tf.'):
    if module.name.endswith('__main__'):
      continue
    for name, kind in vars(importlib.import_module(module.name)).items():
      # By its type: some values answer no question about themselves.
      if issubclass(type(kind), type) and dataclasses.is_dataclass(kind) and kind.__module__ == module.name:
        found[name] = kind.__dataclass_params__.frozen
  assert len(found) > 20
  assert {name for name, frozen in found.items() if not frozen} == _CHANGEABLE
