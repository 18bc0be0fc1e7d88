"""Files of the user's own: what they register, and what is said about those that fail."""
import importlib.metadata
import re

import pytest

from graphsane_tf import config_rules, negatives, registry
from graphsane_tf.config import default_config, resolved
from graphsane_tf.errors import UserError
from graphsane_tf.testing import registries

HEAD = '''from graphsane_tf import backbones, config_rules, distillation, negatives, replay
from graphsane_tf.negatives.base import NegativeSampler
from graphsane_tf.replay.base import NoReplay
'''


@pytest.fixture(autouse=True)
def _restored():
  with registries.restored():
    yield


@pytest.fixture(name='load')
def _load(tmp_path):
  def load(text, name='mine.py'):
    (tmp_path / name).write_text(text)
    registry.load_plugin(tmp_path / name)
  return load


def _registering(arguments, kind='replay', body='NoReplay'):
  return f'{HEAD}\n@{kind}.REGISTRY.register({arguments})\nclass Mine({body}):\n  pass\n'


def test_options_become_fields_with_rules(load):
  load(_registering("'mine', power=(0.5, config_rules.WEIGHT), loss=(('bpr'), config_rules.one_of('bpr', 'hinge'))"))
  config = default_config()
  assert config.mine.to_dict() == {'power': .5, 'loss': 'bpr'}
  config.mine.power = -1.
  with pytest.raises(UserError, match=r'config\.mine\.power is -1\.0; it must be at least 0'):
    resolved(config)
  config.update({'mine': {'power': 1., 'loss': 'other'}, 'replay': 'mine'})
  with pytest.raises(UserError, match='bpr or hinge'):
    resolved(config)


def test_options_of_a_backbone_are_below_model(load):
  load(_registering("'pinsage2', depth=(2, config_rules.COUNT)", 'backbones', 'object'))
  assert default_config().model.pinsage2.depth == 2
  assert 'pinsage2' not in default_config()


def test_forgotten_methods_leave_nothing(load):
  before = default_config().to_dict(), dict(config_rules.RULES)
  with registries.restored():
    load(_registering("'mine', power=(0.5, config_rules.WEIGHT)"))
    load(_registering("'graph', depth=(2, config_rules.COUNT)", 'backbones', 'object'), 'graph.py')
    assert default_config().to_dict() != before[0]
  assert (default_config().to_dict(), config_rules.RULES) == before
  assert not any(names.own() for names in registry.REGISTRIES.values())


def test_the_same_file_may_be_loaded_again_and_changed(load):
  load(_registering("'mine', power=(0.5, config_rules.WEIGHT)"))
  load(_registering("'mine', depth=(2, config_rules.COUNT)"))
  assert default_config().mine.to_dict() == {'depth': 2}


def test_the_packages_own_are_not_forgotten():
  negatives.REGISTRY.forget('dns')
  assert negatives.REGISTRY['dns'].__name__ == 'DNS' and 'dns' not in negatives.REGISTRY.own()


# Text of a file and what is said.
BROKEN = {
    'syntax error': ('x = (\n', r'mine\.py, line 1: SyntaxError: .*never closed\.'),
    'missing library': ('\nimport nothing_of_this_name\n', r'mine\.py, line 2: ModuleNotFoundError: No module named'),
    'exception': ('def f():\n  raise ValueError("a\\nb")\n\nf()\n', r'mine\.py, line 2: ValueError: a b\.'),
    'exit': ('import sys\nsys.exit(0)\n', r'mine\.py, line 2: SystemExit: 0\.'),
    'name of the package': (_registering("'uniform'"),
                            r'mine\.py, line \d: there is a replay policy called uniform already: choose another name '
                            r'for Mine\.'),
    'no name': (_registering("'my pop'"), "'my pop' is no name for a replay policy: give Mine one of letters"),
    'section of the package': (_registering("'model', size=(1, config_rules.COUNT)"),
                               r'the configuration has config\.model already: choose another name\.'),
    'field of the package': (_registering("'kd', size=(1, config_rules.COUNT)"), r'has config\.kd already'),
    'model field': (_registering("'dropout', size=(1, config_rules.COUNT)", 'backbones', 'object'),
                    r'has config\.model\.dropout already'),
    'no rule': (_registering("'mine', power=0.5"), 'option power of mine needs a default and a rule, such as power='),
    'bad default': (_registering("'mine', size=(0, config_rules.COUNT)"),
                    'option size of mine has the default 0; it must be at least 1'),
    'abstract': (_registering("'mine'", 'negatives', 'NegativeSampler'),
                 'the sampler mine lacks draw: Mine must define it'),
}


@pytest.mark.fault('plugin')
@pytest.mark.parametrize('case', BROKEN)
def test_a_broken_file_is_one_sentence(load, case):
  text, sentence = BROKEN[case]
  with pytest.raises(UserError) as error:
    load(text)
  assert re.search(sentence, str(error.value)), error.value
  assert '\n' not in str(error.value) and str(error.value).endswith('.')
  assert not any(names.own() for names in registry.REGISTRIES.values()) and not config_rules.SECTIONS


@pytest.mark.fault('plugin')
def test_two_files_with_one_name(load, tmp_path):
  load(_registering("'mine', power=(0.5, config_rules.WEIGHT)"))
  with pytest.raises(UserError, match='other.py, line 5: there is a replay policy called mine already'):
    load(_registering("'mine'"), 'other.py')
  # A file of the same name elsewhere is another file.
  (tmp_path / 'more').mkdir()
  with pytest.raises(UserError, match='there is a replay policy called mine already'):
    load(_registering("'mine'"), 'more/mine.py')
  # Two kinds may share a name, but not its options.
  with pytest.raises(UserError, match=r'the configuration has config\.mine already'):
    load(_registering("'mine', depth=(2, config_rules.COUNT)", 'distillation', 'object'), 'kind.py')
  assert default_config().mine.to_dict() == {'power': .5}


@pytest.mark.fault('plugin')
def test_a_file_that_is_not_there(tmp_path):
  with pytest.raises(UserError, match=r'--plugin=.*absent\.py does not exist; give the path of a Python file\.'):
    registry.load_plugin(tmp_path / 'absent.py')
  with pytest.raises(UserError, match=r'--plugin=.* is not a file; give the path of a Python file\.'):
    registry.load_plugin(tmp_path)


@pytest.fixture(name='installed')
def _installed(monkeypatch, tmp_path):
  """Makes a module that an installed package names as an entry point."""
  def install(text, name):
    (tmp_path / f'{name}.py').write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    point = importlib.metadata.EntryPoint(name, name, registry.ENTRY_POINTS)
    monkeypatch.setattr(importlib.metadata, 'entry_points', lambda group: [point] if group == point.group else [])
  return install


def test_entry_points_are_loaded(installed):
  installed(_registering("'mine', power=(0.5, config_rules.WEIGHT)"), 'plugin_for_tests')
  registry.load_entry_points()
  assert default_config().mine.power == .5


@pytest.mark.fault('plugin')
@pytest.mark.parametrize('name,text,sentence', [
    ('broken_plugin', '1 / 0\n', r'the installed plugin broken_plugin \(broken_plugin\) fails: ZeroDivisionError'),
    ('clashing_plugin', _registering("'uniform'"), 'the installed plugin clashing_plugin .* called uniform already')])
def test_a_broken_entry_point_is_one_sentence(installed, name, text, sentence):
  installed(text, name)
  with pytest.raises(UserError, match=sentence):
    registry.load_entry_points()
