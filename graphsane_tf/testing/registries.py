"""What was registered from outside the package."""
import contextlib
from typing import Iterator

from graphsane_tf import registry


@contextlib.contextmanager
def restored() -> Iterator[None]:
  """Forgets at the end what was registered inside, with its options."""
  before = {kind: set(names.own()) for kind, names in registry.REGISTRIES.items()}
  try:
    yield
  finally:
    for kind, names in registry.REGISTRIES.items():
      for name in set(names.own()) - before.get(kind, set()):
        names.forget(name)
