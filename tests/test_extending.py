"""docs/extending.md: its files are loaded as plugins, pass the behaviour suite, and its commands work."""
import json
import re
import shutil

import numpy as np
import pytest

from graphsane_tf import distillation, registry
from graphsane_tf.errors import UserError
from graphsane_tf.runs import incremental
from graphsane_tf.testing import logs, registries
from tests import guide
from tests.distillation import oracles

SMALL = ['--embedding_dim=8', '--batch_size=512', '--base_epochs=1', '--epochs=1', '--drift_size=small']


@pytest.fixture(name='plugins', scope='module')
def _plugins(tmp_path_factory):
  """A folder outside the checkout with every file of the guide."""
  folder = tmp_path_factory.mktemp('plugins')
  guide.write(folder)
  return folder


@pytest.fixture(name='loaded')
def _loaded(plugins):
  with registries.restored():
    for name in guide.files():
      registry.load_plugin(plugins / name)
    yield


@pytest.fixture(name='run')
def _run(forked):
  """Runs a command as an installed package would."""
  def _command(words, folder):
    words = words[2:] if words[:2] == ['python', '-m'] else words
    return forked.run({'graphsane': 'graphsane_tf'}.get(words[0], words[0]), *words[1:], cwd=folder)
  return _command


def test_every_kind_has_a_file(loaded):
  kinds = {kind for kind, names in registry.REGISTRIES.items() if names.own()}
  assert kinds >= {'sampler', 'distiller', 'backbone', 'replay policy', 'clustering', 'peer', 'table'}


def test_files_pass_the_behaviour_suite(run, plugins, tmp_path):
  """In a fresh process, with nothing of the checkout's tests."""
  words = [word for word in guide.commands()[0] if not word.startswith('--plugin')]
  result = run([*words, *(f'--plugin={plugins / name}' for name in guide.files())], tmp_path)
  assert result.returncode == 0, result.stdout[-3000:] + result.stderr
  tested = result.stdout
  assert 'tested: sampler mypop, ' in tested and not re.search(r'skipped|failed', tested)
  assert int(re.search(r'(\d+) passed', tested)[1]) > 40


@pytest.mark.parametrize('words', [words for words in guide.commands() if words[:2] == ['graphsane', 'run']],
                         ids=lambda words: words[2])
def test_commands_are_understood(run, plugins, words):
  """Up to the number of the block, which is looked at after all other flags."""
  result = run([*words, '--block=last'], plugins)
  assert (result.returncode, result.stderr) == (2, 'error: --block=last is neither all nor a number.\n')


def test_methods_train_together_and_the_run_needs_them_later(run, plugins, tmp_path):
  flags = [f'--plugin={plugins / name}' for name in ('mypop.py', 'cosine.py', 'mix.py', 'recent.py')]
  chosen = ['--sampler=mypop', '--config.mypop.power=0.5', '--kd=cosine', '--backbone=mix',
            '--config.model.mix.share=0.3', '--replay=recent', '--dataset=drift', '--workdir=run', *SMALL]
  result = run(['graphsane', 'run', *flags, *chosen], tmp_path)
  assert result.returncode == 0, result.stderr
  losses = (tmp_path / 'run' / 'metrics.jsonl').read_text()
  assert '"mypop"' in losses and '"cosine"' in losses
  saved = json.loads((tmp_path / 'run' / 'config.json').read_text())['config']
  assert saved['mypop'] == {'power': .5} and saved['model']['mix'] == {'share': .3}
  again = run(['graphsane', 'run', *flags, *chosen], tmp_path)
  assert again.returncode == 0 and 'block 3 is finished already.' in again.stdout
  for words in (['audit', '--run=run'], ['inspect', '--run=run', '--user=u00012']):
    result = run(['graphsane', *words], tmp_path)
    assert result.returncode == 2 and re.fullmatch(
        r'error: run/config\.json names config\.backbone=mix, which the package does not have: give the file that '
        r'registers it with --plugin=FILE\.py\.\n', result.stderr), result.stderr
  # A base block of a model with other options is no base of this one.
  other = [word.replace('0.3', '0.4').replace('=run', '=other') for word in chosen]
  result = run(['graphsane', 'run', *flags, *other, '--base_from=run'], tmp_path)
  assert result.returncode == 2 and 'is of another model (model.mix.share: 0.3 -> 0.4)' in result.stderr


