"""Every field of the configuration has a rule, and no value that breaks it gets past `resolved`."""
import dataclasses
import math
import re

from ml_collections import config_dict
import pytest

from graphsane_tf import config as config_lib
from graphsane_tf import config_rules
from graphsane_tf.config_rules import RULES
from graphsane_tf.errors import UserError
from graphsane_tf.runs import incremental
from tests import logs

PLAIN = config_rules.flatten(config_lib.default_config().to_dict())
# What nobody could mean, field by field; the rest of the file derives its values from the rules.
NONSENSE = [
    ('train.learning_rate', -1.), ('train.learning_rate', 0.), ('train.base_learning_rate', math.nan),
    ('model.embedding_dim', 0), ('model.graph_scope', 'foo'), ('model.new_rows', 'foo'),
    ('model.l2', -1.), ('train.patience', -1), ('evaluation.cutoffs', ()), ('train.batch_size', 0),
    ('train.num_negatives', 0), ('model.num_knn', -1), ('model.num_knn', 0), ('seed', -1),
    ('model.fanout', ()), ('model.fanout', (10,)), ('model.fanout', (10, 5, 5)),
    ('model.fanout', (10, 0)), ('model.fanout', (10., 5.)), ('sane_variant', 'foo'),
    ('evaluation.map_denominator', 'foo'), ('evaluation.ndcg_ideal', 'foo'),
    ('model.propagation', 'foo'), ('warp.loss', 'foo'), ('esns.loss', 'foo'), ('kd', 'foo'),
    ('backbone', 'foo'), ('replay', 'foo'), ('sampler', 'foo'), ('clusters', 'foo'),
    ('model.dropout', 1.), ('model.dropout', 1. - 1e-12), ('pns.probability', 0.),
    ('pns.probability', 1.), ('pinsage.damping', 1.), ('pinsage.max_iterations', 0),
    ('sane.refresh_epochs', 0), ('nscaching.refresh_epochs', 0), ('pns.refresh_epochs', 0),
    ('sane.prior_sign', 2), ('sane.temperature', 0.), ('sgct.temperature', 0.), ('esns.tries', 0),
    ('blocks.base_fraction', 1.), ('blocks.num_incremental', 0), ('replay_options.ratio', 1.01),
    ('evaluation.cutoffs', (0,)), ('train.batch_size', 2 ** 31), ('train.epochs', -1)]


def changed(field, value):
  """The default configuration with one field changed, of whatever type."""
  config = config_dict.ConfigDict(config_lib.default_config().to_dict(), type_safe=False)
  # Some have no meaning without another.
  needs = {'kd_strength': {'kd': 'sgct'}, 'memory_options.offset': {'memory': 'ease'},
           'train.optimizer': {'model.propagation': 'sampled'}}
  config.update_from_flattened_dict({**needs.get(field, {}), field: value})
  return config


def bad_numbers(rule):
  """Single values that break a rule of numbers: types, both ends of the range, no numbers."""
  yield from ('many', None, (1, 2), math.nan, math.inf, -math.inf)
  if rule.kind is int:
    yield from (2.5, True, 2 ** 31, -2 ** 31 - 1)
  else:
    yield from (1e39, -1e39)
  if rule.choices:
    yield max(rule.choices) + 1
    return
  step = 1 if rule.kind is int else 1e-3
  if rule.low is not None:
    yield rule.low if rule.above else rule.low - step
  if rule.high is not None:
    yield rule.high if rule.below else rule.high + step


def bad_values(field):
  """Values that a field must refuse."""
  rule = RULES[field]
  if rule.length:
    least, most = rule.length
    values = [(), 5, 'ab', None, (1,) * (least - 1), (1,) * (most + 1)]
    values += [(1,) * (least - 1) + (entry,) for entry in bad_numbers(rule)]
  elif rule.kind in (int, float):
    values = list(bad_numbers(rule))
  else:
    values = {bool: ['yes', 1, 0., None], str: [3, None, True, ('none',)]}[rule.kind]
    values += ['foo', ''] if rule.choices or rule.registry else []
  return [value for value in values if value is not None or PLAIN[field] is not None]


