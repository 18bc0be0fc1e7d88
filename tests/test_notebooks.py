"""Runs the notebooks from a clean kernel."""
import base64
import json
import pathlib
import sys

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[1] / 'notebooks').glob('*.ipynb'))
QUICKSTART = pathlib.Path(__file__).parents[1] / 'notebooks' / 'quickstart.ipynb'
_PNG = b'\x89PNG\r\n\x1a\n'


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


@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.name)
def test_is_kept_without_outputs(path):
  notebook = nbformat.read(path, as_version=4)
  nbformat.validate(notebook)
  assert (notebook.nbformat, notebook.nbformat_minor >= 5) == (4, True)
  assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
  for cell in notebook.cells:
    if cell.cell_type == 'code':
      assert cell.outputs == [] and cell.execution_count is None, cell.id


def test_quickstart_runs(kernel):
  notebook = nbformat.read(QUICKSTART, as_version=4)
  nbclient.NotebookClient(
      notebook, timeout=300, kernel_name=kernel,
      resources={'metadata': {'path': str(QUICKSTART.parent)}}).execute()

  outputs = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == 'code'}
  everything = [output for found in outputs.values() for output in found]
  assert not [output for output in everything if output.output_type == 'error']
  images = [output.data['image/png'] for output in everything
            if 'image/png' in output.get('data', {})]
  assert len(images) >= 2
  assert all(base64.b64decode(image).startswith(_PNG) for image in images)

  table = next(output.data for output in outputs['serve'] if 'data' in output)
  assert table['text/html'].count('<tr') == 11  # A head and ten items.
  assert 'recommended' in table['text/plain'] and 'took lately' in table['text/plain']
  assert 'NaN' not in table['text/plain']
