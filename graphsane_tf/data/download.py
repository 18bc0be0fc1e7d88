"""Fetches raw files from their owner: resumable, checked, and never half in place."""
import hashlib
import http.client
import os
import pathlib
import re
import stat
import urllib.error
import urllib.request
import zipfile
from typing import Callable, Optional

import tqdm

from graphsane_tf import files
from graphsane_tf.data import SOURCES
from graphsane_tf.errors import UserError

_PIECE = 1 << 20
_TIMEOUT = 60
_NETWORK_ERRORS = (urllib.error.URLError, http.client.HTTPException, OSError)
# The most that one member of an archive may unpack to.
_MAX_MEMBER_BYTES = 1 << 30


def download(name: str, folder, url: Optional[str] = None,
             log: Callable[[str], None] = print) -> None:
  """Fetches a data set's raw files into `folder`.

  An interrupted download goes on where it stopped. A zip is checked against the `.md5` file that
  its owner keeps beside it, and only the files needed are unpacked.

  Args:
    name: the data set.
    folder: where the files go.
    url: another place to fetch from than the owner's.
    log: receives each line of progress.

  Raises:
    UserError: the data set cannot be fetched, the network failed, or the file is damaged.
  """
  source = SOURCES[name]
  url = url or source.url
  if not url:
    raise UserError(f'{name} cannot be downloaded without its owner\'s consent: get '
                    f'{source.files}{f" from {source.page}" if source.page else ""} and put them in {folder}.')
  folder = files.make_directory(folder)
  target = folder / url.rsplit('/', 1)[-1]
  part = target.with_name(target.name + '.part')
  log(f'downloading {url} (terms: {source.terms})')
  try:
    _fetch(url, part)
    published = _published_md5(url + '.md5', log) if source.members else None
  except _NETWORK_ERRORS as error:
    reason = getattr(error, 'reason', None) or error
    raise UserError(f'downloading {url} failed ({reason}); run the same command again to go on '
                    f'where it stopped, or put {source.files} in {folder} by hand.') from error
  if published and published != _md5(part):
    part.unlink()
    raise UserError(f'{url} arrived damaged (its md5 is not {published}); run the same command '
                    'again.')
  os.replace(part, target)
  if source.members:
    try:
      _unpack(target, folder, source.members)
    finally:
      target.unlink()


def _fetch(url: str, part: pathlib.Path) -> None:
  """Downloads to `part`, going on from the bytes that are there."""
  start = part.stat().st_size if part.exists() else 0
  request = urllib.request.Request(url, headers={'Range': f'bytes={start}-'} if start else {})
  try:
    response = urllib.request.urlopen(request, timeout=_TIMEOUT)
  except urllib.error.HTTPError as error:
    whole = re.fullmatch(r'bytes \*/(\d+)', error.headers.get('Content-Range', ''))
    if error.code != 416:
      raise
    if not whole or int(whole.group(1)) != start:
      part.unlink()
      _fetch(url, part)
    return
  with response:
    resumed = response.status == 206
    if resumed and not response.headers.get('Content-Range', '').startswith(f'bytes {start}-'):
      raise http.client.HTTPException('the server sent another range than asked for')
    start = start if resumed else 0
    length = response.headers.get('Content-Length')
    total = start + int(length) if length else None
    with open(part, 'ab' if resumed else 'wb') as stream, tqdm.tqdm(
        total=total, initial=start, unit='B', unit_scale=True, desc=part.stem) as progress:
      while piece := response.read(_PIECE):
        stream.write(piece)
        progress.update(len(piece))
      stream.flush()
      os.fsync(stream.fileno())
  size = part.stat().st_size
  if total is not None and size != total:
    raise http.client.HTTPException(f'{size:,} of {total:,} bytes arrived')


def _published_md5(url: str, log: Callable[[str], None]) -> Optional[str]:
  """The digest in the owner's `.md5` file; None, with a note, when there is no such file."""
  try:
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as response:
      content = response.read(_PIECE).decode('ascii', 'replace')
  except urllib.error.HTTPError as error:
    if error.code != 404:
      raise
    content = ''
  digest = re.search(r'\b[0-9a-f]{32}\b', content.lower())
  if not digest:
    log(f'note: {url} holds no md5, so only the size was checked.')
  return digest.group(0) if digest else None


def _md5(path: pathlib.Path) -> str:
  digest = hashlib.md5(usedforsecurity=False)
  with open(path, 'rb') as stream:
    while piece := stream.read(_PIECE):
      digest.update(piece)
  return digest.hexdigest()


def _unpack(path: pathlib.Path, folder: pathlib.Path, wanted) -> None:
  """Takes the files `wanted` out of a zip, each whole or not at all."""
  try:
    with zipfile.ZipFile(path) as archive:
      members = {}
      for member in archive.infolist():
        parts = pathlib.PurePosixPath(member.filename.replace('\\', '/'))
        if parts.is_absolute() or '..' in parts.parts or stat.S_ISLNK(member.external_attr >> 16):
          raise UserError(f'{path} holds the unsafe member {member.filename!r}; it is not the '
                          'owner\'s file and was removed.')
        if parts.name in wanted:
          members[parts.name] = member
      for name in wanted:
        if name not in members:
          raise UserError(f'{path} holds no {name}; it is not the owner\'s file and was removed.')
      # The file that `find` looks for comes last, so its presence means all are there.
      for name in reversed(wanted):
        _copy_member(archive, members[name], path, folder / name)
  except (zipfile.BadZipFile, EOFError) as error:
    raise UserError(f'{path} arrived as a damaged zip; run the same command again.') from error


def _copy_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: pathlib.Path,
                 target: pathlib.Path) -> None:
  """Unpacks one member under a temporary name and renames it."""
  part = target.with_name(target.name + '.part')
  written = 0
  try:
    with archive.open(member) as source, open(part, 'wb') as stream:
      while piece := source.read(_PIECE):
        written += len(piece)
        if written > _MAX_MEMBER_BYTES:
          raise UserError(f'{path}: {member.filename} unpacks to over {_MAX_MEMBER_BYTES:,} '
                          'bytes; it is not the owner\'s file and was removed.')
        stream.write(piece)
      stream.flush()
      os.fsync(stream.fileno())
    os.replace(part, target)
  finally:
    part.unlink(missing_ok=True)
