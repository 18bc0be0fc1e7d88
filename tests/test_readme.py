"""The README names nothing that does not exist."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def test_every_flag_exists():
  text = (ROOT / 'README.md').read_text()
  named = set(re.findall(r'--(?:no)?([a-z_]+)\b', text))
  known = set()
  commands = [[str(path)] for path in (ROOT / 'experiments').glob('*.py')]
  # Those that have no script.
  commands += [['-m', 'graphsane_tf', name] for name in ('init', 'update', 'recommend')]
  for words in commands:
    shown = subprocess.run([sys.executable, *words, '--helpfull'], capture_output=True, text=True,
                           cwd=ROOT, env={'PYTHONPATH': str(ROOT), 'PATH': ''}, check=False).stdout
    known |= set(re.findall(r'^\s+(?:-\w,)?--(?:\[no\])?([a-z_]+)', shown, re.M))
  assert named - known - {'help', 'helpfull'} == set()


def test_every_linked_file_exists():
  for document in [ROOT / 'README.md', *ROOT.glob('docs/**/*.md')]:
    for target in re.findall(r'\]\(([\w./-]+)\)', document.read_text()):
      assert (document.parent / target).exists(), f'{document.name}: {target}'


def test_every_field_set_by_a_flag_exists():
  from graphsane_tf.config import default_config  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs.workdir import flatten  # pylint: disable=g-import-not-at-top
  fields = flatten(default_config().to_dict())
  for document in (ROOT / 'README.md', ROOT / 'BUILD_NOTES.md'):
    for name in re.findall(r'--config\.([a-z_.0-9]+)=', document.read_text()):
      assert name in fields, name
