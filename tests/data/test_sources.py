"""A data set of the user's own, in a file outside the package."""
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from graphsane_tf.data import sources
from tests.data import raw_files

ROOT = pathlib.Path(__file__).resolve().parents[2]
# As it stands in the guide.
PIPES = textwrap.dedent(sources.__doc__.split("--pipes_mark=';'`:")[1].split('Nothing here')[0])
PLANTED = '''
import dataclasses
import numpy as np
from graphsane_tf import data
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.data.sources import GeneratedSource, option

@data.SOURCES.register('planted')
@dataclasses.dataclass(frozen=True)
class Planted(GeneratedSource):
  rows: int = option(100, 'How many rows.', low=10)

  def generate(self):
    row = np.arange(self.rows)
    ids = np.array([str(number) for number in range(10)], object)
    return Interactions((row % 10).astype(np.int32), (row // 10).astype(np.int32), row, ids,
                        np.arange(self.rows // 10).astype(str).astype(object), name='planted')
'''


@pytest.fixture(name='prepare')
def _prepare(tmp_path):
  (tmp_path / 'mine.py').write_text(PIPES + PLANTED)

  def run(*arguments):
    return subprocess.run(
        [sys.executable, '-m', 'graphsane_tf', 'prepare', '--plugin=mine.py', *arguments], cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(ROOT)}, capture_output=True, text=True, check=False)

  return run


def test_a_log_in_a_made_up_format(prepare, tmp_path):
  missing = prepare('--dataset=pipes')
  assert missing.returncode == 2
  assert missing.stderr == ('error: no pipes files in data/pipes: get log.pipes and put them there; '
                            '--dataset=drift runs without any files.\n')
  folder = tmp_path / 'data' / 'pipes'
  folder.mkdir(parents=True)
  users, items, times = raw_files.random_log()
  pairs = len(set(zip(users, items)))
  for mark, flags in (('|', []), (';', ['--pipes_mark=;'])):
    (folder / 'log.pipes').write_text(''.join(
        f'{user}{mark}{item}{mark}{time}\n' for user, item, time in zip(users, items, times)))
    result = prepare('--dataset=pipes', *flags)
    assert result.returncode == 0, result.stderr
    assert 'preparing pipes from log.pipes' in result.stdout and f'{pairs:,}' in result.stdout
  assert len(list(folder.glob('prepared-*'))) == 2
  wrong = prepare('--pipes_mark=;')
  assert wrong.stderr == ('error: --pipes_mark goes with --dataset=pipes, but the data set is drift; leave one of '
                          'them out.\n')


def test_a_log_that_is_generated(prepare):
  result = prepare('--dataset=planted', '--planted_rows=200')
  assert result.returncode == 0, result.stderr
  assert '200' in result.stdout and 'generated; nothing is kept on disk' in result.stdout


def test_help_is_quick_and_reads_nothing():
  """Flags of all data sets are defined without the libraries that read them."""
  code = ('import sys; from graphsane_tf.data import flags; flags.define(); '
          'print([name for name in ("tensorflow", "pyarrow", "pandas") if name in sys.modules])')
  result = subprocess.run([sys.executable, '-c', code], env={**os.environ, 'PYTHONPATH': str(ROOT)},
                          capture_output=True, text=True, check=True)
  assert result.stdout == '[]\n'
