"""The notebooks: made from their sources, kept with outputs and pictures, and executed from a clean kernel."""
import base64
import importlib.util
import json
import pathlib
import sys

import nbformat
import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[1] / 'notebooks'
_SPEC = importlib.util.spec_from_file_location('build_notebooks', FOLDER / 'build.py')
build = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(build)
NAMES = ('daily_updates', 'own_log', 'own_method', 'quickstart', 'reservoir')
_PNG = b'\x89PNG\r\n\x1a\n'
_LARGEST = 400_000


@pytest.fixture(name='kernel')
def _kernel(tmp_path, monkeypatch):
  """Name of a kernel that is this interpreter, whatever kernels the machine knows."""
  folder = tmp_path / 'jupyter' / 'kernels' / 'this-interpreter'
  folder.mkdir(parents=True)
  (folder / 'kernel.json').write_text(json.dumps({
      'argv': [sys.executable, '-m', 'ipykernel_launcher', '-f', '{connection_file}'],
      'display_name': 'this interpreter', 'language': 'python'}), encoding='utf-8')
  monkeypatch.setenv('JUPYTER_PATH', str(tmp_path / 'jupyter'))
  monkeypatch.setenv('JUPYTER_RUNTIME_DIR', str(tmp_path / 'runtime'))
  monkeypatch.setenv('IPYTHONDIR', str(tmp_path / 'ipython'))
  # The kernel decides about Keras and figures by itself, not by what this process was told.
  monkeypatch.delenv('TF_USE_LEGACY_KERAS', raising=False)
  monkeypatch.delenv('MPLBACKEND', raising=False)
  return folder.name


def _code(notebook):
  return [cell for cell in notebook['cells'] if cell['cell_type'] == 'code']


def _outputs(notebook):
  return [output for cell in _code(notebook) for output in cell['outputs']]


def _pictures(notebook):
  return [base64.b64decode(output['data']['image/png']) for output in _outputs(notebook)
          if 'image/png' in output.get('data', {})]


def test_there_is_a_source_for_each():
  assert tuple(build.names()) == NAMES == tuple(sorted(path.stem for path in FOLDER.glob('*.ipynb')))


@pytest.mark.parametrize('name', NAMES)
def test_is_made_from_its_source_and_kept_with_outputs(name):
  """`python notebooks/build.py --run NAME` makes it anew."""
  path = FOLDER / f'{name}.ipynb'
  kept = json.loads(path.read_text('utf-8'))
  nbformat.validate(nbformat.from_dict(kept))
  assert kept == build.build(name)
  assert len({cell['id'] for cell in kept['cells']}) == len(kept['cells'])
  assert kept['cells'][1]['id'] == 'install'
  assert all(cell['execution_count'] for cell in _code(kept)), 'a cell has changed since the notebook was run'
  assert not [output for output in _outputs(kept) if output['output_type'] == 'error']
  assert _pictures(kept) and all(picture.startswith(_PNG) for picture in _pictures(kept))
  assert path.stat().st_size < _LARGEST
  texts = json.dumps([output.get('text', output.get('data', {}).get('text/plain')) for output in _outputs(kept)])
  assert '/site-packages/' not in texts and str(FOLDER.parent) not in texts


@pytest.mark.parametrize('name', [name if name == 'quickstart' else pytest.param(name, marks=pytest.mark.slow)
                                  for name in NAMES])
def test_runs_from_a_clean_kernel(name, kernel):
  done = build.run(build.build(name), kernel=kernel, timeout=600)
  assert not [output for output in _outputs(done) if output['output_type'] == 'error']
  assert _pictures(done) and all(picture.startswith(_PNG) for picture in _pictures(done))
  if name == 'quickstart':
    cell = next(cell for cell in _code(done) if cell['id'] == 'serve')
    table = next(output['data'] for output in cell['outputs'] if 'data' in output)
    assert ''.join(table['text/html']).count('<tr') == 11  # A head and ten items.
    assert 'took lately' in ''.join(table['text/plain']) and 'NaN' not in ''.join(table['text/plain'])
