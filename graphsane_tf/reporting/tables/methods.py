"""Rows that several tables show."""
from typing import Any

from graphsane_tf.runs.grid import Row

FINE_TUNE = Row('Fine Tune')
GRAPHSAIL = Row('GraphSAIL', {'kd': 'graphsail'})
SGCT = Row('SGCT', {'kd': 'sgct'})
LWCKD = Row('LWC-KD', {'kd': 'lwckd'})
# The distillers that the paper adds SANE to.
DISTILLERS = (GRAPHSAIL, SGCT, LWCKD)


def with_sane(row: Row, label: str = '{}-SANE', **overrides: Any) -> Row:
  """The row with SANE, tested against the row without.

  Args:
    row: a method.
    label: its new name, {} is the old one.
    **overrides: further fields of the configuration.
  """
  return Row(label.format(row.label), {**row.overrides, 'sampler': 'sane', **overrides}, partner=row)


SANE = {row: with_sane(row) for row in DISTILLERS}
