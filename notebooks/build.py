"""Makes the notebooks from notebooks/sources: `python notebooks/build.py [--run] [NAME ...]`.

A source is Python in which `# %% [markdown] id` begins a cell of text (its lines are comments) and `# %% id` a cell of
code. `--run` executes a notebook in a clean kernel and keeps its outputs and pictures; without it, outputs that are
there stay where the cell has not changed.
"""
import json
import pathlib
import re
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
_METADATA = {'colab': {'provenance': []},
             'kernelspec': {'display_name': 'Python 3', 'language': 'python', 'name': 'python3'},
             'language_info': {'name': 'python'}}
# Begins every notebook, after its title.
INSTALL = '''# Installs the package where it is missing: from this checkout, or from what SOURCE names. On Colab,
# upload the project as a zip file or wheel and give its name, e.g. SOURCE = '/content/graphsane_tf.zip'.
import importlib.util
import pathlib
import subprocess
import sys

SOURCE = '..'

if importlib.util.find_spec('graphsane_tf') is None:
  if pathlib.Path(SOURCE).is_dir() and not (pathlib.Path(SOURCE) / 'setup.cfg').exists():
    raise SystemExit(f'{SOURCE} is not a checkout of graphsane_tf: set SOURCE to its folder, zip file or wheel.')
  subprocess.run([sys.executable, '-m', 'pip', 'install', '--quiet', SOURCE], check=True)
  importlib.invalidate_caches()'''


def names():
  return sorted(path.stem for path in (FOLDER / 'sources').glob('*.py'))


def cells(name):
  """The cells of a source: kind, id and text of each."""
  text = (FOLDER / 'sources' / f'{name}.py').read_text('utf-8')
  found = []
  for part in re.split(r'^# %% ', text, flags=re.M)[1:]:
    head, _, body = part.partition('\n')
    marked, ident = head.startswith('[markdown]'), head.split()[-1]
    # Commands for the shell are comments in a source, so that it stays Python.
    body = re.sub(r'^# ?' if marked else r'^# (?=[!%])', '', body.strip('\n'), flags=re.M)
    found.append(('markdown' if marked else 'code', ident, body))
    if len(found) == 1:
      found.append(('code', 'install', INSTALL))
  return found


def build(name):
  """The notebook of a source as JSON; outputs of the notebook that is there stay with cells that have not changed."""
  path = FOLDER / f'{name}.ipynb'
  before = json.loads(path.read_text('utf-8'))['cells'] if path.exists() else []
  known = {(cell['id'], ''.join(cell['source'])): cell for cell in before}
  made = []
  for kind, ident, text in cells(name):
    old = known.get((ident, text), {})
    cell = {'cell_type': kind, 'id': ident, 'metadata': {}, 'source': text.splitlines(keepends=True)}
    if kind == 'code':
      cell.update(execution_count=old.get('execution_count'), outputs=old.get('outputs', []))
    made.append(cell)
  return {'cells': made, 'metadata': _METADATA, 'nbformat': 4, 'nbformat_minor': 5}


def run(notebook, folder=FOLDER, kernel='python3', timeout=900):
  """Executes a notebook in a clean kernel and returns it with tidy outputs."""
  import nbclient  # pylint: disable=g-import-not-at-top
  import nbformat  # pylint: disable=g-import-not-at-top
  done = nbformat.reads(json.dumps(notebook), 4)
  nbclient.NotebookClient(done, timeout=timeout, kernel_name=kernel,
                          resources={'metadata': {'path': str(folder)}}).execute()
  for cell in done.cells:
    if cell.cell_type == 'code':
      cell.metadata = {}
      cell.outputs = [output for output in cell.outputs if output.get('name') != 'stderr']
      for output in cell.outputs:
        if 'text' in output:
          # No paths of the machine that ran it.
          text = re.sub(re.escape(tempfile.gettempdir()) + r'/[\w.-]+/', '', output['text'])
          output['text'] = text.replace(str(FOLDER.parent), '..')
  done.metadata = notebook['metadata']
  return json.loads(nbformat.writes(done))


def write(name, notebook):
  text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + '\n'
  (FOLDER / f'{name}.ipynb').write_text(text, 'utf-8')


def main(words):
  chosen = [word for word in words if not word.startswith('--')] or names()
  for name in chosen:
    notebook = build(name)
    write(name, run(notebook) if '--run' in words else notebook)
    print(f'written   notebooks/{name}.ipynb', flush=True)


if __name__ == '__main__':
  main(sys.argv[1:])
