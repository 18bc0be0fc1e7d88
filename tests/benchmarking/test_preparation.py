"""The benchmark of preparation, on few rows."""
import json
import pathlib
import subprocess
import types

from graphsane_benchmark import figures, preparation


def test_rate_and_memory_by_rows(monkeypatch):
  def run(command, **options):
    assert options['check'] is False
    found = preparation.measure(int(command[-2]), pathlib.Path(command[-1]))
    assert 0 < found['rows left'] < int(command[-2]) and found['users'] > 1 and found['seconds again'] > 0
    return subprocess.CompletedProcess(command, 0, json.dumps(found), '')

  monkeypatch.setattr(preparation, 'subprocess', types.SimpleNamespace(run=run))
  found = list(preparation.growth_section((4000, 8000)))
  assert [figure.unit for figure in found] == ['s', 'GiB'] * 2 and all(figure.ours > 0 for figure in found)
  assert 'rows/s' in found[0].note and 'in proportion' not in found[0].note and 'in proportion' in found[2].note
  fails = lambda command, **_: subprocess.CompletedProcess(command, 1, '', 'Traceback\nMemoryError')
  monkeypatch.setattr(preparation, 'subprocess', types.SimpleNamespace(run=fails))
  failed, = preparation.growth_section((4000,))
  assert failed.ours is None and 'MemoryError' in failed.note


def test_both_orders_are_compared(monkeypatch):
  monkeypatch.setattr(figures, 'ROUND_SECONDS', 0.)
  figure, = preparation.order_section(4000, 1)
  assert figure.ratio > 0 and 'DuckDB' in figure.name
