"""How command-line tools end when somebody stops them: one sentence, and the exit code of the signal."""
import contextlib
import os
import signal
import sys
import threading
from typing import Iterator


class Terminated(KeyboardInterrupt):
  """SIGTERM; whatever cleans up after an interrupt does so after this, too."""


def terminate(number, frame) -> None:
  """Handler of SIGTERM."""
  del number, frame
  raise Terminated


@contextlib.contextmanager
def handled(handler, *numbers: int) -> Iterator[None]:
  """Sets the handler of some signals, unless they are ignored or this is not the main thread."""
  before = {}
  if threading.current_thread() is threading.main_thread():
    before = {number: signal.signal(number, handler) for number in numbers
              if signal.getsignal(number) is not signal.SIG_IGN}
  try:
    yield
  finally:
    for number, old in before.items():
      signal.signal(number, old)


@contextlib.contextmanager
def leaving_at_once(descriptor: int) -> Iterator[None]:
  """Signals end the process at once: an import that is cut off could fail in any way.

  Args:
    descriptor: where the sentence goes.
  """
  def leave(number, frame):
    del frame
    os.write(descriptor, b'\nstopped before anything was written.\n')
    os._exit(128 + number)  # pylint: disable=protected-access
  with handled(leave, signal.SIGINT, signal.SIGTERM):
    yield


def _uncaught(kind, error, trace) -> None:
  """The last resort for an interrupt while modules are imported, before `run` begins."""
  if not issubclass(kind, KeyboardInterrupt):
    sys.__excepthook__(kind, error, trace)
    return
  print('\nstopped before anything was written.', file=sys.stderr, flush=True)
  os._exit(130)  # pylint: disable=protected-access


sys.excepthook = _uncaught
