"""Which settings mean nothing beside others: whoever gives them is told."""
import pytest

from graphsane_tf import cli, config_rules
from graphsane_tf.config import default_config
from tests import logs

_RECIPE = {'kd': 'sgct', 'sampler': 'sane', 'replay': 'uniform', 'memory': 'ease', 'train__loss': 'softmax',
           'blocks__validation': 'share'}


@pytest.mark.parametrize('changes, field, reason', [
    ({}, 'sgct.weight', '--kd=none'), ({'kd': 'lwckd'}, 'sgct.weight', '--kd=lwckd'),
    ({'kd': 'lsp'}, 'lsp.weight', None),
    ({}, 'personal.strength', '--kd=none'), ({'kd': 'lwckd'}, 'personal.strength', None),
    ({'kd': 'graphsail'}, 'personal.strength', '--kd=graphsail'),
    ({}, 'sane.size', '--sampler=uniform'), ({'sampler': 'dns'}, 'sane.size', '--sampler=dns'),
    ({'sampler': 'dns'}, 'dns.candidates', None), ({'sampler': 'dns'}, 'clustering.beta', '--sampler=dns'),
    ({'sampler': 'dns'}, 'clusters', '--sampler=dns'), ({'sampler': 'sane'}, 'clusters', None),
    ({}, 'train.num_sampler_negatives', '--sampler=uniform'), ({}, 'train.num_negatives', None),
    ({}, 'replay_options.ratio', '--replay=none'), ({}, 'memory_options.half_ages', '--memory=none'),
    ({'full_retrain': True}, 'train.epochs', '--full_retrain'), ({'full_retrain': True}, 'train.base_epochs', None),
    ({'full_retrain': True}, 'train.learning_rate', '--full_retrain'), ({}, 'train.epochs', None),
    ({}, 'train.softmax_temperature', '--config.train.loss=bpr'),
    ({}, 'blocks.validation_share', '--config.blocks.validation=next_half'),
    ({'peer': 'ease'}, 'train.epochs', '--peer=ease'), ({'peer': 'ease'}, 'memory', '--peer=ease'),
    ({'peer': 'ease'}, 'blocks.by', None),
    ({'peer': 'ease'}, 'evaluation.cutoffs', None), ({'peer': 'ease'}, 'peer', None)])
def test_what_has_no_effect(changes, field, reason):
  assert field in config_rules.flatten(default_config().to_dict())
  assert cli.without_effect(logs.tiny_config(**changes), field) == reason


def test_what_is_used_is_not_told_of():
  config = logs.tiny_config(**_RECIPE)
  idle = {field.partition('.')[0] for field in config_rules.flatten(config.to_dict())
          if cli.without_effect(config, field)}
  assert idle == {'lwckd', 'lsp', 'graphsail', 'warp', 'dns', 'pns', 'pinsage', 'nscaching', 'esns', 'demix'}
