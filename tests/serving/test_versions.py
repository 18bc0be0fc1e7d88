"""Version folders: publishing, going back, deleting, and damage."""
import json

import pytest

from graphsane_tf.errors import UserError
from graphsane_tf.serving import versions


def manifest(number, **fields):
  return {'name': 'shop', 'number': number, 'kind': 'trained', 'update': number - 1, 'numbering': 0, 'content': number,
          'parent': number - 1, 'data': {'rows': number}, 'config': {}, 'trained': {}, 'gate': {'decision': 'trained'},
          **fields}


def add(shop, tmp_path, number, reject=False, **fields):
  staging = tmp_path / 'work' / 'version'
  (staging / 'variables').mkdir(parents=True)
  (staging / 'saved_model.pb').write_text(f'model {number}')
  (staging / 'variables' / 'a').write_text(f'weights {number}')
  versions.seal(staging, manifest(number, **fields))
  (shop.reject if reject else shop.publish)(staging, number)
  assert not staging.exists()


@pytest.fixture
def shop(tmp_path):
  found = versions.Versions(tmp_path, 'shop')
  assert found.current() is None and found.next_number() == 1
  for number in (1, 2, 4):
    add(found, tmp_path, number)
  add(found, tmp_path, 3, reject=True)
  return found


def test_the_highest_number_is_current(shop, tmp_path):
  (shop.published / '.9.tmp').mkdir()
  (shop.published / '010').mkdir()
  assert shop.numbers() == [1, 2, 4] and shop.current() == 4 and shop.next_number() == 5
  add(shop, tmp_path, 6, reject=True)
  assert shop.current() == 4 and shop.next_number() == 7
  sealed = shop.check(4)
  assert set(sealed['sha256']) == {'saved_model.pb', 'variables/a'} and sealed['bytes'] == 16
  assert sealed['software']['tensorflow'] and sealed['created'].endswith('+00:00')


def test_rollback_publishes_the_old_content_under_a_new_number(shop, tmp_path):
  before = shop.manifest(1)
  assert shop.rollback(1, tmp_path / 'work' / 'version') == 5 == shop.current()
  now = shop.check(5)
  assert (shop.path(5) / 'saved_model.pb').read_text() == 'model 1'
  changed = {name for name in now if now[name] != before[name]}
  assert changed <= {'number', 'kind', 'parent', 'gate', 'created', 'manifest_sha256'}
  assert (now['kind'], now['content'], now['parent']) == ('rollback', 1, 4)
  assert shop.manifest(1) == before
  with pytest.raises(UserError, match='served already'):
    shop.rollback(1, tmp_path / 'work' / 'version')
  with pytest.raises(UserError, match='no version 3'):
    shop.rollback(3, tmp_path / 'work' / 'version')
  shop.prune(1)
  assert shop.check(5) == now, 'files that two versions shared are still there'


def test_prune_keeps_the_newest(shop):
  gone = shop.prune(2)
  assert [path.name for path in gone] == ['1'] and shop.numbers() == [2, 4]
  shop.prune(1)
  assert shop.numbers() == [4] and not list(shop.rejected.iterdir())
  assert not shop.prune(1) and shop.current() == 4
  # Their manifests stay, and their numbers are not given again.
  told = {manifest['number']: (manifest['published'], manifest['deleted']) for manifest in shop.manifests()}
  assert told == {1: (True, True), 2: (True, True), 3: (False, True), 4: (True, False)} and shop.next_number() == 5


def test_versions_that_know_somebody_forgotten_go(shop, tmp_path):
  add(shop, tmp_path, 5, numbering=1)
  assert shop.numbering() == 1
  shop.drop_numberings_before(0)
  assert shop.numbers() == [1, 2, 4, 5]
  shop.drop_numberings_before(1)
  assert shop.numbers() == [5] and not list(shop.rejected.iterdir())


@pytest.mark.fault('damaged version')
@pytest.mark.parametrize('damage', ['weights', 'missing', 'manifest', 'json', 'format'])
def test_damage_is_found_and_another_version_can_be_published(shop, tmp_path, damage):
  path = shop.path(4)
  file = path / versions.EXTRA / 'manifest.json'
  if damage == 'weights':
    (path / 'variables' / 'a').write_text('weights 5')
  elif damage == 'missing':
    (path / 'saved_model.pb').unlink()
  elif damage == 'json':
    file.write_text('{')
  else:
    saved = json.loads(file.read_text())
    saved.update({'update': 7} if damage == 'manifest' else {'format': 99})
    file.write_text(json.dumps(saved))
  with pytest.raises(UserError, match='rollback|reads 1'):
    shop.check(4)
  assert shop.rollback(2, tmp_path / 'work' / 'version') == 5
  assert shop.check(5)['content'] == 2
