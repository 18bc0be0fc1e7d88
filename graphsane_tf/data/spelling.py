"""Ids that are written in two ways: nothing is changed, but a person should know."""
from typing import Optional

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc


def plain(ids: np.ndarray) -> np.ndarray:
  """[n] ids without spaces around them, leading zeros and an ending '.0', in Unicode's composed form."""
  text = pc.utf8_normalize(pc.utf8_trim_whitespace(pa.array(ids, pa.string())), form='NFC')
  return pc.replace_substring_regex(text, r'^0*(\d+)(\.0+)?$', r'\1').to_numpy(zero_copy_only=False)


def warning(what: str, ids: np.ndarray, known: int = 0) -> Optional[str]:
  """A sentence if ids are another spelling of earlier ones, as where a table has turned 1 into 1.0; else None.

  Args:
    what: 'users' or 'items'.
    ids: [n] different ids.
    known: how many of them, the first, have been there before and are not asked about.
  """
  if known == len(ids):
    return None
  forms = plain(ids)
  again = np.flatnonzero(pd.Series(forms).duplicated().to_numpy()[known:]) + known
  if not len(again):
    return None
  first = ids[np.flatnonzero(forms == forms[again[0]])[0]]
  return (f'warning: {len(again):,} {"new " if known else ""}{what} differ from others only by spaces, zeros or the '
          f'form of letters, such as {ids[again[0]][:40]!r} from {first[:40]!r}: they count as others; write each id '
          'in one way.')
