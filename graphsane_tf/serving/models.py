"""The version that is served now: loaded whole, then put in the place of the one before."""
import pathlib
import threading
from typing import Any, Callable, Dict, Mapping, Optional, Protocol

import tensorflow as tf

from graphsane_tf import files
from graphsane_tf.errors import UserError
from graphsane_tf.serving import approximate

Say = Callable[[str], None]


class Versions(Protocol):
  """What is asked of the versions of a store; see `serving.versions`."""

  def current(self) -> Optional[int]: ...

  def path(self, number: int) -> pathlib.Path: ...

  def check(self, number: int) -> Any: ...


class Served:
  """One loaded version. Whoever holds it asks this version, whatever is published meanwhile.

  Attributes:
    number: of the version.
    specs: inputs by name, for each signature.
  """

  def __init__(self, number: int, path: pathlib.Path, ranking: str = 'exact', say: Say = lambda line: None):
    """Loads version `number`; `ranking` is 'exact', or 'approximate' by an index of the items."""
    self.number = number
    # The signatures do not keep alive what they use: the model does.
    self._model = tf.saved_model.load(str(path))
    self._signatures = dict(self._model.signatures.items())
    self._index = approximate.indexed(self._model, say) if ranking == 'approximate' else None
    self.specs: Dict[str, Mapping[str, tf.TensorSpec]] = {
        name: signature.structured_input_signature[1] for name, signature in self._signatures.items()}

  def ask(self, signature: str, inputs: Mapping[str, tf.Tensor]) -> Mapping[str, tf.Tensor]:
    if self._index is not None and signature == 'serving_default':
      return self._index(**inputs)
    return self._signatures[signature](**inputs)

  def warm_up(self) -> None:
    """The first call of a function takes longer than later ones."""
    for name in ('serving_default', 'recommend'):
      if name in self.specs:
        shapes = {key: [size or 1 for size in spec.shape] for key, spec in self.specs[name].items()}
        self.ask(name, {key: tf.zeros(shapes[key], spec.dtype) if spec.dtype != tf.string else tf.fill(shapes[key], '')
                        for key, spec in self.specs[name].items()})


class Current:
  """Loads the newest version and follows the store.

  Attributes:
    problem: why the newest version could not be loaded, or ''.
    loads, failures: how often a version was taken up, or could not be.
  """

  def __init__(self, versions: Versions, say: Say = lambda line: None, ranking: str = 'exact'):
    """Loads the newest version; `ranking` as for `Served`.

    Raises:
      UserError: if there is none, or it is damaged.
    """
    self._versions, self._say, self._ranking = versions, say, ranking
    self._served: Optional[Served] = None
    self.problem, self.loads, self.failures = '', 0, 0
    self._stop = threading.Event()
    self._thread: Optional[threading.Thread] = None
    self.refresh()
    if self._served is None:
      raise UserError(self.problem or 'the store has no version yet: make one with graphsane init.')

  @property
  def served(self) -> Served:
    """The version to ask; take it once for a request."""
    assert self._served is not None  # The constructor has loaded one.
    return self._served

  def refresh(self) -> bool:
    """Takes up the newest version if it is another one; True if it has. What is served stays if that fails."""
    number = self._versions.current()
    if number is None or (self._served and self._served.number == number):
      return False
    try:
      # A SavedModel is a program: it is run only if it is the one that was published.
      self._versions.check(number)
      loaded = Served(number, self._versions.path(number), self._ranking, self._say)
      loaded.warm_up()
    except (UserError, OSError, ValueError, tf.errors.OpError) as error:
      # A still newer version may have come, and this one have been deleted meanwhile.
      if self._versions.current() != number:
        return self.refresh()
      if self.problem != str(error):
        self.failures += 1
        self._say(f'version {number} cannot be loaded: {files.reason(error)}')
      self.problem = str(error)
      return False
    self._served, self.problem = loaded, ''
    self.loads += 1
    self._say(f'version {number} is served.')
    return True

  def follow(self, seconds: float) -> None:
    """Looks for a newer version every few seconds, in a thread of its own, until `close`."""

    def watch():
      while not self._stop.wait(seconds):
        try:
          self.refresh()
        except Exception as error:  # pylint: disable=broad-except
          # The thread must live as long as the server; the next look may succeed.
          self.problem = repr(error)
          self._say(f'looking for a newer version failed: {error!r}')

    self._thread = threading.Thread(target=watch, name='versions', daemon=True)
    self._thread.start()

  def close(self) -> None:
    self._stop.set()
    if self._thread is not None:
      self._thread.join()
