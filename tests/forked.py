"""Commands in processes of their own, forked from one that has imported TensorFlow and done nothing with it.

That import is most of the time of a short command. What is inherited are libraries, nothing of graphsane_tf
but its choice of Keras: a forked command loads plugins, flags and methods as a fresh one does.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PATIENCE = 240.  # Seconds until a process that should have ended or done something is given up.

# Orders are lines of JSON, answered in turn: 'start' by a process id, 'wait' by an exit code or null.
_SERVER = """
import json, os, resource, runpy, signal, sys, time, traceback
import graphsane_tf
import pandas, pyarrow.parquet, scipy.sparse, scipy.stats, sklearn.cluster, tensorflow, tf_keras


def command(order):
  signal.signal(signal.SIGINT, signal.default_int_handler)
  os.chdir(order['cwd'])
  os.environ.update(order['environment'])
  for number, path in enumerate((os.devnull, order['out'], order['err'])):
    os.dup2(os.open(path, os.O_WRONLY if number else os.O_RDONLY), number)
  script, *words = order['words']
  sys.argv = [script, *words]
  try:
    if script.endswith('.py'):
      runpy.run_path(script, run_name='__main__')
    else:
      runpy.run_module(script, run_name='__main__', alter_sys=True)
    code = 0
  except SystemExit as end:
    code = end.code or 0
  except BaseException:
    traceback.print_exc()
    code = 1
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(code)


print('ready', flush=True)
for line in sys.stdin:
  order = json.loads(line)
  if order['do'] == 'start':
    pid = os.fork()
    if not pid:
      command(order)
    answer = pid
  else:
    pid, answer, end = 0, None, time.monotonic() + order['seconds']
    while not pid and time.monotonic() < end:
      pid, status = os.waitpid(order['pid'], os.WNOHANG)
      time.sleep(0 if pid else .01)
    if pid:
      answer = os.waitstatus_to_exitcode(status)
  print(json.dumps(answer), flush=True)
"""


class Process:
  """A command that runs; `out` and `err` are the files that it writes to."""

  def __init__(self, server, words, cwd, environment):
    self.out, self.err = (pathlib.Path(tempfile.mkdtemp(dir=server.folder)) / name for name in ('out', 'err'))
    self.out.touch()
    self.err.touch()
    self._server, self.returncode = server, None
    self.pid = server.ask(do='start', words=list(map(str, words)), cwd=str(cwd), out=str(self.out),
                          err=str(self.err), environment=environment or {})

  @property
  def stdout(self):
    return self.out.read_text()

  @property
  def stderr(self):
    return self.err.read_text()

  def poll(self):
    """Its exit code, or None while it runs."""
    return self.wait(0.) if self.returncode is None else self.returncode

  def wait(self, seconds=PATIENCE):
    if self.returncode is None:
      self.returncode = self._server.ask(do='wait', pid=self.pid, seconds=seconds or .001)
    return self.returncode

  def until(self, condition):
    """Waits for something that it should do."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
      assert self.poll() is None and time.monotonic() < deadline, (self.returncode, self.stdout, self.stderr)
      time.sleep(.02)

  def send_signal(self, number):
    os.kill(self.pid, number)

  def finish(self, seconds=1800.):
    """Its exit code, output and errors."""
    assert self.wait(seconds) is not None, f'not ended: {self.stdout[-3000:]}{self.stderr[-3000:]}'
    return self.returncode, self.stdout, self.stderr


class Server:
  """The process that the others are forked from."""

  def __init__(self, folder):
    self.folder = pathlib.Path(folder)
    self._process = subprocess.Popen(
        [sys.executable, '-c', _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env={**os.environ, 'PYTHONPATH': str(ROOT)})
    assert self._process.stdout.readline() == 'ready\n'

  def ask(self, **order):
    self._process.stdin.write(json.dumps(order) + '\n')
    self._process.stdin.flush()
    return json.loads(self._process.stdout.readline())

  def start(self, *words, cwd, environment=None):
    """Starts a command: a script's path or a module's name, and its arguments."""
    return Process(self, words, cwd, environment)

  def run(self, *words, cwd, environment=None):
    """Runs a command to its end; has `returncode`, `stdout` and `stderr`."""
    process = self.start(*words, cwd=cwd, environment=environment)
    process.finish()
    return process

  def close(self):
    self._process.communicate()
