"""A --config file that cannot be used is one sentence with the file and the line."""
import pathlib
import re

import pytest

from graphsane_tf import cli, config_files
from graphsane_tf import config as config_lib
from graphsane_tf.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parents[1]
BEGIN = ('from graphsane_tf.config import default_config\n\n\n'
         'def get_config():\n  c = default_config()\n')
# Content of the file, and what the sentence says after its name.
FILES = {
    'syntax': ('def get_config():\n  return (\n', r', line 2: SyntaxError: .*never closed\.'),
    'indentation': (f'{BEGIN}   return c\n', ', line 6: IndentationError: unexpected indent'),
    'import': ('import math\nimport no_such_module\n',
               ", line 2: ModuleNotFoundError: No module named 'no_such_module'"),
    'exception': (f'{BEGIN}  return c.train.speed\n', ', line 6: AttributeError: .*speed'),
    'exception of its own': (f'{BEGIN}  raise RuntimeError("two\\nlines")\n',
                             ', line 6: RuntimeError: two lines'),
    'exception in a helper': ('def half():\n  return 1 / 0\n\n\ndef get_config():\n  return half()\n',
                              ', line 2: ZeroDivisionError'),
    'exception below': ('import json\n\n\ndef get_config():\n  return json.loads("{")\n',
                        ', line 5: JSONDecodeError: '),
    'wrong type': (f'{BEGIN}  c.train.epochs = "many"\n  return c\n', ', line 6: TypeError: .*epochs'),
    'exit': ('import sys\nsys.exit(0)\n', ', line 2: SystemExit: 0'),
    'null bytes': ('x = 1\0\n', ': .*null bytes'),
    'no get_config': ('x = 1\n', r' has no function get_config\(\)'),
    'get_config is no function': ('get_config = 1\n', r' has no function get_config\(\)'),
    'no return': (BEGIN, r', line 4: get_config\(\) returned a NoneType'),
    'a dict': ('def get_config():\n  return {}\n', r', line 1: get_config\(\) returned a dict'),
    'frozen': ('from graphsane_tf import config\n\n\ndef get_config():\n'
               '  return config.resolved(config.default_config())\n', 'returned a FrozenConfigDict'),
    'an unknown field': (f'{BEGIN}  c.sane.sise = 300\n  return c\n',
                         ', line 4: .*config.sane.sise; did you mean config.sane.size'),
    'a missing section': (f'{BEGIN}  del c.lsp\n  return c\n', ', line 4: .*lacks config.lsp.'),
}


@pytest.mark.fault('broken configuration file')
@pytest.mark.parametrize('name', FILES)
def test_a_broken_file_is_one_sentence(name, tmp_path):
  content, sentence = FILES[name]
  path = tmp_path / 'mine.py'
  path.write_text(content)
  with pytest.raises(UserError) as error:
    config_files.load_config(str(path))
  assert re.match(re.escape(str(path)) + '.*' + sentence, str(error.value)), str(error.value)
  assert '\n' not in str(error.value)


@pytest.mark.fault('broken configuration file')
def test_an_import_that_does_not_compile_names_the_line_of_the_import(tmp_path, monkeypatch):
  (tmp_path / 'half_a_module.py').write_text('x = (\n')
  monkeypatch.syspath_prepend(tmp_path)
  path = tmp_path / 'mine.py'
  path.write_text('import math\nimport half_a_module\n')
  with pytest.raises(UserError, match='mine.py, line 2: SyntaxError'):
    config_files.load_config(str(path))


@pytest.mark.fault('broken configuration file')
def test_bytes_that_are_no_text(tmp_path):
  path = tmp_path / 'mine.py'
  path.write_bytes(b'x = "\xff\xfe"\n')
  with pytest.raises(UserError, match='mine.py.*SyntaxError'):
    config_files.load_config(str(path))


@pytest.mark.fault('broken configuration file')
@pytest.mark.parametrize('given, sentence', [
    ('missing.py', '--config=missing.py does not exist'), ('', '--config= does not exist'),
    ('.', '--config=. is not a file'),
    (f'{ROOT}/configs/datasets.py:mnist', 'no configuration mnist; choose from drift, '),
    (f'{ROOT}/configs/tiny.py:fast', r'tiny.py, line \d+: TypeError: get_config\(\) takes 0')])
def test_what_is_not_there(given, sentence):
  with pytest.raises(UserError, match=sentence):
    config_files.load_config(given)


def test_a_good_file_is_read_anew_each_time(tmp_path):
  path = tmp_path / 'mine.py'
  for seed in (1, 2):
    path.write_text(f'{BEGIN}  c.seed = {seed}\n  return c\n')
    assert config_files.load_config(str(path)).seed == seed
  assert config_files.load_config(f'{ROOT}/configs/datasets.py:netflix').train.batch_size == 5000
  assert [entry.name for entry in tmp_path.iterdir()] == ['mine.py']


@pytest.mark.fault('unknown configuration field')
@pytest.mark.parametrize('argument, sentence', [
    ('--config.sane.sise=300', r"--config.sane.sise: .*'sane.sise'; did you mean config.sane.size\?"),
    ('--config.sain.size=300', r'did you mean config.sane.size\?'),
    ('--config.batch_size=3', r'did you mean config.train.batch_size\?'),
    ('-config.sane.sise', r'did you mean config.sane.size\?'),
    ('--noconfig.full_retrian', r'did you mean config.full_retrain\?'),
    ('--config.train.epochs.most=3', "no field 'train.epochs.most'"),
    ('--config.train={"epochs": 3}', r'--config.train is a section: .*--config.train.\w+'),
    ('--config.zzz=1', 'graphsane_tf/config.py lists them'), ('--config.=1', "no field ''")])
def test_an_unknown_field_is_named_with_the_nearest(argument, sentence):
  with pytest.raises(UserError, match=sentence):
    config_files.check_overrides(config_lib.default_config(), ['tool', '--kd=sgct', argument])


def test_known_fields_and_other_flags_pass():
  config_files.check_overrides(config_lib.default_config(), [
      'tool', '--config=configs/tiny.py', '--config.sane.size=300', '--noconfig.full_retrain',
      '--config.sane.band', 'learned', '--interactions=config.csv', '--epochs=3'])


@pytest.mark.fault('broken configuration file')
@pytest.mark.parametrize('content, sentence', [
    ('RECIPES = {\n', 'logs.py, line 1: SyntaxError'), ('x = 1\n', 'logs.py has no dict RECIPES')])
def test_recipes_of_logs(content, sentence, tmp_path):
  path = tmp_path / 'logs.py'
  path.write_text(content)
  with pytest.raises(UserError, match=sentence):
    cli.log_recipes(path)
  assert 'gowalla' in cli.log_recipes(ROOT / 'configs' / 'logs.py')
