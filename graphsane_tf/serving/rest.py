"""JSON bodies of TensorFlow Serving's REST interface to tensors of a signature, and back."""
import base64
import json
from typing import Any, Dict, List, Mapping

import numpy as np
import tensorflow as tf

from graphsane_tf.errors import UserError

# Inputs that may be left out, because empty lists mean nothing is asked.
OPTIONAL = ('exclude', 'allow')


class BadRequest(UserError):
  """A request that cannot be answered, with the code of HTTP that says why."""

  def __init__(self, message: str, code: int = 400):
    super().__init__(message)
    self.code = code


def parsed(body: bytes) -> Dict[str, Any]:
  """The JSON object in a body."""
  try:
    value = json.loads(body)
  except (ValueError, RecursionError) as error:
    raise BadRequest(f'the body is not JSON: {str(error)[:100]}.') from error
  if not isinstance(value, dict):
    raise BadRequest('the body is not a JSON object.')
  return value


def columns(request: Mapping[str, Any], specs: Mapping[str, tf.TensorSpec]) -> Dict[str, Any]:
  """Values by the name of the input, from 'instances' (rows) or 'inputs' (columns).

  Unlike TensorFlow Serving, rows may hold a scalar of the signature, if all have the same, and lists of different
  lengths.

  Args:
    request: the body.
    specs: inputs of the signature by name.
  """
  if ('instances' in request) == ('inputs' in request):
    raise BadRequest("give either 'instances' (rows) or 'inputs' (columns).")
  if 'inputs' in request:
    inputs = request['inputs']
    if not isinstance(inputs, dict) or '' in inputs or _is_bytes(inputs):
      inputs = {_single(specs): inputs}
    return dict(inputs)
  rows = request['instances']
  if not isinstance(rows, list) or not rows:
    raise BadRequest("'instances' is not a list of rows.")
  if not isinstance(rows[0], dict) or _is_bytes(rows[0]):
    rows = [{_single(specs): row} for row in rows]
  names = rows[0].keys()
  if any(not isinstance(row, dict) or row.keys() != names for row in rows):
    raise BadRequest('all instances must have the same inputs.')
  found = {}
  for name in names:
    values = [row[name] for row in rows]
    if name in specs and specs[name].shape.rank == 0:
      if any(value != values[0] for value in values):
        raise BadRequest(f'{name!r} must be the same in all instances: send others in a request of their own.')
      values = values[0]
    found[name] = values
  return found


def _single(specs: Mapping[str, tf.TensorSpec]) -> str:
  needed = [name for name in specs if name not in OPTIONAL]
  if len(needed) != 1:
    raise BadRequest(f'name the inputs: {", ".join(sorted(specs))}.')
  return needed[0]


def _is_bytes(value: Any) -> bool:
  return isinstance(value, dict) and value.keys() == {'b64'}


def tensors(values: Mapping[str, Any], specs: Mapping[str, tf.TensorSpec]) -> Dict[str, tf.Tensor]:
  """Tensors of a signature from JSON values by name."""
  unknown = sorted(set(values) - set(specs))
  if unknown:
    raise BadRequest(f'there is no input {unknown[0]!r}; this signature has {", ".join(sorted(specs))}.')
  found = {}
  for name, spec in specs.items():
    if name not in values and name not in OPTIONAL:
      raise BadRequest(f'the input {name!r} is missing.')
    found[name] = _tensor(name, values.get(name, [[]]), spec)
  return found


def _tensor(name: str, value: Any, spec: tf.TensorSpec) -> tf.Tensor:
  rank = spec.shape.rank
  if spec.dtype == tf.string:
    if not isinstance(value, list) or (rank == 2 and any(not isinstance(row, list) for row in value)):
      raise BadRequest(f'{name!r} must be a list of {"lists of " if rank == 2 else ""}strings.')
    if rank == 1:
      return tf.constant([_text(name, part) for part in value], tf.string, shape=[len(value)])
    width = max(map(len, value), default=0)
    # Shorter rows are padded, as the signatures have it.
    rows = [[_text(name, part) for part in row] + [b''] * (width - len(row)) for row in value]
    return tf.constant(np.array(rows, object).reshape(len(value), width), tf.string)
  if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**31:
    raise BadRequest(f'{name!r} must be a whole number.')
  return tf.constant(value, spec.dtype)


def _text(name: str, value: Any) -> bytes:
  if isinstance(value, str):
    try:
      return value.encode('utf-8')
    except UnicodeEncodeError as error:
      raise BadRequest(f'{name!r} holds a string that is not Unicode text.') from error
  if _is_bytes(value) and isinstance(value['b64'], str):
    try:
      return base64.b64decode(value['b64'], validate=True)
    except ValueError as error:
      raise BadRequest(f'{name!r} holds bytes that are not base64.') from error
  raise BadRequest(f'{name!r} must hold strings.')


def plain(outputs: Mapping[str, tf.Tensor]) -> Dict[str, List[Any]]:
  """Tensors as lists, strings as text."""
  found: Dict[str, List[Any]] = {}
  for name, tensor in outputs.items():
    value = tensor.numpy()
    if tensor.dtype == tf.string:
      value = np.array([part.decode('utf-8', 'replace') for part in value.ravel()], object).reshape(value.shape)
    found[name] = value.tolist()
  return found


def response(request: Mapping[str, Any], outputs: Mapping[str, List[Any]]) -> Dict[str, Any]:
  """The answer in the format of the request: rows or columns; a single output stands without its name."""
  if 'inputs' in request:
    return {'outputs': next(iter(outputs.values())) if len(outputs) == 1 else dict(outputs)}
  if len(outputs) == 1:
    return {'predictions': next(iter(outputs.values()))}
  return {'predictions': [dict(zip(outputs, row)) for row in zip(*outputs.values())]}
