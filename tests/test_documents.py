"""README.md and docs: every command is understood, and runs; every flag, field and file that they name exists.

What is changed so that a command takes seconds: SMALL is added where a model is trained, the small `drift` log stands
for the large one and, under the names that the pages use, for logs on disk; SUBSTITUTES stand for what is long.
"""
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

from graphsane_tf.config import default_config
from graphsane_tf.runs.workdir import flatten
from tests import documents, store_files

SMALL = ['--embedding_dim=8', '--batch_size=512', '--base_epochs=1', '--epochs=1']
SUBSTITUTES = {'--trials=30': '--trials=2', '--seeds=3': '--seeds=1', '--updates=30': '--updates=2',
               '--what=main': '--what=ablation', '--updates=23': '--updates=2', '--history=420d': '--history=60d',
               '--min_user_interactions=20': '--min_user_interactions=5',
               '--min_item_interactions=50': '--min_item_interactions=5'}
# Commands that train, or start what trains.
TRAINS = ('run', 'init', 'tune', 'soak')
# Flags of programs that are not ours, and of the benchmark's own parser.
OTHERS = {'help', 'helpfull', 'pyargs', 'quiet', 'model_base_path', 'strict', 'faults', 'sample', 'packages', 'again',
          'long', 'no', 'verify'}
# Their commands are run by tests/test_extending.py, and by the tests of workers in tests/runs.
GUIDE = documents.ROOT / 'docs' / 'extending.md'
WORKERS = documents.ROOT / 'docs' / 'distributed.md'


@pytest.fixture(name='parsed', scope='module')
def _parsed():
  """Every command of graphsane in the documents and in `make run`: where it stands, its words, code and words said."""
  found = [(page.name, words) for page in documents.PAGES if page != GUIDE for words in documents.commands(page)]
  found += [('Makefile', words) for words in documents.recipe('run')]
  found = [(place, ours) for place, words in found if (ours := documents.as_graphsane(words))]
  # Each command once alone, for the names of its flags.
  bare = [[name] for name in documents.COMMANDS]
  done = subprocess.run([sys.executable, '-m', 'tests.parse_commands'], capture_output=True, text=True, check=False,
                        input=json.dumps([words for _, words in found] + bare), cwd=documents.ROOT,
                        env={**os.environ, 'PYTHONPATH': str(documents.ROOT)})
  assert done.returncode == 0, done.stderr
  answers = json.loads(done.stdout)
  flags = {flag for _, _, names in answers for flag in names}
  return [(*place, code, said) for place, (code, said, _) in zip(found, answers)], flags


def test_every_command_is_understood(parsed):
  commands, _ = parsed
  assert len(commands) > 25
  wrong = [f'{place}: {" ".join(words)}: {said}' for place, words, code, said in commands if code]
  assert not wrong, '\n'.join(wrong)


def test_other_programs_are_ours_too():
  makefile = (documents.ROOT / 'Makefile').read_text()
  extras = (documents.ROOT / 'setup.cfg').read_text()
  for page in documents.PAGES:
    for words in documents.commands(page):
      if documents.as_graphsane(words):
        continue
      if words[0] == 'make':
        assert re.search(rf'^{words[1]}:', makefile, re.M), words
      elif words[0] == 'python':
        assert (documents.ROOT / words[1]).exists() or words[1] == '-m', words
      elif words[:2] == ['pip', 'install']:
        assert all(re.search(rf'^{extra} =$', extras, re.M) for extra in re.findall(r'\[(\w+)\]', words[-1])), words
      else:
        assert words[0] in ('.', 'curl', 'export'), words


def test_every_flag_that_a_text_names_exists(parsed):
  _, known = parsed
  # Experiments that are no commands define theirs themselves.
  own = {name for path in (documents.ROOT / 'experiments').glob('*.py')
         for name in re.findall(r"(?:DEFINE_\w+\(|add_argument\()'(?:--)?(\w+)'", path.read_text('utf-8'))}
  known = known | {f'no{name}' for name in known} | OTHERS | own
  for page in documents.PAGES:
    named = set(re.findall(r'(?<![\w-])--([a-z_]+)\b(?![.\w-])', documents.without_blocks(page)))
    # The guide's data source has an option of its own.
    named -= {'pipes_mark'} if page == GUIDE else set()
    assert named - known == set(), page


def test_every_field_that_a_text_names_exists():
  fields = flatten(default_config().to_dict())
  own = set(re.findall(r"register\('(\w+)', ", GUIDE.read_text()))
  for page in (*documents.PAGES, documents.ROOT / 'BUILD_NOTES.md', documents.ROOT / 'CHANGELOG.md'):
    for name in re.findall(r'--config\.([a-z_0-9]+(?:\.[a-z_0-9]+)*)=', page.read_text()):
      assert name in fields or name.split('.')[-2] in own, f'{page}: {name}'


