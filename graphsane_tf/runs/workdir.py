"""Names the folder of a run."""
import hashlib
import json
import pathlib
import re
from typing import Any, Dict

from graphsane_tf.config import default_config
from graphsane_tf.data.spec import DataSpec

# Fields and sections of the configuration that must agree before two runs can share a base block.
BASE_FIELDS = ('backbone', 'blocks', 'model')
# Fields that only later blocks read, so that runs which differ in them can share one all the same.
LATER_FIELDS = ('model.new_rows', 'model.graph_scope', 'train.learning_rate', 'train.epochs',
                'train.min_epochs', 'train.num_sampler_negatives', 'train.epoch_zero', 'train.new_row_moments',
                'train.ranking')


def flatten(tree: Dict[str, Any], prefix: str = '') -> Dict[str, Any]:
  """{'a': {'b': 1}} to {'a.b': 1}; tuples become lists, as JSON has them."""
  flat = {}
  for name, value in tree.items():
    if isinstance(value, dict):
      flat.update(flatten(value, f'{prefix}{name}.'))
    else:
      flat[prefix + name] = list(value) if isinstance(value, tuple) else value
  return flat


def changed_fields(config) -> Dict[str, Any]:
  """Fields of a configuration that differ from the default, by dotted name."""
  plain = flatten(default_config().to_dict())
  return {name: value for name, value in flatten(config.to_dict()).items()
          if value != plain.get(name)}


# Choices that a folder's name spells out, with what stands before the value and the default that is left out.
_SPELLED = (('backbone', '', 'mgccf'), ('kd', '', ''), ('sampler', '', 'uniform'), ('replay', 'replay_', 'none'))
_SPELLED_OF_PEERS = (('peer', '', ''),)


def default_workdir(config, data: DataSpec) -> pathlib.Path:
  """runs/<data>-<method>-seed<seed>, and six digits of a hash if there are other choices; config.json has all of them.

  Args:
    config: the configuration before it is resolved.
    data: the log.
  """
  parts = [data.label[:60]]
  spelled = _SPELLED if config.peer == 'none' else _SPELLED_OF_PEERS
  for field, prefix, default in spelled:
    if config[field] != default:
      parts.append(f'{prefix}{"fine_tune" if (field, config[field]) == ("kd", "none") else config[field]}')
  parts.append(f'seed{config.seed}')
  told = ('seed', *(field for field, _, _ in spelled))
  rest = {name: value for name, value in {**flatten(data.to_json()), **changed_fields(config)}.items()
          if name not in told and (name, value) != ('dataset', parts[0])}
  if rest:
    parts.append(hashlib.sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()[:6])
  return pathlib.Path('runs') / re.sub(r'[^\w.+-]', '_', '-'.join(parts))
