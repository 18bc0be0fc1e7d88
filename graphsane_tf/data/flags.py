"""The flags of every tool that reads a data set, defined once."""
from typing import Any, Dict, List

from absl import flags

from graphsane_tf.data import recipes

_CSV = ('interactions', 'user_column', 'item_column', 'timestamp_column', 'category_column',
        'rating_column')
_ALL = ['dataset', *_CSV, 'min_user_interactions', 'min_item_interactions', 'min_rating', 'duplicates',
        'drift_size', 'drift_seed', 'hide_categories', 'data_dir', 'download']
_OVERRIDES = ('min_user_interactions', 'min_item_interactions', 'min_rating', 'duplicates')


def define(flag_values: flags.FlagValues = flags.FLAGS) -> List[str]:
  """Defines the data flags and returns their names; a second call defines nothing anew."""
  if 'dataset' in flag_values:
    return _ALL
  to = {'flag_values': flag_values}
  flags.DEFINE_enum('dataset', 'drift', list(recipes.DATASETS), 'The data set.', **to)
  flags.DEFINE_string('data_dir', 'data', 'Folder of raw files and prepared copies.', **to)
  flags.DEFINE_bool('download', False, 'Fetch missing raw files where the owner allows it.', **to)
  flags.DEFINE_string('interactions', None, 'Your own log (with --dataset=csv): .csv, .tsv or '
                      '.inter, plain or .gz, or .parquet.', **to)
  for name in _CSV[1:]:
    what = name.removesuffix('_column')
    flags.DEFINE_string(name, None, f'Column of the {what} in --interactions (default: {what}).',
                        **to)
  for what in ('user', 'item'):
    flags.DEFINE_integer(f'min_{what}_interactions', None, f'Drop {what}s with fewer rows.',
                         lower_bound=1, **to)
  flags.DEFINE_float('min_rating', None, 'Keep rows with at least this rating.', **to)
  flags.DEFINE_enum('duplicates', None, ['first', 'last'],
                    'Which row of a repeated (user, item) pair stays, by time.', **to)
  flags.DEFINE_enum('drift_size', 'default', ['small', 'default', 'large'],
                    'Size of the generated drift log.', **to)
  flags.DEFINE_integer('drift_seed', 0, 'Seed of the generated drift log.', lower_bound=0,
                       **to)
  flags.DEFINE_bool('hide_categories', False, 'Generate the drift log without categories.', **to)
  return _ALL


def from_flags(flag_values: flags.FlagValues = flags.FLAGS) -> Dict[str, Any]:
  """Turns parsed flags into keyword arguments of `prepare.load`."""
  return {
      'name': flag_values.dataset,
      'data_dir': flag_values.data_dir,
      'overrides': {name: flag_values[name].value for name in _OVERRIDES},
      'csv_options': {name: flag_values[name].value for name in _CSV},
      'drift_options': {'size': flag_values.drift_size, 'seed': flag_values.drift_seed,
                        'hide_categories': flag_values.hide_categories},
      'download': flag_values.download,
  }