def test_every_linked_file_exists():
  for page in documents.PAGES:
    for target in re.findall(r'\]\(([\w./-]+)(?:#[\w-]+)?\)', documents.without_blocks(page)):
      assert (page.parent / target).exists(), f'{page}: {target}'


def test_the_readme_stays_short():
  assert len(documents.PAGES[0].read_text('utf-8').splitlines()) <= 130


def _write_world(folder):
  """Files of the names that the documents use: the small `drift` log over a hundred days."""
  rows = store_files.frame()
  rows['timestamp'] = 1_500_000_000 + np.linspace(0, 100 * 86400, len(rows)).astype(int)
  rows.rename(columns={'user': 'customer', 'item': 'product', 'timestamp': 'when'}).to_csv(
      folder / 'log.csv.gz', index=False)
  for name in ('tafeng', 'gowalla'):
    rows.to_csv(folder / f'{name}.csv.gz', index=False)
  rows[:9000].to_parquet(folder / 'history.parquet', index=False)
  rows[9000:10000].to_csv(folder / 'today.csv', index=False)
  raw = folder / 'data' / 'taobao14'
  raw.mkdir(parents=True)
  number = rows[['user', 'item', 'category']].apply(lambda column: column.str.extract(r'(\d+)')[0].astype(int))
  with open(raw / 'tianchi_mobile_recommend_train_user.csv', 'w', encoding='utf-8') as stream:
    stream.write('user_id,item_id,behavior_type,user_geohash,item_category,time\n')
    for (user, item, category), seconds in zip(number.to_numpy(), rows.timestamp):
      stream.write(f'{user},{item},1,,{category},{time.strftime("%Y-%m-%d %H", time.gmtime(seconds))}\n')


def _small(ours):
  """A command's words, made small."""
  words = [SUBSTITUTES.get(word, word) for word in ours]
  if ours[0] in TRAINS:
    words += [word for word in SMALL if not any(word.split('=')[0] == other.split('=')[0] for other in ours)]
  if ours[0] in ('run', 'tune', 'prepare') and '--dataset=drift' in ours or ours[0] == 'reproduce':
    words.append('--drift_size=small')
  if ours[0] == 'reproduce':
    words.append(f'--extra={" ".join(SMALL)}')
  return words


def _environment():
  return {**os.environ, 'PYTHONPATH': str(documents.ROOT)}


def _ask(words, port):
  """What curl would get."""
  address = words[1].replace('8501', str(port))
  data = words[words.index('-d') + 1].encode() if '-d' in words else None
  deadline = time.monotonic() + 120
  while True:
    try:
      with urllib.request.urlopen(address, data, timeout=30) as answer:
        return json.loads(answer.read())
    except (urllib.error.URLError, ConnectionError):
      assert time.monotonic() < deadline
      time.sleep(.2)


@pytest.mark.slow
@pytest.mark.parametrize('page', [
    page for page in documents.PAGES if page not in (GUIDE, WORKERS) and page.parent.name != 'results'
    and documents.commands(page)], ids=lambda page: page.name)
def test_every_command_runs(page, tmp_path):
  """In the order of the page, in a folder that has the files it speaks of. `make run` is its recipe."""
  _write_world(tmp_path)
  todo = [line for words in documents.commands(page)
          for line in (documents.recipe('run') if words == ['make', 'run'] and page == documents.PAGES[0] else [words])]
  # Pages go on with the store of updating.md.
  if page.name == 'serving.md':
    before = documents.commands(page.with_name('updating.md'))
    todo = [words for words in before if words[1] in ('init', 'update')] + todo
  server, port = None, 0
  try:
    for words in todo:
      ours = documents.as_graphsane(words)
      if words[0] == 'curl':
        assert _ask(words, port), words
      elif ours and ours[0] == 'serve':
        with socket.socket() as free:
          free.bind(('127.0.0.1', 0))
          port = free.getsockname()[1]
        server = subprocess.Popen([sys.executable, '-m', 'graphsane_tf', *ours, f'--port={port}'], cwd=tmp_path,
                                  env=_environment())
      elif ours:
        done = subprocess.run([sys.executable, '-m', 'graphsane_tf', *_small(ours)], cwd=tmp_path, capture_output=True,
                              text=True, check=False, env=_environment())
        # The gate may refuse a model that has hardly been trained.
        assert done.returncode in ((0, 3) if ours[0] == 'update' else (0,)), (words, done.stdout, done.stderr)
      else:
        # Checked by another test: installing, this test itself, and what changes the checkout.
        assert words[0] in ('make', 'pip', '.', 'python'), words
  finally:
    if server is not None:
      server.terminate()
      server.wait(60)
