"""The command `graphsane`: its help, its words, and what it says about the machine."""
import subprocess
import sys

import pytest

from graphsane_tf.commands import COMMANDS, tune, update

# Prints the help and says whether TensorFlow was imported for it.
_HELP = """
import sys
from graphsane_tf.commands import main
sys.argv = ['graphsane', *sys.argv[1:]]
try:
  main.graphsane()
except SystemExit as stop:
  assert not stop.code, stop.code
print('tensorflow' if 'tensorflow' in sys.modules else 'no tensorflow')
"""


def _run(*words, cwd=None):
  return subprocess.run([sys.executable, '-m', 'graphsane_tf', *words], capture_output=True, text=True, check=False,
                        cwd=cwd)


@pytest.mark.parametrize('command', [None, *COMMANDS])
def test_help_fits_a_screen_and_needs_no_tensorflow(command):
  words = [command, '--help'] if command else ['--help']
  done = subprocess.run([sys.executable, '-c', _HELP, *words], capture_output=True, text=True, check=True)
  lines = done.stdout.splitlines()
  assert lines[-1] == 'no tensorflow'
  assert len(lines) <= 45 and max(map(len, lines)) <= 100, done.stdout
  if command:
    assert f'graphsane {command}' in done.stdout
  else:
    assert all(f'  {name} ' in done.stdout for name in COMMANDS)


def test_help_has_the_true_defaults():
  text = _run('run', '--help').stdout
  for part in ('--kd=none|lsp', '--backbone=mgccf|', '--seed=0', '--batch_size=2048', '--learning_rate=0.001',
               '--dataset=drift|', '--sane_variant=band|', '--block=all', '--config=default'):
    assert part in text


@pytest.mark.fault('mistake on the command line')
@pytest.mark.parametrize('words, sentence', [
    (['rnu'], "there is no command 'rnu'"), (['compare'], 'at least two runs'),
    (['compare', 'a', 'b'], 'a/config.json does not exist'), (['doctor', 'now'], "'now' is not a flag")])
def test_mistakes_are_one_sentence(words, sentence, tmp_path):
  done = _run(*words, cwd=tmp_path)
  assert done.returncode == 2 and sentence in done.stderr
  assert len(done.stderr.strip().splitlines()) == 1
  assert not list(tmp_path.iterdir())


def test_ids_to_forget_are_lines_and_nothing_else_ends_one(tmp_path):
  """Else somebody whose id is a part of another's would be forgotten instead."""
  path = tmp_path / 'leavers.txt'
  path.write_bytes('\ufeffu1\r\nu2\u2028u3\nu4\x0bu5\x85\n\n \n u6 \nu7'.encode())
  assert update._ids(path) == ['u1', 'u2\u2028u3', 'u4\x0bu5\x85', ' u6 ', 'u7']
  assert update._ids(None) == []


def test_doctor(tmp_path):
  done = _run('doctor', cwd=tmp_path)
  assert done.returncode == 0, done.stderr
  for word in ('tensorflow', 'devices', 'memory free', 'disk free', 'openblas'):
    assert word in done.stdout
  assert not list(tmp_path.iterdir())


def test_the_command_of_a_published_search_names_no_place_of_this_machine():
  words = ['--dataset=csv', '--interactions=/home/me/log.csv.gz', '--kd=sgct', '--workdir=/mnt/search',
           '--write=docs/results', '--data_dir=/home/me/data', '--config.model.l2=0.01', '--hide_categories']
  assert tune._command(words) == (  # pylint: disable=protected-access
      'graphsane tune --dataset=csv --interactions=log.csv.gz --kd=sgct --config.model.l2=0.01 --hide_categories')


@pytest.mark.fault('mistake on the command line')
@pytest.mark.parametrize('command', ['tune', 'reproduce'])
def test_a_page_that_cannot_be_written_is_told_before_anything_is_trained(command, tmp_path):
  (tmp_path / 'pages').write_text('a file')
  done = _run(command, '--write=pages', *(['--what=main'] if command == 'reproduce' else []), cwd=tmp_path)
  assert done.returncode == 2 and 'cannot create the folder pages' in done.stderr
  assert len(done.stderr.strip().splitlines()) == 1
  assert [path.name for path in tmp_path.iterdir()] == ['pages']
