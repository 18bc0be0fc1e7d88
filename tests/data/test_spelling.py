"""Ids in two spellings are told of, and stay two ids."""
import unicodedata

import numpy as np
import pyarrow as pa
import pytest

from graphsane_tf.data import cleaning, spelling
from graphsane_tf.data.recipes import Recipe


def _ids(*ids):
  return np.array(ids, object)


@pytest.mark.parametrize('one,other', [
    ('1', '1.0'), ('1', '01'), ('10', '010.00'), ('0', '000'), ('0', '0.0'), ('anna', ' anna'), ('anna', 'anna\t'),
    ('anna', 'anna\u00a0'), (unicodedata.normalize('NFC', 'é'), unicodedata.normalize('NFD', 'é')), ('7', ' 007.0 ')])
def test_two_spellings(one, other):
  for first, second in ((one, other), (other, one)):
    told = spelling.warning('users', _ids('x', first, second))
    assert told and '1 users' in told and repr(second)[:40] in told and repr(first)[:40] in told
    assert '1 new users' in spelling.warning('users', _ids('x', first, second), 2)
    # What was there before has been told of then.
    assert spelling.warning('users', _ids('x', first, second, 'new'), 3) is None
    assert spelling.warning('users', _ids('x', first, second), 3) is None


def test_others_are_others():
  ids = ['1', '10', '1.5', '1.00x', 'u1', 'u01', 'U1', '-1', '1e0', '+1', 'Anna', 'anna', '٣', '3', 'ß', 'ss', '.0']
  assert spelling.warning('items', _ids(*ids)) is None
  assert spelling.warning('items', _ids()) is None
  assert list(spelling.plain(_ids(*ids))) == ids


def test_a_log_with_two_spellings_says_so_and_keeps_both():
  table = pa.table({'user': ['1', '1.0', '2', '2'], 'item': ['a', 'a', 'b', 'a '], 'timestamp': [1, 2, 3, 4]})
  log = cleaning.clean(table, Recipe(), 'log')
  assert list(log.user_ids) == ['1', '1.0', '2'] and list(log.item_ids) == ['a', 'b', 'a ']
  assert [note.split(' differ')[0] for note in log.notes] == ['warning: 1 users', 'warning: 1 items']
  assert "such as 'a ' from 'a'" in log.notes[1]
