"""Traces are shared by objects that are alike, and a trace never holds what is another object's."""
import collections

from ml_collections import config_dict
import numpy as np
import pytest
import tensorflow as tf

from graphsane_tf import traced

_ROWS = (tf.TensorSpec([None], tf.int32),)
_GLOBAL = tf.constant(np.arange(500.))


class _Part(tf.Module):
  """Numbers of a block, as a component holds them."""

  host = ('length',)

  def __init__(self, values, factor=2., variable=True):
    super().__init__()
    self.length = len(values)
    self.size = tf.constant(len(values))
    self.factor = factor
    self.table = tf.constant(np.asarray(values, np.float32))
    self.state = tf.Variable(np.asarray(values, np.float32) * 0., trainable=False) if variable else None
    self.both = {'again': [self.table]}
    self.array = np.asarray(values)
    self.config = config_dict.ConfigDict({'seed': len(values), 'train': {'epochs': len(values), 'rate': 3.}})
    self.function = lambda: tf.constant(len(values))

  def gather(self, rows):
    return self.factor * tf.gather(self.both['again'][0], rows % self.size) * self.config.train.rate

  def count(self, rows):
    self.state.scatter_nd_add((rows % self.size)[:, None], tf.ones_like(rows, tf.float32))
    return tf.reduce_sum(self.state)


class _Wrong(_Part):
  """Ways to a number of the block that a shared trace must not take."""

  def by_length(self, rows):
    return rows * self.length

  def by_array(self, rows):
    return rows * len(self.array) + tf.reduce_sum(tf.constant(self.array, tf.int32))

  def by_function(self, rows):
    return rows * self.function()

  def by_field(self, rows):
    return rows * self.config.train.epochs

  def by_number(self, rows):
    return rows * int(self.factor)

  def by_global(self, rows):
    return tf.gather(_GLOBAL, rows) * self.length

  def by_global_alone(self, rows):
    return tf.gather(_GLOBAL, rows)

  def by_type(self, rows):
    return rows * (1 if isinstance(self.array, list) else self.length)


@pytest.fixture(name='made', autouse=True)
def made_fixture():
  """How many traces a test has made so far: shared, alone."""
  traced.forget()
  before = dict(traced.counts)
  yield lambda: tuple(traced.counts[kind] - before[kind] for kind in ('shared', 'alone'))
  traced.forget()


def _rows(*numbers):
  return tf.constant(numbers, tf.int32)


def test_objects_that_are_alike_share_a_trace_and_keep_their_own_data(made):
  # Fewer than 128 elements: TensorFlow would make constants of them in a function that has seen them.
  parts = [_Part(range(start, start + size)) for start, size in ((1, 3), (50, 7), (9, 1))]
  gathers = [traced.Method(part, 'gather', _ROWS) for part in parts]
  for _ in range(2):
    for part, gather in zip(parts, gathers):
      expected = 6. * part.table.numpy()[np.array([0, 2, 12]) % part.length]
      np.testing.assert_array_equal(gather(_rows(0, 2, 12)), expected)
  assert made() == (1, 0)


def test_variables_are_changed_in_the_object_that_is_asked(made):
  parts = [_Part(range(size)) for size in (3, 5)]
  counts = [traced.Method(part, 'count', _ROWS, updates=True) for part in parts]
  assert [float(count(_rows(0, 4, 4))) for count in counts for _ in range(2)] == [3., 6., 3., 6.]
  np.testing.assert_array_equal(parts[0].state, [2., 4., 0.])
  np.testing.assert_array_equal(parts[1].state, [2., 0., 0., 0., 4.])
  # What others do to a variable between two calls is seen.
  parts[1].state.assign(np.ones(5))
  assert float(counts[1](_rows(0))) == 6. and made() == (1, 0)


def test_without_updates_nothing_is_changed():
  part = _Part(range(3))
  assert float(traced.Method(part, 'count', _ROWS)(_rows(1))) == 1.
  np.testing.assert_array_equal(part.state, np.zeros(3))


@pytest.mark.parametrize('change', [{'factor': 3.}, {'factor': 2}, {'variable': False}])
def test_a_number_or_a_kind_that_differs_has_a_trace_of_its_own(made, change):
  for part in (_Part(range(3)), _Part(range(4), **change)):
    expected = 3. * part.factor * part.table.numpy()[:2]
    np.testing.assert_array_equal(traced.Method(part, 'gather', _ROWS)(_rows(0, 1)), expected)
  assert made() == (2, 0)


@pytest.mark.parametrize('method', [name for name in vars(_Wrong) if name.startswith('by_') and name != 'by_number'])
def test_what_cannot_be_shared_is_traced_for_each_object(made, method):
  for size in (3, 5):
    part = _Wrong(range(size))
    found = traced.Method(part, method, _ROWS)(_rows(1, 2))
    np.testing.assert_array_equal(found, getattr(part, method)(_rows(1, 2)))
  assert made() == (0, 2)


def test_a_number_in_the_code_is_in_the_key(made):
  for factor in (3, 4, 4):
    np.testing.assert_array_equal(traced.Method(_Wrong([0], factor), 'by_number', _ROWS)(_rows(1)), [factor])
  assert made() == (2, 0)


def test_a_method_of_one_object_is_not_that_of_the_others(made):
  part = _Part(range(3))
  part.gather = lambda rows: tf.cast(rows, tf.float32)
  np.testing.assert_array_equal(traced.Method(part, 'gather', _ROWS)(_rows(2)), [2.])
  assert made() == (0, 1)


def test_an_error_of_the_method_is_raised():
  part = _Part(range(3))
  part.both = {'again': [tf.constant('text')]}
  with pytest.raises((TypeError, ValueError, AttributeError)):
    traced.Method(part, 'gather', _ROWS)(_rows(1))


def test_one_can_do_without(made):
  with traced.alone():
    for size in (3, 4):
      traced.Method(_Part(range(size)), 'gather', _ROWS)(_rows(1))
  assert made() == (0, 2)


def test_a_large_state_is_not_copied(made, monkeypatch):
  monkeypatch.setattr(traced, '_MOST_BYTES', 15)
  for size, expected in ((3, (1, 0)), (4, (1, 1))):
    traced.Method(_Part(range(size)), 'gather', _ROWS)(_rows(1))
    assert made() == expected


def test_only_the_last_traces_are_kept(made, monkeypatch):
  monkeypatch.setattr(traced, '_MOST', 2)
  for factor in (2., 3., 2., 4., 3.):
    traced.Method(_Part(range(3), factor), 'gather', _ROWS)(_rows(1))
  # 2, 3 and 4 were new, and 3 had been dropped for 4.
  assert made() == (4, 0)


def test_nothing_of_a_block_stays():
  part = _Part(range(3))
  gather = traced.Method(part, 'gather', _ROWS)
  gather(_rows(1))
  kept, = traced._kept.values()
  assert all(0 in variable.read_value().shape for variable in kept._variables)


def test_what_is_the_same_object_is_the_same_in_the_copy():
  part = _Part(range(3))
  pair = collections.OrderedDict(one=part, other=[part, part.state])
  reader = traced._Reader()
  copy = traced._copied(reader.plan(pair), iter(reader.leaves), [])
  assert copy['one'] is copy['other'][0] and copy['one'].state is copy['other'][1] is part.state
  assert copy['one'] is not part and copy['one'].both['again'][0] is copy['one'].table
