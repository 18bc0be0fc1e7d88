"""A context that is told nothing more than its block."""
from graphsane_tf.blocks import context as contexts
from graphsane_tf.blocks.stream import BlockStream
from tests import logs


def test_nothing_is_replayed_and_nobody_asks_for_a_size():
  log = logs.random_log(rows=200, users=20, items=30)
  context = contexts.cut(log, BlockStream(log).block(0), None)
  assert context.representation_dim == 0 and len(context.replayed) == 0
  assert len(context.users) == len(context.items) == context.block_rows == 120
  assert len(context.previous.indices) == len(context.before.indices) == 0
