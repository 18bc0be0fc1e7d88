"""Names the folder of a run."""
import hashlib
import json
import pathlib
import re
from typing import Any, Dict

from graphsane_tf.config import default_config

# Fields and sections of the configuration that must agree before two runs can share a base block.
BASE_FIELDS = ('backbone', 'blocks', 'model')


def flatten(tree: Dict[str, Any], prefix: str = '') -> Dict[str, Any]:
  """{'a': {'b': 1}} to {'a.b': 1}; tuples become lists, as JSON has them."""
  flat = {}
  for name, value in tree.items():
    if isinstance(value, dict):
      flat.update(flatten(value, f'{prefix}{name}.'))
    else:
      flat[prefix + name] = list(value) if isinstance(value, tuple) else value
  return flat


def data_choices(data: Dict[str, Any]) -> Dict[str, Any]:
  """What tells one data set from another among the arguments of `prepare.load`.

  Args:
    data: keyword arguments of `prepare.load`.

  Returns:
    The name, and the options that differ from the data set's own.
  """
  choices = {'dataset': data['name']}
  choices.update({k: v for k, v in (data.get('overrides') or {}).items() if v is not None})
  if data['name'] == 'csv':
    choices.update({k: v for k, v in (data.get('csv_options') or {}).items() if v is not None})
    choices['interactions'] = str(pathlib.Path(choices['interactions']).resolve())
  if data['name'] == 'drift':
    plain = {'size': 'default', 'seed': 0, 'hide_categories': False}
    choices.update({f'drift_{k}': v for k, v in (data.get('drift_options') or {}).items()
                    if v != plain[k]})
  return choices


def data_arguments(choices: Dict[str, Any], data_dir='data') -> Dict[str, Any]:
  """The way back: arguments of `prepare.load` from what `data_choices` kept in config.json.

  Args:
    choices: `config.json`'s 'data'.
    data_dir: folder of raw files and prepared copies.
  """
  choices = {k: v for k, v in choices.items() if k != 'fingerprint'}
  name = choices.pop('dataset')
  drift = {k: choices.pop(k) for k in list(choices) if k.startswith('drift_')}
  csv = {k: choices.pop(k) for k in list(choices) if k == 'interactions' or k.endswith('_column')}
  return {'name': name, 'data_dir': data_dir, 'overrides': choices, 'csv_options': csv,
          'drift_options': {k.removeprefix('drift_'): v for k, v in drift.items()}}


def changed_fields(config) -> Dict[str, Any]:
  """Fields of a configuration that differ from the default, by dotted name."""
  plain = flatten(default_config().to_dict())
  return {name: value for name, value in flatten(config.to_dict()).items()
          if value != plain.get(name)}


# Choices that a folder's name spells out, with what stands before the value and the default that is left out.
_SPELLED = (('backbone', '', 'mgccf'), ('kd', '', ''), ('sampler', '', 'uniform'), ('replay', 'replay_', 'none'))


def default_workdir(config, choices: Dict[str, Any]) -> pathlib.Path:
  """runs/<data>-<method>-seed<seed>, and six digits of a hash if there are other choices; config.json has all of them.

  Args:
    config: the configuration before it is resolved.
    choices: from `data_choices`.
  """
  log = choices.get('interactions')
  parts = [pathlib.Path(log).name.split('.')[0] if log else choices['dataset']]
  for field, prefix, default in _SPELLED:
    if config[field] != default:
      parts.append(f'{prefix}{"fine_tune" if (field, config[field]) == ("kd", "none") else config[field]}')
  parts.append(f'seed{config.seed}')
  spelled = ('seed', *(field for field, _, _ in _SPELLED))
  rest = {name: value for name, value in {**choices, **changed_fields(config)}.items()
          if name not in spelled and (name, value) != ('dataset', parts[0])}
  if rest:
    parts.append(hashlib.sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()[:6])
  return pathlib.Path('runs') / re.sub(r'[^\w.+-]', '_', '-'.join(parts))[:120]
