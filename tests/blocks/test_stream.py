"""Where a log is cut, against cuts done by hand."""
import numpy as np
import pytest

from graphsane_tf.blocks.stream import Block, BlockStream
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError


def _log(rows):
  """Row k is the first of user k // 2 and of item k // 3."""
  number = np.arange(rows, dtype=np.int32)
  ids = np.array([str(k) for k in range(rows)], object)
  return Interactions(number // 2, number // 3, number, ids, ids, name='hand')


def test_every_block_of_a_log_of_thirty_rows():
  stream = BlockStream(_log(30))
  assert stream.num_blocks == 4
  # 60 % are 18 rows, then four times three; odd blocks are halved in favour of the test.
  assert stream.cuts == [0, 18, 21, 24, 27, 30]
  assert [stream.block(index) for index in range(4)] == [
      Block(0, slice(0, 18), slice(18, 19), slice(19, 21), 9, 6),
      Block(1, slice(18, 21), slice(21, 22), slice(22, 24), 11, 7),
      Block(2, slice(21, 24), slice(24, 25), slice(25, 27), 12, 8),
      Block(3, slice(24, 27), slice(27, 28), slice(28, 30), 14, 9)]
  assert [stream.rows(index) for index in (0, 4)] == [slice(0, 18), slice(27, 30)]


@pytest.mark.parametrize('rows,base,incremental,cuts', [
    (30, .5, 2, [0, 15, 22, 30]),
    (31, .6, 4, [0, 18, 21, 24, 27, 31]),
    (40, .25, 1, [0, 10, 40]),
    # Shares whose products fall just short of a whole number in binary.
    (100, .7, 3, [0, 70, 80, 90, 100]),
    (10, .6, 2, [0, 6, 8, 10]),
    (2_000_000, .6, 4, [0, 1_200_000, 1_400_000, 1_600_000, 1_800_000, 2_000_000]),
])
def test_cuts(rows, base, incremental, cuts):
  stream = BlockStream(_log(rows), base, incremental)
  assert stream.cuts == cuts and stream.num_blocks == incremental


@pytest.mark.parametrize('base', [.1, .3, .55, .6, .99])
@pytest.mark.parametrize('incremental', [1, 2, 3, 4, 7])
def test_cuts_are_in_order_and_shares_are_equal(base, incremental):
  rows = 10_007
  stream = BlockStream(_log(rows), base, incremental)
  sizes = np.diff(stream.cuts)
  assert stream.cuts[0] == 0 and stream.cuts[-1] == rows
  assert abs(sizes[0] - base * rows) < 1
  assert np.all(np.abs(sizes[1:] - (1 - base) * rows / incremental) < 2)


def test_a_block_needs_two_rows():
  """One for validation and one for the test."""
  assert BlockStream(_log(20)).cuts == [0, 12, 14, 16, 18, 20]
  with pytest.raises(UserError, match='hand has only 17 rows .* 4 incremental blocks'):
    BlockStream(_log(17))
  with pytest.raises(UserError, match='too few'):
    BlockStream(_log(8), .2, 4)
  # A base block of one row, too.
  with pytest.raises(UserError, match='too few'):
    BlockStream(_log(10), .1, 1)
  # Rows bound the work, however many blocks are asked for.
  with pytest.raises(UserError, match='1000000000000 incremental blocks'):
    BlockStream(_log(10), .6, 10**12)
