"""Where a log is cut, against cuts done by hand."""
import dataclasses

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


def test_a_share_of_each_block_is_kept_for_validation_and_trained_on_later():
  stream = BlockStream(_log(100), validation='share', validation_share=.2)
  assert stream.cuts == [0, 60, 70, 80, 90, 100]
  assert [stream.block(index) for index in range(4)] == [
      Block(0, slice(0, 48), slice(48, 60), slice(60, 70), 24, 16),
      Block(1, slice(48, 68), slice(68, 70), slice(70, 80), 34, 23),
      Block(2, slice(68, 78), slice(78, 80), slice(80, 90), 39, 26),
      Block(3, slice(78, 88), slice(88, 90), slice(90, 100), 44, 30)]


def test_a_twentieth_is_kept_unless_told_otherwise():
  assert BlockStream(_log(100), validation='share').block(0).validation == slice(57, 60)


@pytest.mark.parametrize('share', [.001, .05, .5, .999, 1 - 1e-10])
def test_a_share_leaves_rows_on_both_sides(share):
  for rows in (20, 37, 1_000):
    stream = BlockStream(_log(rows), validation='share', validation_share=share)
    blocks = [stream.block(index) for index in range(stream.num_blocks)]
    for block in blocks:
      assert block.train.start < block.train.stop == block.validation.start
      assert stream.cuts[block.index] < block.train.stop, 'some of its own rows'
      assert block.validation.stop == block.test.start == stream.cuts[block.index + 1] > block.validation.start
    for block, later in zip(blocks, blocks[1:]):
      assert later.train.start == block.train.stop


def _days(counts):
  """A log with so many rows on each day from day 1000 on."""
  log = _log(sum(counts))
  day = np.repeat(np.arange(1000, 1000 + len(counts)), counts)
  second = np.concatenate([np.linspace(0, 86_399, count).astype(int) for count in counts])
  return dataclasses.replace(log, time=day * 86_400 + second)


def test_blocks_of_whole_days():
  counts = [3, 9, 4, 1, 2, 5, 6, 2, 3, 7, 2, 2, 8, 1, 1, 4, 2, 3, 2, 6]
  stream = BlockStream(_days(counts), by='days')
  first = np.cumsum([0, *counts])
  # 20 days: 12 and four times two; one day for validation and one for the test.
  assert stream.cuts == [0, *(first[day] for day in (12, 14, 16, 18)), sum(counts)]
  for index, day in enumerate((12, 14, 16, 18)):
    block = stream.block(index)
    assert block.validation == slice(first[day], first[day + 1])
    assert block.test == slice(first[day + 1], first[day + 2])
  # With a share of the rows the blocks are the same.
  shared = BlockStream(_days(counts), by='days', validation='share', validation_share=.1)
  assert shared.cuts == stream.cuts and shared.block(1).test == stream.rows(2)


def test_the_last_day_counts_with_a_single_row():
  assert BlockStream(_days([2] * 9 + [1]), .5, 2, by='days').cuts == [0, 10, 14, 19]


def test_a_block_of_one_day_is_halved_by_rows():
  stream = BlockStream(_days([6, 4, 4, 4, 5]), .2, 4, by='days')
  assert stream.cuts == [0, 6, 10, 14, 18, 23]
  assert (stream.block(3).validation, stream.block(3).test) == (slice(18, 20), slice(20, 23))


def test_days_without_rows_are_told():
  with pytest.raises(UserError, match=r'hand has 12 rows on 10 days .* --config\.blocks\.by=rows, '):
    BlockStream(_days([3, 3, 3, 0, 0, 0, 0, 0, 0, 3]), by='days')
