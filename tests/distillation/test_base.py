"""What all distillers are made of."""
import tensorflow as tf

from graphsane_tf.distillation.base import outside_loops


def test_what_is_made_outside_loops_is_of_the_functions_own_graph():
  made, own = [], []

  def make():
    made.append(tf.compat.v1.get_default_graph())
    return tf.constant(3)

  def inner(number):
    return number + outside_loops(make)

  @tf.function
  def function():
    own.append(tf.compat.v1.get_default_graph())
    loop = lambda number: tf.while_loop(lambda n: n < 5, inner, [number])
    return tf.while_loop(lambda n: n < 5, loop, [tf.constant(0)])

  assert int(function()[0]) == 6
  assert made and all(graph is own[-1] for graph in made)
  assert outside_loops(lambda: 'at once') == 'at once'
