"""Versions of a model in TensorFlow Serving's layout; the highest number is the one that is served.

docs/updating.md describes the folders and the manifest.
"""
import contextlib
import datetime
import hashlib
import json
import os
import pathlib
import platform
import shutil
from typing import Any, Dict, List, Optional

import numpy as np
import tensorflow as tf

from graphsane_tf import __version__, files
from graphsane_tf.errors import UserError

FORMAT = 1
# TensorFlow leaves what lies here alone.
EXTRA = 'assets.extra'
_MANIFEST = f'{EXTRA}/manifest.json'
_DIGEST = 'manifest_sha256'
# What reading a manifest relies on, by an example of its type.
_FIELDS = {'format': 0, 'name': '', 'number': 0, 'kind': '', 'update': 0, 'numbering': 0, 'data': {}, 'config': {},
           'content': 0, 'trained': {}, 'gate': {}, 'sha256': {}}


class _Damaged(UserError):
  """A version that cannot be used any more."""


def _digest(manifest: Dict[str, Any]) -> str:
  content = {key: value for key, value in manifest.items() if key != _DIGEST}
  return hashlib.sha256(json.dumps(content, sort_keys=True).encode('utf-8')).hexdigest()


def seal(folder: pathlib.Path, manifest: Dict[str, Any]) -> None:
  """Writes the manifest of a version whose other files are complete."""
  paths = sorted(path for path in folder.rglob('*') if path.is_file() and path != folder / _MANIFEST)
  manifest = {
      'format': FORMAT, **manifest, 'created': datetime.datetime.now(datetime.timezone.utc).isoformat('T', 'seconds'),
      'software': {'graphsane_tf': __version__, 'python': platform.python_version(), 'tensorflow': tf.__version__,
                   'numpy': np.__version__},
      'bytes': sum(path.stat().st_size for path in paths),
      'sha256': {path.relative_to(folder).as_posix(): files.sha256(path) for path in paths}}
  files.write_json(folder / _MANIFEST, {**manifest, _DIGEST: _digest(manifest)})


def read_manifest(folder: pathlib.Path) -> Dict[str, Any]:
  """The manifest of a version's folder.

  Raises:
    UserError: if it is missing or damaged.
  """
  path = folder / _MANIFEST
  try:
    manifest = files.read_object(path, _FIELDS)
  except UserError as error:
    raise _Damaged(f'{str(error).rstrip(".")}: publish a sound version with graphsane rollback --to=N.') from error
  if manifest['format'] != FORMAT:
    raise _Damaged(f'{path} has format {manifest["format"]}; this version of the package reads {FORMAT}.')
  if manifest.get(_DIGEST) != _digest(manifest):
    raise _Damaged(f'{path} has been changed since it was written: publish a sound version with graphsane rollback '
                   '--to=N.')
  return manifest


