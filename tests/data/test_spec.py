"""What config.json keeps of a log: to JSON and back, in today's form and in that of earlier versions."""
import json

import pytest

from graphsane_tf.data import spec as data_spec
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.errors import UserError

# The same log as a spec, in the form of earlier versions, and in today's.
SAME = [
    (DataSpec('gowalla', {'min_rating': 4, 'duplicates': None}), {'dataset': 'gowalla', 'min_rating': 4},
     {'dataset': 'gowalla', 'recipe': {'min_rating': 4}, 'options': {}}),
    (DataSpec('drift', options={'size': 'default', 'seed': 0, 'hide_categories': False}), {'dataset': 'drift'},
     {'dataset': 'drift', 'recipe': {}, 'options': {}}),
    (DataSpec('drift', options={'size': 'small', 'seed': 3, 'hide_categories': True}),
     {'dataset': 'drift', 'drift_size': 'small', 'drift_seed': 3, 'drift_hide_categories': True},
     {'dataset': 'drift', 'recipe': {}, 'options': {'size': 'small', 'seed': 3, 'hide_categories': True}}),
    (DataSpec('csv', {'min_user_interactions': 2}, {'interactions': '/x/../y.csv', 'user_column': 'u',
                                                    'item_column': None}),
     {'dataset': 'csv', 'interactions': '/y.csv', 'user_column': 'u', 'min_user_interactions': 2},
     {'dataset': 'csv', 'recipe': {'min_user_interactions': 2},
      'options': {'interactions': '/y.csv', 'user_column': 'u'}}),
    # A log that was made in Python.
    (DataSpec('mine'), {'dataset': 'mine'}, {'dataset': 'mine', 'recipe': {}, 'options': {}}),
]


@pytest.mark.parametrize('spec, earlier, today', SAME, ids=str)
def test_to_json_and_back(spec, earlier, today):
  assert spec.to_json() == today
  for form in (earlier, json.loads(json.dumps(today))):
    saved = {**form, 'fingerprint': 'abc'}
    assert DataSpec.from_json(saved).to_json() == today
    assert data_spec.renewed(saved) == {**today, 'fingerprint': 'abc'}


@pytest.mark.fault('damaged state.json or config.json')
@pytest.mark.parametrize('saved', [
    {'recipe': 3}, {'options': []}, {'options': {'seed': '3'}}, {'options': {'colour': 1}}, {'colour': 1},
    {'drift_size': 5}], ids=str)
def test_damage_is_one_sentence(saved):
  with pytest.raises(UserError) as caught:
    data_spec.renewed({'dataset': 'drift', 'fingerprint': '', **saved})
  assert '\n' not in str(caught.value) and 'data set drift' in str(caught.value)


def test_words_leave_places_out():
  spec = SAME[3][0]
  assert spec.label == 'y' and spec.words() == 'dataset=csv, min_user_interactions=2, user_column=u'
  assert DataSpec('drift', options={'size': 'small'}).words() == 'dataset=drift, size=small'
  assert DataSpec('mine').label == 'mine'
