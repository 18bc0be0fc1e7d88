"""Cells of a grid on a local Ray."""
import importlib.util
import os
import pathlib
import signal
import threading
import time

import pytest

from graphsane_tf.errors import UserError
from graphsane_tf.runs import cluster, grid
from tests.test_reproduce import _cells, _fake, _starts

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_a_missing_library_is_a_sentence(monkeypatch):
  monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
  with pytest.raises(UserError, match=r'--ray needs Ray: pip install .graphsane_tf\[ray\]'):
    cluster.Cluster('local')


@pytest.mark.slow
def test_a_local_cluster_keeps_locks_failures_and_resume(fake, tmp_path, monkeypatch):
  ray = pytest.importorskip('ray')
  monkeypatch.setenv('PYTHONPATH', str(ROOT))
  silent = lambda line: None
  try:
    places = cluster.Cluster('local')
    fake['lsp'] = (0., 3)
    failed = grid.run(_cells(tmp_path), log=silent, places=places)
    assert {cell.name: why.split(';')[0] for cell, why in failed.items()} == {'lsp': 'it ended with code 3'}
    assert all(cell.note()['seconds'] > 0 for cell in _cells(tmp_path))
    # A grid that is ended ends its cells; the next one goes on, and leaves alone what is finished.
    fake['lsp'] = (90., 0)

    def interrupt():
      while _starts(tmp_path)['lsp'] < 2:
        time.sleep(.05)
      os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
      grid.run(_cells(tmp_path), log=silent, places=places)
    thread.join()
    fake.clear()
    # A process of this machine and the cluster share the locks.
    results = []
    threads = [threading.Thread(target=lambda where=where: results.append(
        grid.run(_cells(tmp_path), log=silent, places=where))) for where in (places, None)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join(120)
    assert results == [{}, {}]
    starts = _starts(tmp_path)
    assert starts.pop('lsp') == 3 and set(starts.values()) == {1}
  finally:
    ray.shutdown()


@pytest.mark.slow
def test_nobody_there(monkeypatch):
  ray = pytest.importorskip('ray')

  def refuse(*args, **options):
    raise ConnectionError('Could not find any running Ray instance.')

  monkeypatch.setattr(ray, 'init', refuse)
  with pytest.raises(UserError, match='--ray=nowhere:1: no Ray cluster answers there .Could not find'):
    cluster.Cluster('nowhere:1')
