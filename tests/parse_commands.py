"""Parses commands of graphsane, --config and its fields included, each in a fork of one process without TensorFlow.

Takes a JSON list of command lines from standard input (the first word is the command), and prints a list of [exit
code, what was said, names of all flags].
"""
import importlib
import io
import json
import os
import sys
import tempfile

from absl import flags

from graphsane_tf import cli, registry
from graphsane_tf.commands import COMMANDS
from graphsane_tf.commands import main as commands
from graphsane_tf.reporting import tables


def _stop(main, words=False):
  """Stands for `cli.run`: parses the flags, and then nothing."""
  del main
  try:
    rest = flags.FLAGS(sys.argv)
    if len(rest) > 1 and not words:
      cli.fail(f'{rest[1]!r} is not a flag')
  except (flags.Error, KeyError, AttributeError, TypeError, ValueError) as error:
    cli.fail(' '.join(str(error).split()))


def parse(words):
  """In a fork: exit code, what it says, and the names of the command's flags."""
  with tempfile.TemporaryFile('w+') as said, tempfile.TemporaryFile('w+') as names:
    child = os.fork()
    if not child:
      os.dup2(said.fileno(), 1)
      os.dup2(said.fileno(), 2)
      cli.run = _stop
      code = 0
      try:
        commands.start(words[0], words)
      except SystemExit as stop:
        code = stop.code or 0
      except BaseException as error:  # pylint: disable=broad-except
        print(repr(error), flush=True)
        code = 70
      names.write(json.dumps(list(flags.FLAGS)))
      names.flush()
      sys.stdout.flush()
      os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said.seek(0)
    names.seek(0, io.SEEK_SET)
    return code, said.read(), json.loads(names.read() or '[]')


if __name__ == '__main__':
  # What every fork would do anew.
  for module, _ in COMMANDS.values():
    importlib.import_module(f'graphsane_tf.commands.{module}')
  for table in tables.REGISTRY:
    tables.REGISTRY[table]
  registry.load_entry_points = lambda: None
  assert 'tensorflow' not in sys.modules
  json.dump([parse(words) for words in json.load(sys.stdin)], sys.stdout)
