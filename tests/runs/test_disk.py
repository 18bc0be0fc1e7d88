"""Disks that are full or read-only."""
import errno
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile

import pytest

from graphsane_tf import files
from graphsane_tf.errors import UserError
from tests import run_files
from tests.runs.small_runs import run, settings, state_file


@pytest.fixture(name='stranger')
def stranger_fixture():
  """A folder below which nothing may be written, also for root, who becomes nobody for a test."""
  place = pathlib.Path(tempfile.mkdtemp())
  place.chmod(0o755)
  root = os.getuid() == 0

  def lock():
    for path in [*place.rglob('*'), place]:
      path.chmod(0o555 if path.is_dir() else 0o444)
    if root:
      os.setresuid(65534, 65534, 0)

  yield place, lock
  if root:
    os.setresuid(0, 0, 0)
  for path in [place, *place.rglob('*')]:
    path.chmod(0o755)
  shutil.rmtree(place)


@pytest.mark.fault('read-only disk')
def test_a_finished_run_on_a_read_only_disk_is_shown(finished_run, stranger):
  place, lock = stranger
  folder = shutil.copytree(finished_run, place / 'run')
  (folder / 'results.json').unlink()
  (folder / 'per_user' / 'block_1.npz').unlink()
  lock()
  said = run(folder)
  assert 'block 1 is finished already.' in said and 'base block' in said and 'NDCG' in said
  assert f'{folder / "results.json"} was missing, damaged or behind and cannot be written here.' in said
  assert 'per_user/block_1.npz is missing or damaged and cannot be written here.' in said
  with pytest.raises(UserError, match='no permission to write'):
    run(folder, overwrite=True)
  with pytest.raises(UserError, match='cannot create the folder'):
    run(place / 'new')


@pytest.mark.fault('read-only disk')
def test_an_unfinished_run_on_a_read_only_disk_is_one_sentence(stranger):
  place, lock = stranger
  run(place / 'run', blocks=[0])
  lock()
  assert 'base block' in run(place / 'run', blocks=[0])
  with pytest.raises(UserError, match='no permission to write .*where block 1 is not finished'):
    run(place / 'run')


@pytest.fixture(name='limit')
def limit_fixture():
  """Sets the largest size of a file, which TensorFlow's writers meet as they meet a full disk."""
  before = resource.getrlimit(resource.RLIMIT_FSIZE)
  yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
  resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.fault('full disk')
def test_a_checkpoint_that_cannot_be_written_is_one_sentence(finished_run, tmp_path, limit):
  limit(4096)
  with pytest.raises(UserError, match='cannot write .*checkpoints/block_0/epoch-1: .*; when that is mended'):
    run(tmp_path / 'run')
  assert not state_file(tmp_path / 'run', 0).exists()
  limit(resource.RLIM_INFINITY)
  run(tmp_path / 'run')
  run_files.assert_same(tmp_path / 'run', finished_run)


@pytest.mark.fault('full disk')
def test_an_export_that_cannot_be_written_is_one_sentence(run_copy, finished_run, limit):
  shutil.rmtree(run_copy / 'export' / '1')
  limit(max(path.stat().st_size for path in (run_copy / 'checkpoints').rglob('*') if path.is_file()))
  with pytest.raises(UserError, match=f'cannot write {run_copy}/export/1: '):
    run(run_copy)
  assert [path.name for path in (run_copy / 'export').iterdir()] == ['0']
  limit(resource.RLIM_INFINITY)
  run(run_copy)
  run_files.assert_same(run_copy, finished_run)


@pytest.mark.fault('full disk')
def test_a_full_disk_at_any_file_is_one_sentence(finished_run, tmp_path, monkeypatch):
  replace = os.replace
  names = ['config.json', 'state.json', 'metrics.jsonl', 'block_0.npz', 'results.json']

  def failing(source, target):
    if names and pathlib.Path(target).name == names[0]:
      names.pop(0)
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    replace(source, target)

  monkeypatch.setattr(files.os, 'replace', failing)
  for name in list(names):
    with pytest.raises(UserError, match=f'cannot write .*{name}: No space left on device; '):
      run(tmp_path / 'run')
  run(tmp_path / 'run')
  run_files.assert_same(tmp_path / 'run', finished_run)


@pytest.fixture(name='tiny_disk')
def tiny_disk_fixture(tmp_path):
  """A file system of 200 kB, for whoever may mount one."""
  place = tmp_path / 'disk'
  place.mkdir()
  if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=200k', 'tmpfs', str(place)], check=False,
                    capture_output=True).returncode:
    pytest.skip('mounting needs root')
  yield place
  subprocess.run(['umount', '-l', str(place)], check=True)


@pytest.mark.fault('full disk')
def test_a_disk_that_fills_up_is_one_sentence(tiny_disk):
  (tiny_disk / 'other').write_bytes(b'x' * 120_000)
  with pytest.raises(UserError, match='cannot write .*No space left on device'):
    run(tiny_disk / 'run')
  (tiny_disk / 'other').unlink()
  with pytest.raises(UserError, match='cannot write .*No space left on device'):
    run(tiny_disk / 'run', settings(model__embedding_dim=1024), overwrite=True)


def test_a_directory_that_somebody_is_still_writing_is_no_leftover(tmp_path):
  with files.replaced_directory(tmp_path / 'x') as first:
    (first / 'a').write_text('1')
    with files.replaced_directory(tmp_path / 'x') as second:
      (second / 'b').write_text('2')
    assert [path.name for path in (tmp_path / 'x').iterdir()] == ['b']
  assert [path.name for path in tmp_path.rglob('*')] == ['x', 'a']
