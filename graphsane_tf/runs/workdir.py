"""Names the folder of a run."""
import hashlib
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


def default_workdir(config, choices: Dict[str, Any]) -> pathlib.Path:
  """runs/<dataset>-<kd>-seed<seed>, then every choice that is not the default.

  Args:
    config: the configuration before it is resolved.
    choices: from `data_choices`.
  """
  parts = [choices['dataset'], config.kd, f'seed{config.seed}']
  for name, value in choices.items():
    if name == 'interactions':
      digest = hashlib.sha256(value.encode()).hexdigest()[:6]
      parts.insert(1, f'{pathlib.Path(value).name.split(".")[0]}-{digest}')
    elif name != 'dataset':
      parts.append(f'{name}={value}')
  for name, value in changed_fields(config).items():
    if name not in ('kd', 'seed'):
      if isinstance(value, list):
        value = ','.join(map(str, value))
      parts.append(f'{name.split(".")[-1]}={value}')
  name = re.sub(r'[^\w.,=+-]', '_', '-'.join(parts))
  if len(name) > 160:
    name = f'{name[:150]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}'
  return pathlib.Path('runs') / name
