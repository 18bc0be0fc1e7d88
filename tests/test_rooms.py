"""The order of the package's rooms: each imports only from rooms above it."""
import ast
import pathlib

import graphsane_tf

PACKAGE = pathlib.Path(graphsane_tf.__file__).parent
# Top to bottom. Modules that lie outside of a room (errors, files, ...) are above all of them.
ROOMS = ('data', 'graph', 'blocks', 'evaluation', 'peers', 'memory', 'backbones', 'clustering', 'negatives',
         'distillation', 'replay', 'training', 'serving', 'runs', 'reporting', 'commands')
# They bring everything together, so they are below all rooms.
DOORS = ('cli.py', '__main__.py', 'recommender.py', 'configs', 'testing')


def _imports(path):
  """Names below the package that a file imports, anywhere in it, with the line."""
  for node in ast.walk(ast.parse(path.read_text('utf-8'))):
    if isinstance(node, ast.Import):
      names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      names = [f'{node.module}.{alias.name}' for alias in node.names]
    else:
      continue
    for name in names:
      if name.startswith('graphsane_tf.'):
        yield name.split('.')[1], node.lineno


def test_every_folder_is_a_room():
  folders = {path.name for path in PACKAGE.iterdir() if (path / '__init__.py').exists()}
  assert folders == {room for room in ROOMS if (PACKAGE / room).exists()} | (folders & set(DOORS))


def test_no_import_goes_up():
  wrong = []
  for path in sorted(PACKAGE.rglob('*.py')):
    place = path.relative_to(PACKAGE).parts[0]
    if place in DOORS:
      continue
    level = ROOMS.index(place) if place in ROOMS else -1
    for name, line in _imports(path):
      if name in ROOMS and ROOMS.index(name) > level or name == 'cli' and place != 'commands':
        wrong.append(f'{path.relative_to(PACKAGE.parent)}, line {line} imports {name}')
  assert not wrong, '\n'.join(wrong)


def test_reading_data_needs_no_tensorflow():
  for path in sorted((PACKAGE / 'data').rglob('*.py')):
    tree = ast.parse(path.read_text('utf-8'))
    for node in ast.walk(tree):
      names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else (
          [node.module or ''] if isinstance(node, ast.ImportFrom) else [])
      assert not any(name.split('.')[0] in ('tensorflow', 'tf_keras') for name in names), path
