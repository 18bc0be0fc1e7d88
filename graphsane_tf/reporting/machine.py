"""The machine that a report was written on."""
from importlib import metadata
import os
import platform
from typing import Dict

from graphsane_tf import parallel

_PACKAGES = ('graphsane_tf', 'tensorflow', 'tf-keras', 'tensorflow-recommenders', 'numpy', 'scipy',
             'scikit-learn', 'pandas', 'matplotlib', 'optuna')


def describe() -> Dict[str, str]:
  """Cores, memory, system and versions, by name."""
  facts = {'cores': str(parallel.cores()), 'processor': platform.machine(), 'system': platform.platform(),
           'python': platform.python_version()}
  try:
    total = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    facts['memory'] = f'{total / 2**30:.1f} GiB'
  except (ValueError, OSError):
    facts['memory'] = 'unknown'
  for name in _PACKAGES:
    try:
      facts[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
      continue
  return facts
