"""The command `experiments/prepare_data.py`, in a process of its own."""
import pathlib
import resource
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from tests.data import raw_files

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*arguments, cwd=ROOT):
  return subprocess.run(
      [sys.executable, str(ROOT / 'experiments' / 'prepare_data.py'), *arguments], cwd=cwd,
      env={'PYTHONPATH': str(ROOT), 'PATH': ''}, capture_output=True, text=True, check=False)


def test_csv(tmp_path):
  path = raw_files.write_csv(tmp_path / 'log.csv', *raw_files.random_log())
  result = run('--dataset=csv', f'--interactions={path}', f'--data_dir={tmp_path}')
  assert result.returncode == 0, result.stderr
  assert 'average user degree' in result.stdout
  assert f'prepared in {tmp_path}/csv/prepared-' in result.stdout


@pytest.mark.parametrize('arguments, words', [
    (['--dataset=csv'], '--interactions=FILE'),
    (['--dataset=gowalla', '--interactions=x.csv'], '--dataset=csv'),
    (['--dataset=gowalla', '--data_dir=/nowhere'], 'loc-gowalla_totalCheckins.txt.gz'),
])
def test_errors_are_one_line(arguments, words):
  result = run(*arguments)
  assert result.returncode == 2
  assert result.stderr.startswith('error: ') and words in result.stderr
  assert result.stderr.count('\n') == 1


def write_large_netflix(folder, num_rows):
  """Writes about `num_rows` ratings in four combined files, a movie at a time."""
  random = np.random.default_rng(0)
  popularity = random.pareto(1.0, 10000) + 0.2
  counts = np.maximum(1, num_rows * popularity / popularity.sum()).astype(int).clip(max=60000)
  counts = (counts * num_rows / counts.sum()).astype(int) + 1
  days = np.arange('1999-11-11', '2005-12-31', dtype='datetime64[D]').astype(str)
  folder.mkdir(parents=True)
  for part, movies in enumerate(np.array_split(np.arange(10000), 4), start=1):
    with open(folder / f'combined_data_{part}.txt', 'w', encoding='ascii') as stream:
      for movie in movies:
        stream.write(f'{movie + 1}:\n')
        pd.DataFrame({'user': random.integers(1, 400000, counts[movie]),
                      'rating': random.integers(1, 6, counts[movie]),
                      'date': days[random.integers(0, len(days), counts[movie])]}).to_csv(
                          stream, header=False, index=False, lineterminator='\n')
  return int(counts.sum())


@pytest.mark.slow
def test_twelve_million_rows_in_two_minutes_and_four_gigabytes(tmp_path):
  rows = write_large_netflix(tmp_path / 'netflix', 12_000_000)
  start = time.monotonic()
  result = run('--dataset=netflix', f'--data_dir={tmp_path}', '--min_user_interactions=5',
               '--min_item_interactions=5')
  elapsed = time.monotonic() - start
  peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
  print(f'{rows:,} rows: {elapsed:.1f} s, {peak:.2f} GiB\n{result.stdout}')
  assert result.returncode == 0, result.stderr
  edges = int(result.stdout.split('edges')[1].split()[0].replace(',', ''))
  assert edges > 0.9 * rows
  assert elapsed < 120 and peak < 4
