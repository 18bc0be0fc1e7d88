"""Parts of the adaptive reservoir, each taken away alone, without and with a memory."""
from typing import Dict, Sequence, Tuple

from graphsane_tf.reporting.tables.base import Table
from graphsane_tf.reporting.tables.methods import SGCT, with_sane
from graphsane_tf.runs.grid import Row

ADAPTIVE = with_sane(SGCT, 'adaptive', sane_variant='adaptive')


def _without(what: str, field: str, value) -> Row:
  return Row(f'adaptive, {what}', {**ADAPTIVE.overrides, f'sane.{field}': value}, partner=ADAPTIVE)


NO_PRIOR = _without('no prior', 'uniform_theta', True)
REVERSED_PRIOR = _without('reversed prior', 'prior_sign', 1)


class Parts(Table):
  """Recall of each block, a line a change of one part."""
  title = 'Parts of the adaptive reservoir'
  rows: Tuple[Row, ...] = (
      SGCT, ADAPTIVE, _without('fixed band', 'band', 'fixed'), _without('not balanced', 'balance', 0.), NO_PRIOR,
      REVERSED_PRIOR, _without('printed shift', 'shift', 'printed'),
      _without('re-scored in the step', 'candidates', 2), _without('with old positives', 'exclude_history', False))

  def pictures(self, drawn, shown):
    return []

  def sentences(self, shown):
    return []


def _with_memory(rows: Sequence[Row]) -> Tuple[Row, ...]:
  """The same rows, and the ones they are tested against, beside a memory: samplers rank by the joint score."""
  found: Dict[str, Row] = {}
  for row in rows:
    found[row.label] = Row(f'{row.label} + memory', {**row.overrides, 'memory': 'ease'},
                           partner=row.partner and found[row.partner.label])
  return tuple(found.values())


class Joint(Parts):
  """The same lines where the sampler ranks by graph model and memory together, and one where it does not."""
  title = 'Parts of the adaptive reservoir on joint ranks'
  rows = _with_memory((*Parts.rows, Row('adaptive, ranks of the graph model',
                                        {**ADAPTIVE.overrides, 'memory_options.joint_ranks': False}, partner=ADAPTIVE)))