def good_values(field):
  """The ends of a field's range, or all of its values."""
  rule = RULES[field]
  if rule.allowed():
    return rule.allowed()
  if rule.kind not in (int, float):
    return {bool: (True, False), str: ('', 'runs/other')}[rule.kind]
  step = 1 if rule.kind is int else 1e-3
  ends = [(-1e3 if rule.low is None else rule.low + step * rule.above),
          ((2 ** 31 - 1 if rule.kind is int else 1e38) if rule.high is None
           else rule.high - step * rule.below)]
  if not rule.length:
    return ends
  return [(entry,) * length for entry in ends for length in rule.length]


def test_every_field_has_a_rule_and_every_rule_a_field():
  assert set(RULES) == set(PLAIN)


@pytest.mark.fault('bad configuration value')
@pytest.mark.parametrize('field, value', [
    *NONSENSE, *((field, value) for field in RULES for value in bad_values(field))])
def test_a_bad_value_is_a_sentence_that_names_the_field(field, value):
  with pytest.raises(UserError) as error:
    config_lib.resolved(changed(field, value))
  assert re.fullmatch(rf'config\.{re.escape(field)} is .*; it must be [^.\n].*\.', str(error.value))
  assert repr(value) in str(error.value) and '\n' not in str(error.value)


@pytest.mark.parametrize('field', RULES)
def test_the_ends_of_the_range_are_allowed(field):
  for value in good_values(field):
    found = config_rules.flatten(config_lib.resolved(changed(field, value)).to_dict())[field]
    # More epochs at least than at most are lowered.
    assert found == value or field.endswith('min_epochs')


@pytest.mark.parametrize('rule, value, sentence', [
    (config_rules.COUNT, 0, 'at least 1'),
    (config_rules.COUNT, 2 ** 31, 'at least 1 and at most 2147483647'),
    (config_rules.POSITIVE, 0., 'above 0'),
    (config_rules.PROBABILITY, 1, 'above 0 and below 1'),
    (config_rules.SHARE, 2., 'at least 0 and at most 1'),
    (config_rules.NUMBER, math.nan, 'a finite number'),
    (config_rules.COUNT, 1.5, 'a whole number'),
    (config_rules.SWITCH, 'no', 'True or False'),
    (config_rules.one_of('a', 'b', 'c'), 'd', 'a, b or c'),
    (RULES['model.fanout'], (3,), 'a tuple of 2 numbers'),
    (RULES['model.fanout'], (3, 0), 'a tuple in which each number is at least 1'),
    (RULES['evaluation.cutoffs'], [], 'a tuple of 1 to 100 numbers')])
def test_what_a_rule_says(rule, value, sentence):
  assert rule.wanted(value) == sentence


@pytest.mark.fault('bad configuration value')
def test_a_sampler_cannot_fill_more_negatives_than_there_are():
  wrong = {'train__num_negatives': 3, 'train__num_sampler_negatives': 4}
  with pytest.raises(UserError, match='config.train.num_sampler_negatives is 4; .* which is 3'):
    config_lib.resolved(logs.tiny_config(sampler='dns', **wrong))
  config_lib.resolved(logs.tiny_config(sampler='dns', train__num_negatives=4,
                                       train__num_sampler_negatives=4))
  # All are uniform, so the other number means nothing.
  config_lib.resolved(logs.tiny_config(sampler='uniform', **wrong))


@pytest.mark.fault('bad configuration value')
def test_a_mistyped_field_in_python_is_not_a_new_one():
  config = config_lib.default_config()
  config.sane.sise = 300
  with pytest.raises(UserError, match='no field config.sane.sise; did you mean config.sane.size?'):
    config_lib.resolved(config)


@pytest.mark.fault('bad configuration value')
def test_a_missing_field_is_named():
  config = config_lib.default_config()
  config.train = {'epochs': 3}
  with pytest.raises(UserError, match=r'lacks config.train.\w+: begin with .*default_config'):
    config_lib.resolved(config)


