"""Parts of the adaptive reservoir, each taken away alone."""
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
  rows = (SGCT, ADAPTIVE, _without('fixed band', 'band', 'fixed'), _without('not balanced', 'balance', 0.),
          NO_PRIOR, REVERSED_PRIOR, _without('printed shift', 'shift', 'printed'),
          _without('re-scored in the step', 'candidates', 2),
          _without('with old positives', 'exclude_history', False))

  def pictures(self, drawn, shown):
    return []

  def sentences(self, shown):
    return []