class Versions:
  """The published and the refused versions of one model.

  Attributes:
    published: the folder that is served.
    rejected: the folder of versions that the gate has refused.
    deleted: the folder of the manifests of versions that are gone.
  """

  def __init__(self, store, name: str):
    self.published = pathlib.Path(store) / 'models' / name
    self.rejected = pathlib.Path(store) / 'rejected'
    self.deleted = pathlib.Path(store) / 'deleted'

  def numbers(self) -> List[int]:
    """Published versions, ascending."""
    return files.numbered(self.published)

  def current(self) -> Optional[int]:
    """The version that is served; None before the first."""
    return max(self.numbers(), default=None)

  def path(self, number: int) -> pathlib.Path:
    return self.published / str(number)

  def manifest(self, number: int) -> Dict[str, Any]:
    """What a published version is."""
    if number not in self.numbers():
      there = ', '.join(map(str, self.numbers())) or 'none'
      raise UserError(f'there is no version {number} in {self.published} (there: {there}).')
    return read_manifest(self.path(number))

  def next_number(self) -> int:
    gone = [int(path.stem) for path in self.deleted.glob('*.json') if path.stem.isdecimal()]
    return max([0, *self.numbers(), *files.numbered(self.rejected), *gone]) + 1

  def manifests(self) -> List[Dict[str, Any]]:
    """All that can be read, by number, with 'published' and 'deleted': the life of the model."""
    found: Dict[int, Dict[str, Any]] = {}
    for path in self.deleted.glob('*.json'):
      with contextlib.suppress(UserError):
        manifest = files.read_object(path, _FIELDS)
        found[manifest['number']] = {**manifest, 'deleted': True}
    for place, published in ((self.published, True), (self.rejected, False)):
      for number in files.numbered(place):
        with contextlib.suppress(UserError):
          found[number] = {**read_manifest(place / str(number)), 'published': published, 'deleted': False}
    return [found[number] for number in sorted(found)]

  def check(self, number: int) -> Dict[str, Any]:
    """The manifest of a version whose every file is as it was written.

    Raises:
      UserError: if one is missing or has changed.
    """
    manifest = self.manifest(number)
    for name, digest in manifest['sha256'].items():
      path = self.path(number) / name
      if not path.is_file() or files.sha256(path) != digest:
        raise UserError(f'{path} is missing or damaged: publish a sound version with graphsane rollback --to=N.')
    return manifest

  def publish(self, staged: pathlib.Path, number: int) -> None:
    """Makes a sealed folder the current version, by one rename."""
    files.publish_directory(staged, self.path(number))

  def reject(self, staged: pathlib.Path, number: int) -> None:
    """Puts a sealed folder away, where nobody serves it."""
    files.publish_directory(staged, self.rejected / str(number))

  def rollback(self, number: int, staging: pathlib.Path) -> int:
    """Publishes the content of an older version under a new number, which it returns.

    Args:
      number: the older version.
      staging: a folder on the same file system that does not exist yet.
    """
    current = self.current()
    manifest = self.check(number)
    with contextlib.suppress(_Damaged):
      if number == current or manifest['content'] == self.manifest(current or 0)['content']:
        raise UserError(f'version {number} is what is served already: nothing to roll back.')
    # Files of a version never change, so that two versions can share them.
    shutil.copytree(self.path(number), staging, copy_function=_link, ignore=shutil.ignore_patterns('manifest.json'))
    new = self.next_number()
    seal(staging, {
        **manifest, 'number': new, 'kind': 'rollback', 'parent': current,
        'gate': {'decision': 'rollback', 'reason': f'version {number} was published again by hand.'}})
    self.publish(staging, new)
    return new

  def prune(self, keep: int) -> List[pathlib.Path]:
    """Deletes all but the newest `keep` published versions, and refused ones older than those; returns them."""
    kept = self.numbers()[-max(keep, 1):]
    gone = [self.path(number) for number in self.numbers() if number not in kept]
    gone += [self.rejected / str(number) for number in files.numbered(self.rejected) if number < min(kept, default=0)]
    for path in gone:
      self._delete(path)
    return gone

  def _delete(self, path: pathlib.Path) -> None:
    """Deletes a version but for its manifest."""
    with contextlib.suppress(UserError):
      manifest = {**read_manifest(path), 'published': path.parent == self.published}
      files.write_json(self.deleted / f'{path.name}.json', manifest)
    _remove_whole(path)

  def numbering(self) -> int:
    """That of the newest version whose manifest can be read; 0 if there is none."""
    for number in reversed(self.numbers()):
      with contextlib.suppress(UserError):
        return self.manifest(number)['numbering']
    return 0

  def drop_numberings_before(self, numbering: int) -> None:
    """Deletes versions that know somebody who has been forgotten since."""
    for place in (self.published, self.rejected):
      for number in files.numbered(place) if numbering else ():
        # What cannot be read might know them.
        known = -1
        with contextlib.suppress(UserError):
          known = read_manifest(place / str(number))['numbering']
        if known < numbering:
          self._delete(place / str(number))


def _link(source: str, target: str) -> None:
  """One file under two names; a copy where the file system has no links."""
  try:
    os.link(source, target)
  except OSError:
    shutil.copy2(source, target)


def _remove_whole(path: pathlib.Path) -> None:
  """Deletes a version: a rename first, so that nobody ever sees a part of it."""
  aside = path.with_name(f'.{path.name}.gone')
  files.remove(aside)
  os.rename(path, aside)
  files.remove(aside)


def clear_leftovers(place: pathlib.Path) -> None:
  """Deletes what a kill in the middle of a removal has left."""
  if place.is_dir():
    for path in place.glob('.*.gone'):
      files.remove(path)