@pytest.mark.fault('bad configuration value')
def test_a_section_of_ones_own_brings_its_rules(monkeypatch):
  config = config_lib.default_config()
  config.mine = config_dict.ConfigDict({'weight': 2.})
  with pytest.raises(UserError, match='no field config.mine.weight'):
    config_lib.resolved(config)
  monkeypatch.setitem(RULES, 'mine.weight', config_rules.WEIGHT)
  assert config_lib.resolved(config).mine.weight == 2.
  config.mine.weight = -2.
  with pytest.raises(UserError, match='config.mine.weight is -2.0; it must be at least 0.'):
    config_lib.resolved(config)


@pytest.mark.fault('bad configuration value')
@pytest.mark.parametrize('changes, words', [
    ({'full_retrain': True, 'kd': 'sgct'}, 'leave out --kd and --replay'),
    ({'peer': 'ease', 'base_from': 'x'}, 'leave out --base_from'),
    ({'memory_options__offset': 1.}, 'there is none: add --memory=ease'),
    ({'memory_options__offset': 1., 'memory': 'ease', 'train__loss': 'softmax'}, 'set --config.train.loss=bpr'),
    ({'memory_options__offset': 1., 'memory': 'ease', 'full_retrain': True}, 'leave out --full_retrain'),
    ({'kd_strength': .5}, 'there is none: add --kd=sgct'),
    ({'sampler': 'dns', 'train__num_sampler_negatives': 11}, 'at most config.train.num_negatives, which is 10')])
def test_fields_that_do_not_go_together(changes, words):
  with pytest.raises(UserError, match=words):
    config_lib.resolved(logs.tiny_config(**changes))


@pytest.mark.fault('bad configuration value')
@pytest.mark.parametrize('change, blocks, sentence', [
    ({}, [4], '--block=4 does not exist: this run has blocks 0 to 3.'),
    ({}, [-1], '--block=-1 does not exist'),
    ({'model__l2': -1.}, None, 'config.model.l2 is'),
    ({'sampler': 'foo'}, None, 'config.sampler is')])
def test_nothing_is_written_for_a_run_that_cannot_be(change, blocks, sentence, tmp_path):
  config = logs.tiny_config(**change)
  with pytest.raises(UserError, match=sentence):
    incremental.run(config, logs.random_log(), tmp_path / 'run', blocks=blocks, log=lambda _: None)
  assert not list(tmp_path.iterdir())


# What makes a section's fields count, and the fields that would make the run long or impossible.
_USES = {'backbone': 'mgccf lightgcn pinsage', 'sampler': 'warp dns pns pinsage nscaching esns demix sane',
         'kd': 'sgct lwckd lsp graphsail', 'replay': 'inverse_degree'}
_SECTIONS = {'mgccf': ('model',), 'lightgcn': ('model',), 'sane': ('sane', 'clustering'),
             'sgct': ('sgct', 'personal'), 'inverse_degree': ('replay_options',)}


@pytest.mark.slow
@pytest.mark.parametrize('end', [0, 1])
@pytest.mark.parametrize('kind, name', [
    (kind, name) for kind, names in _USES.items() for name in names.split()])
def test_both_ends_of_every_range_can_be_trained(kind, name, end, tmp_path):
  changes = {kind: name, 'train__epochs': 1, 'train__base_epochs': 1, 'train__batch_size': 512,
             'blocks__num_incremental': 2}
  for field, rule in RULES.items():
    if field.split('.')[0] in _SECTIONS.get(name, (name,)) and rule.kind in (int, float):
      bounded = rule if rule.high is not None else dataclasses.replace(rule, high=500)
      if field == 'model.num_layers':
        bounded = dataclasses.replace(rule, high=4)
      elif field == 'model.embedding_dim':
        bounded = dataclasses.replace(rule, high=64)
      ends = bounded.choices or [
          bounded.low + (1e-3 if bounded.above else 0) if bounded.low is not None else -10,
          bounded.high - (1e-3 if bounded.below else 0)]
      value = ends[-end]
      changes[field.replace('.', '__')] = (value,) * rule.length[0] if rule.length else (
          rule.kind(value))
  results = incremental.run(logs.tiny_config(**changes), logs.random_log(), tmp_path / 'run',
                            log=lambda _: None)
  assert len(results['blocks']) == 2
