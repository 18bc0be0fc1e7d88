"""Which state of the source code runs, for results that tell it by themselves."""
import functools
import pathlib
import subprocess
from typing import Optional

import graphsane_tf


@functools.lru_cache(maxsize=None)
def commit() -> Optional[str]:
  """The commit of the checkout that the package is in, with '+' if files differ from it; None without one."""
  place = pathlib.Path(graphsane_tf.__file__).resolve().parent

  def git(*words: str) -> Optional[str]:
    try:
      done = subprocess.run(['git', '-C', str(place), *words], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
      return None
    return done.stdout.strip() if done.returncode == 0 else None

  # The package may lie in a repository of somebody else, who has installed it there.
  if not git('ls-files', '__init__.py'):
    return None
  name = git('rev-parse', '--short=12', 'HEAD')
  return f'{name}+' if name and git('status', '--porcelain', '--untracked-files=no', '.') else name
