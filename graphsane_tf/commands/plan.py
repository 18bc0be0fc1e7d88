"""Says what a block of some size will cost, on this machine and on several, before there is any log."""
from absl import flags

from graphsane_tf import cli, parallel

HELP = 'Memory, time and network of a block of some size, for 1 to 64 workers like this machine.'
EXAMPLES = ('graphsane plan --users=1000000 --items=500000 --edges=100000000 --dim=64',)
AFTER = ('Steps of small logs are measured here for half a minute. Negatives are uniform and there is no distiller; '
         'mirrored is what multiworker is, within one machine with several GPUs.')


def define():
  for name, what in (('users', 'Users.'), ('items', 'Items.'), ('edges', 'Edges of the graph.')):
    flags.DEFINE_integer(name, None, what, lower_bound=2)
    flags.mark_flag_as_required(name)
  flags.DEFINE_integer('dim', 128, 'Length of the embeddings.', lower_bound=1)
  flags.DEFINE_integer('pairs', None, 'Pairs of the block (default: a tenth of the edges).', lower_bound=1)
  flags.DEFINE_string('model', 'mgccf', 'Backbone.')
  flags.DEFINE_integer('batch', 2048, 'Pairs of a step, of all workers together.', lower_bound=1)
  flags.DEFINE_float('gbit', 10., 'Speed of the network between workers, in Gbit/s.', lower_bound=.001)
  return {'block': ['users', 'items', 'edges', 'pairs'], 'model': ['model', 'dim', 'batch'], 'workers': ['gbit']}


def main():
  values = flags.FLAGS
  cli.load_tensorflow_quietly()
  from graphsane_tf import config as config_lib  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs import capacity, forecast  # pylint: disable=g-import-not-at-top
  config = config_lib.default_config()
  config.update_from_flattened_dict({
      'backbone': values.model, 'model.embedding_dim': values.dim, 'train.batch_size': values.batch})
  shape = forecast.Shape(values.users, values.items, values.edges, values.pairs or max(values.edges // 10, 1))
  kind = forecast.amounts(config_lib.resolved(config), shape)[0]
  # What is measured on small logs must be what the large one will do.
  config.model.propagation = kind
  config = config_lib.resolved(config)
  cli.say(f'measuring steps of {values.model} with {kind} propagation ...')
  costs = forecast.measure(config)
  cli.say(f'{costs.cores:.1f} of this machine\'s {parallel.cores()} cores worked on them, and are taken to do so.')
  lines = forecast.forecast(config, shape, costs, values.gbit * 1e9 / 8)
  cli.say(f'\n{"strategy":18} {"workers":>7} {"GiB a worker":>13} {"s a step":>9} {"min a block":>12} '
          f'{"MB a step":>10}')
  for line in lines:
    cli.say(f'{line["strategy"]:18} {line["workers"]:7} {line["memory"] / 2**30:13.1f} {line["step"]:9.3f} '
            f'{line["block"] / 60:12.1f} {line["network"] / 1e6:10.1f}')
  chosen, reason = forecast.advice(lines, capacity.total_bytes())
  cli.say(f'\nuse {chosen["strategy"]} with {chosen["workers"]} worker{"s" * (chosen["workers"] > 1)}: {reason}. '
          f'A worker is taken to have {capacity.total_bytes() / 2**30:.0f} GiB, and a block '
          f'{config.train.epochs} epochs.')
