"""Rows through DuckDB against rows in memory, which `test_cleaning` compares with plain Python."""
import tempfile

import numpy as np
import pytest

from graphsane_tf.data import ordering
from graphsane_tf.errors import UserError


def pieces(columns, size=130):
  return {name: [values[start:start + size] for start in range(0, len(values), size)]
          for name, values in columns.items()}


def log(seed, num_rows=1000, first=-50, last=50):
  random = np.random.default_rng(seed)
  return {'user': random.integers(20, size=num_rows).astype(np.int32),
          'item': random.integers(30, size=num_rows).astype(np.int32),
          'time': np.append(random.integers(first, last, num_rows - 2), [first, last]),
          'category': np.arange(num_rows, dtype=np.int32)}


@pytest.mark.parametrize('duplicates', ['first', 'last'])
@pytest.mark.parametrize('span', [(-50, 50), (-2**61, 2**62)], ids=['ties', 'beyond 64 bits'])
def test_both_ways_give_the_same_rows(duplicates, span, tmp_path, monkeypatch):
  columns = log(0, first=span[0], last=span[1])
  expected = ordering.one_row_a_pair(pieces(columns), duplicates)
  monkeypatch.setattr(ordering, 'LARGE', 1000)
  monkeypatch.setattr(ordering, '_BATCH_ROWS', 50)
  given = pieces(columns)
  found = ordering.one_row_a_pair(given, duplicates, tmp_path)
  assert list(found) == list(expected) and 0 < len(found['time']) < 1000
  for name, values in expected.items():
    np.testing.assert_array_equal(found[name], values)
    assert found[name].dtype == values.dtype
  # The pieces are given up, and nothing stays on disk.
  assert not any(given.values()) and not list(tmp_path.iterdir())


@pytest.mark.fault('full disk')
def test_spill_that_fails_is_a_sentence(tmp_path, monkeypatch):
  monkeypatch.setattr(ordering, 'LARGE', 1)
  monkeypatch.setattr(ordering, '_QUERY', "SELECT error('no space left {rows}{first}{choice}{kind}') FROM log")
  with pytest.raises(UserError, match='DuckDB cannot sort 1,000 rows in .*no space left.*free some space'):
    ordering.one_row_a_pair(pieces(log(1)), 'first', tmp_path)
  assert not list(tmp_path.iterdir())
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
  with pytest.raises(UserError, match='DuckDB'):
    ordering.one_row_a_pair(pieces(log(1)), 'first')