def test_methods_are_rows_of_a_table(run, plugins):
  words = next(words for words in guide.commands() if words[1] == 'reproduce')
  result = run([*words, '--dry_run'], plugins)
  assert result.returncode == 0, result.stderr
  assert all(name in result.stdout for name in (' sgct-mypop ', ' cosine-cosine.weight=0.3 ', ' sgct-dns '))


@pytest.mark.fault('plugin')
@pytest.mark.parametrize('command,flag,sentence', [
    ('run', '--config.mypop.power=-1', r'config\.mypop\.power is -1\.0; it must be at least 0\.'),
    ('run', '--config.mypop.power=high', '--config.mypop.power=high is not a number'),
    ('run', '--config.mypop.size=3', "no field 'mypop.size'; did you mean config.mypop.power"),
    ('tune', '--config.mypop.power=-1', r'config\.mypop\.power is -1\.0; it must be at least 0\.')])
def test_a_bad_option_is_one_sentence(run, plugins, command, flag, sentence):
  result = run(['graphsane', command, '--plugin=mypop.py', '--dataset=drift', '--sampler=mypop', flag], plugins)
  assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
  assert re.match(f'error: .*{sentence}', result.stderr), result.stderr


def test_the_distiller_computes_what_the_guide_says(loaded):
  case = oracles.Case(oracles.config(**{'cosine.weight': 2.}))
  changes = []
  for user, item in oracles.NEW:
    if user < 4 and item < 5:
      now, before = (rows['user'][user] @ rows['item'][item]
                     / np.linalg.norm(rows['user'][user]) / np.linalg.norm(rows['item'][item])
                     for rows in (case.rows, case.old_rows))
      changes.append((now - before) ** 2)
  losses = case.losses(distillation.REGISTRY['cosine'])
  assert losses == {'cosine': pytest.approx(2. * np.mean(changes), rel=1e-5)}


@pytest.mark.fault('plugin')
def test_a_folder_of_a_method_that_is_gone(plugins, tmp_path):
  config = {'sampler': 'mypop', 'backbone': 'lightgcn', 'blocks__num_incremental': 2}
  with registries.restored():
    registry.load_plugin(plugins / 'mypop.py')
    run = incremental.IncrementalRun(logs.tiny_config(**config), logs.random_log(), tmp_path / 'run',
                                     log=lambda line: None)
    with run.held():
      pass
  shutil.copytree(tmp_path / 'run', tmp_path / 'copy')
  with pytest.raises(UserError, match=r'names config\.sampler=mypop, .* --plugin=FILE\.py'):
    incremental.IncrementalRun(logs.tiny_config(), logs.random_log(), tmp_path / 'run')
  with registries.restored():
    registry.load_plugin(plugins / 'mypop.py')
    incremental.IncrementalRun(logs.tiny_config(**config), logs.random_log(), tmp_path / 'copy')


@pytest.mark.fault('plugin')
@pytest.mark.parametrize('text,sentence', [
    (None, r'there is no method to test: give a file that registers one with --plugin=FILE\.py\.'),
    ('x = 1\n', 'there is no method to test'), ('x = (\n', r'mine\.py, line 1: SyntaxError')])
def test_the_suite_says_that_there_is_nothing_to_test(run, tmp_path, text, sentence):
  words = ['pytest', '-p', 'graphsane_tf.testing.plugin', '--pyargs', 'graphsane_tf.testing']
  if text is not None:
    (tmp_path / 'mine.py').write_text(text)
    words.append('--plugin=mine.py')
  result = run(words, tmp_path)
  assert result.returncode == 4 and re.search(sentence, result.stderr), result.stderr
